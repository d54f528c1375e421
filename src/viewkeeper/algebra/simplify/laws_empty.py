"""Laws of ∅: what is left of an operator when an input has no rows."""

from __future__ import annotations

from viewkeeper.algebra.changes.propagation import padded, padded_left
from viewkeeper.algebra.nodes import (
    ADDED,
    REMOVED,
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Left,
    Literal,
    Max,
    Min,
    Monus,
    Net,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Table,
    Top,
    Unnest,
    Window,
)
from viewkeeper.algebra.simplify.knowledge import Knowledge


def table_append_only(q: Query, k: Knowledge) -> Query | None:
    """∇R = ∅ when R is append-only; ΔR = ∅ when R is insert-free."""
    assert isinstance(q, Table)
    gone = q.state == REMOVED and q.name in k.facts.append_only
    come = q.state == ADDED and q.name in k.facts.insert_free
    return Empty(q.scope) if gone or come else None


def literal_empty(q: Query, k: Knowledge) -> Query | None:
    """{} = ∅."""
    assert isinstance(q, Literal)
    return None if q.rows else Empty(q.scope)


def unary_empty(q: Query, k: Knowledge) -> Query | None:
    """σ(∅) = Π(∅) = ε(∅) = λ(∅) = ω(∅) = τ(∅) = net(∅) = ∅."""
    assert isinstance(q, (Select, Project, Distinct, Unnest, Window, Top, Net))
    return Empty(q.scope) if isinstance(q.s, Empty) else None


def group_empty(q: Query, k: Knowledge) -> Query | None:
    """Γ[A; f](∅) = ∅ when A is not empty; without keys there is still one row."""
    assert isinstance(q, GroupBy)
    return Empty(q.scope) if q.keys and isinstance(q.s, Empty) else None


def plus_empty(q: Query, k: Knowledge) -> Query | None:
    """S ⊎ ∅ = ∅ ⊎ S = S max ∅ = ∅ max S = S."""
    assert isinstance(q, (Plus, Max))
    if isinstance(q.t, Empty):
        return q.s
    return _as(q.t, q) if isinstance(q.s, Empty) else None


def monus_empty(q: Query, k: Knowledge) -> Query | None:
    """S ∸ ∅ = S and ∅ ∸ S = ∅."""
    assert isinstance(q, Monus)
    if isinstance(q.t, Empty):
        return q.s
    return q.s if isinstance(q.s, Empty) else None


def min_empty(q: Query, k: Knowledge) -> Query | None:
    """S min ∅ = ∅ min S = ∅."""
    assert isinstance(q, Min)
    return Empty(q.scope) if isinstance(q.s, Empty) or isinstance(q.t, Empty) else None


def join_empty(q: Query, k: Knowledge) -> Query | None:
    """S × ∅ = ∅ × S = S ⋈ ∅ = ∅ ⋈ S = S ⋉ ∅ = ∅ ⋉ S = ∅."""
    assert isinstance(q, (Product, Join, Semi))
    return Empty(q.scope) if isinstance(q.s, Empty) or isinstance(q.t, Empty) else None


def anti_empty(q: Query, k: Knowledge) -> Query | None:
    """∅ ▷ S = ∅ and S ▷ ∅ = S."""
    assert isinstance(q, Anti)
    return q.s if isinstance(q.s, Empty) or isinstance(q.t, Empty) else None


def left_empty(q: Query, k: Knowledge) -> Query | None:
    """∅ ⟕ T = ∅ and S ⟕ ∅ = S × {d_T}."""
    assert isinstance(q, Left)
    if isinstance(q.s, Empty):
        return Empty(q.scope)
    return padded(q.s, q.t) if isinstance(q.t, Empty) else None


def right_empty(q: Query, k: Knowledge) -> Query | None:
    """S ⟖ ∅ = ∅ and ∅ ⟖ T = {d_S} × T."""
    assert isinstance(q, Right)
    if isinstance(q.t, Empty):
        return Empty(q.scope)
    return padded_left(q.s, q.t) if isinstance(q.s, Empty) else None


def full_empty(q: Query, k: Knowledge) -> Query | None:
    """S ⟗ ∅ = S × {d_T} and ∅ ⟗ T = {d_S} × T."""
    assert isinstance(q, Full)
    if isinstance(q.t, Empty):
        return padded(q.s, q.t)
    return padded_left(q.s, q.t) if isinstance(q.s, Empty) else None


def _as(q: Query, like: Query) -> Query:
    """The same rows under the column names of another query, where these differ."""
    from viewkeeper.algebra.scalars import Col

    if q.columns == like.columns:
        return q
    return Project(q, tuple(Col(i) for i in range(q.arity)), like.columns)
