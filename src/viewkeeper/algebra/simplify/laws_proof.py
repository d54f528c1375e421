"""Laws that need a proof: containment, disjointness, keys, foreign keys, contradictions."""

from __future__ import annotations

from viewkeeper.algebra.changes.propagation import padded, padded_left
from viewkeeper.algebra.meaning import equalities
from viewkeeper.algebra.nodes import (
    ADDED,
    OLD,
    REMOVED,
    SIGNED,
    Anti,
    Distinct,
    Empty,
    GroupBy,
    Join,
    Left,
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
)
from viewkeeper.algebra.scalars import Col, Scalar
from viewkeeper.algebra.simplify.facts import positions
from viewkeeper.algebra.simplify.knowledge import Knowledge


def contradiction(q: Query, k: Knowledge) -> Query | None:
    """Q = ∅ when what is known of its columns cannot hold of any row."""
    return Empty(q.scope) if k.domains(q) is None else None


def no_partner(q: Query, k: Knowledge) -> Query | None:
    """S ▷p T = S, S ⟕p T = S × {d_T} and S ⟖p T = {d_S} × T when no pair of rows can meet p."""
    assert isinstance(q, (Anti, Left, Right))
    if not k.strangers(q):
        return None
    if isinstance(q, Anti):
        return q.s
    return padded(q.s, q.t) if isinstance(q, Left) else padded_left(q.s, q.t)


def monus_contained(q: Query, k: Knowledge) -> Query | None:
    """S ∸ T = ∅ when S ⊑ T."""
    assert isinstance(q, Monus)
    return Empty(q.scope) if k.contained(q.s, q.t) else None


def monus_disjoint(q: Query, k: Knowledge) -> Query | None:
    """S ∸ T = S when S min T = ∅."""
    assert isinstance(q, Monus)
    return q.s if k.disjoint(q.s, q.t) else None


def monus_part_disjoint(q: Query, k: Knowledge) -> Query | None:
    """S ∸ (T ⊎ U) = S ∸ T when S min U = ∅, and likewise with max."""
    assert isinstance(q, Monus)
    if not isinstance(q.t, (Plus, Max)):
        return None
    if k.disjoint(q.s, q.t.t):
        return q.s - q.t.s
    return q.s - q.t.t if k.disjoint(q.s, q.t.s) else None


def monus_plus_parts(q: Query, k: Knowledge) -> Query | None:
    """(S ⊎ T) ∸ U = S when S min U = ∅ and T ⊑ U, and likewise with S and T exchanged."""
    assert isinstance(q, Monus)
    if not isinstance(q.s, Plus):
        return None
    s, t = q.s.s, q.s.t
    if k.apart(s, q.t) and k.contained(t, q.t):
        return s
    same = t.scope == q.scope
    return t if same and k.apart(t, q.t) and k.contained(s, q.t) else None


def min_contained(q: Query, k: Knowledge) -> Query | None:
    """S min T = S when S ⊑ T, and T when T ⊑ S."""
    assert isinstance(q, Min)
    if k.contained(q.s, q.t):
        return q.s
    return q.t if q.t.scope == q.scope and k.contained(q.t, q.s) else None


def min_disjoint(q: Query, k: Knowledge) -> Query | None:
    """S min T = ∅ when they are disjoint."""
    assert isinstance(q, Min)
    return Empty(q.scope) if k.disjoint(q.s, q.t) else None


def min_part_disjoint(q: Query, k: Knowledge) -> Query | None:
    """(S ⊎ T) min U = S min U when T min U = ∅, and likewise with max, and on the right."""
    assert isinstance(q, Min)
    if isinstance(q.s, (Plus, Max)):
        if k.apart(q.s.t, q.t):
            return q.s.s & q.t
        if k.apart(q.s.s, q.t) and q.s.t.scope == q.scope:
            return q.s.t & q.t
    if isinstance(q.t, (Plus, Max)):
        if k.apart(q.s, q.t.t):
            return q.s & q.t.s
        return q.s & q.t.t if k.apart(q.s, q.t.s) else None
    return None


def max_contained(q: Query, k: Knowledge) -> Query | None:
    """S max T = T when S ⊑ T, and S when T ⊑ S."""
    assert isinstance(q, Max)
    if k.contained(q.t, q.s):
        return q.s
    return q.t if q.t.scope == q.scope and k.contained(q.s, q.t) else None


def plus_restored(q: Query, k: Knowledge) -> Query | None:
    """(S ∸ T) ⊎ T = S when T ⊑ S."""
    assert isinstance(q, Plus)
    match q:
        case Plus(Monus(s, t), u) if u is t and k.contained(t, s):
            return s
        case Plus(u, Monus(s, t)) if u is t and k.contained(t, s) and s.scope == q.scope:
            return s
        case _:
            return None


def distinct_duplicate_free(q: Query, k: Knowledge) -> Query | None:
    """ε(S) = S when S has no duplicates."""
    assert isinstance(q, Distinct)
    return q.s if k.duplicate_free(q.s) else None


def semi_contained(q: Query, k: Knowledge) -> Query | None:
    """S ⋉ T = S when the condition is equality of all of S's columns and S ⊑ T."""
    assert isinstance(q, Semi)
    return q.s if _whole_row(q.on, q.s.arity) and k.contained(q.s, q.t) else None


def semi_disjoint(q: Query, k: Knowledge) -> Query | None:
    """S ⋉ T = ∅ when the condition is equality of all columns and S min T = ∅."""
    assert isinstance(q, Semi)
    return Empty(q.scope) if _whole_row(q.on, q.s.arity) and k.disjoint(q.s, q.t) else None


def join_foreign_key(q: Query, k: Knowledge) -> Query | None:
    """S ⋈ ΔT = S ⋈ ±T = ∅ when S's columns, before, reference T's key, and ∇T = ∅.

    The rows of S have their partners in T, the key occurs once, so no new row has it too. The
    condition is =, not <=>: a row of S with a NULL there need not have a partner in T.
    """
    assert isinstance(q, (Join, Semi))
    return Empty(q.scope) if _referenced(q, k) else None


def anti_foreign_key(q: Query, k: Knowledge) -> Query | None:
    """S ▷ ΔT = S, for the same reason."""
    assert isinstance(q, Anti)
    return q.s if _referenced(q, k) else None


def _referenced(q: Join | Semi | Anti, k: Knowledge) -> bool:
    references = k.facts.references() if k.facts.foreign_keys else []
    if not references:
        return False
    pairs, _ = equalities(q.on, q.s.arity)
    found: dict[tuple[object, object], set[tuple[int, int]]] = {}
    for a, b, null_safe in pairs:
        if isinstance(a, Col) and isinstance(b, Col) and not null_safe:
            left = origin(q.s, a.index)
            right = origin(q.t, b.index - q.s.arity)
            for child, parent in ((left, right), (right, left)):
                if child and parent:
                    places = found.setdefault((child[:2], parent[:2]), set())
                    places.add((child[2], parent[2]))
    for (child_side, parent_side), equal in found.items():
        child_table, parent_table = child_side[0], parent_side[0]  # type: ignore[index]
        for fk in references:
            same = child_table.name == fk.table and parent_table.name == fk.parent
            before = child_table.state in ("", OLD, REMOVED)
            if not (same and before and parent_table.state in (ADDED, SIGNED)):
                continue
            if fk.parent not in k.facts.append_only:
                continue
            columns = positions(child_table, fk.columns)
            parent_columns = positions(parent_table, fk.parent_columns)
            if set(zip(columns, parent_columns, strict=True)) <= equal:
                return True
    return False


def origin(q: Query, column: int) -> tuple[Table, tuple[int, ...], int] | None:
    """The table a column's values come from, unchanged: the leaf, the way to it, and the place."""
    way: list[int] = []
    while True:
        match q:
            case Table():
                return q, tuple(way), column
            case Select(s, _) | Distinct(s) | Monus(s, _) | Semi(s, _, _) | Anti(s, _, _):
                q = s
            case Min(s, _):
                q = s
            case Project(s, items, _):
                item = items[column]
                if not isinstance(item, Col):
                    return None
                q, column = s, item.index
            case GroupBy(s, keys, _, _):
                if column >= len(keys):
                    return None
                q, column = s, keys[column]
            case Product(s, t) | Join(s, t) | Left(s, t) | Right(s, t):
                on_right = column >= s.arity
                if (isinstance(q, Left) and on_right) or (isinstance(q, Right) and not on_right):
                    return None  # may be a NULL of the padding
                way.append(int(on_right))
                q, column = (t, column - s.arity) if on_right else (s, column)
            case Net(s):
                q = s
            case _:
                return None


def _whole_row(on: Scalar, arity: int) -> bool:
    """Is the condition NULL-safe equality of each left column with the same right column?"""
    pairs, rest = equalities(on, arity)
    equal = {
        a.index
        for a, b, null_safe in pairs
        if null_safe and isinstance(a, Col) and isinstance(b, Col) and b.index == a.index + arity
    }
    return rest is None and len(equal) == arity
