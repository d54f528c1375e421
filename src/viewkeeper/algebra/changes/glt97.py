"""Griffin, Libkin & Trickey 1997, figure 2: minimal ∇ and Δ for sets (Theorem 1).

    (a) pre(t, Q) = (Q − ∇Q) ∪ ΔQ       (b) ∇Q ⊆ Q       (c) ΔQ ∩ Q = ∅

Sets live in the bag algebra: a query in set form (``as_set``) over tables without duplicates has
none itself. There ∪ is max, ∩ is min, − is ∸, and ΠA is ε(ΠA).
"""

from __future__ import annotations

from viewkeeper.algebra.changes import aggregates, gk98, gl95
from viewkeeper.algebra.changes.propagation import Changes, Figure, Pair
from viewkeeper.algebra.nodes import (
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
    Node,
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
from viewkeeper.algebra.pool import assert_never
from viewkeeper.algebra.scope import A_QUERY, expect
from viewkeeper.algebra.walk import rebuild


def as_set(q: Query) -> Query:
    """The query under set semantics: ⊎ and max become ∪, and ΠA drops duplicates.

    >>> R, S = Table("R", ("a", "b")), Table("S", ("a", "b"))
    >>> print(as_set((R + S).project(["a"])))
    ε(Π[a](R max S))
    """

    expect(q, Node, "the query", A_QUERY)

    def in_sets(node: Query) -> Query | None:
        match node:
            case Project() | Unnest() | Full():  # ⟗ may pad one row of NULLs on either side
                return Distinct(node)
            case Literal(names, rows):
                return Literal(names, tuple(dict.fromkeys(rows)))
            case Plus(s, t):
                return s | t
            case Distinct(s):  # its input is a set already
                return s
            case _:
                return None

    return rebuild(q, in_sets)


def nabla(q: Query, c: Changes) -> Query:
    """∇(t, Q) for sets."""
    match q:
        case Table():  # ∇R if R is changed by t, else ∅
            return c.tables[q].removed if q in c.tables else Empty(q.scope)
        case Empty() | Literal():
            return Empty(q.scope)
        case Select(s, p):  # σp(∇S)
            return Select(c.nabla(s), p)
        case Distinct(Project(s, items, names)):  # ΠA(∇S) − ΠA(mod S)
            return _pi(c.nabla(s), items, names) - _pi(_mod(c, s), items, names)
        case Product() | Join():  # (∇S × T) ∪ (S × ∇T)
            s, t = q.s, q.t
            return gl95.times(q, c.nabla(s), t) | gl95.times(q, s, c.nabla(t))
        case Max(s, t):  # S ∪ T: (∇S − mod T) ∪ (∇T − mod S)
            return (c.nabla(s) - _mod(c, t)) | (c.nabla(t) - _mod(c, s))
        case Min(s, t):  # S ∩ T: (∇S ∩ T) ∪ (∇T ∩ S)
            return (c.nabla(s) & t) | (c.nabla(t) & s)
        case Monus(s, t):  # S − T: (∇S − T) ∪ (ΔT ∩ S)
            return (c.nabla(s) - t) | (c.delta(t) & s)
        case Semi() | Anti() | Left() | Right():
            return gk98.nabla(q, c) if gk98.covered(q) else gl95.nabla(q, c)
        case GroupBy() | Window() | Top():
            return aggregates.nabla(q, c)
        case Project() | Plus() | Distinct() | Unnest() | Full():  # below ε in set form: as bags
            return gl95.nabla(q, c)
        case Net():
            raise gl95.no_rule(q)
        case _:
            assert_never(q)


def delta(q: Query, c: Changes) -> Query:
    """Δ(t, Q) for sets."""
    match q:
        case Table():  # ΔR if R is changed by t, else ∅
            return c.tables[q].added if q in c.tables else Empty(q.scope)
        case Empty() | Literal():
            return Empty(q.scope)
        case Select(s, p):  # σp(ΔS)
            return Select(c.delta(s), p)
        case Distinct(Project(s, items, names)):  # ΠA(ΔS) − ΠA(S)
            return _pi(c.delta(s), items, names) - _pi(s, items, names)
        case Product() | Join():  # (mod S × ΔT) ∪ (ΔS × mod T)
            s, t = q.s, q.t
            right = gl95.times(q, _mod(c, s), c.delta(t))
            return right | gl95.times(q, c.delta(s), _mod(c, t))
        case Max(s, t):  # S ∪ T: (ΔS − T) ∪ (ΔT − S)
            return (c.delta(s) - t) | (c.delta(t) - s)
        case Min(s, t):  # S ∩ T: (ΔS ∩ mod T) ∪ (ΔT ∩ mod S)
            return (c.delta(s) & _mod(c, t)) | (c.delta(t) & _mod(c, s))
        case Monus(s, t):  # S − T: (ΔS − mod T) ∪ (∇T ∩ sub S)
            return (c.delta(s) - _mod(c, t)) | (c.nabla(t) & c.sub(s))
        case Semi() | Anti() | Left() | Right():
            return gk98.delta(q, c) if gk98.covered(q) else gl95.delta(q, c)
        case GroupBy() | Window() | Top():
            return aggregates.delta(q, c)
        case Project() | Plus() | Distinct() | Unnest() | Full():  # below ε in set form: as bags
            return gl95.delta(q, c)
        case Net():
            raise gl95.no_rule(q)
        case _:
            assert_never(q)


FIGURE_2 = Figure(nabla, delta)


def minimal(q: Query, pair: Pair) -> Pair:
    """Proposition 2: any solution becomes minimal. ∇₂ = (Q ∩ ∇₁) − Δ₁ and Δ₂ = Δ₁ − Q."""
    return Pair((q & pair.removed) - pair.added, pair.added - q)


def _mod(c: Changes, q: Query) -> Query:
    """mod(t, Q) = (Q − ∇Q) ∪ ΔQ."""
    return c.sub(q) | c.delta(q)


def _pi(s: Query, items: tuple, names: tuple[str, ...]) -> Query:  # type: ignore[type-arg]
    """ΠA on sets."""
    return Distinct(Project(s, items, names))
