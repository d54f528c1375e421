"""Griffin & Libkin 1995, figure 3: strongly minimal ∇ and Δ for bags (Theorem 3).

For every transaction t that is strongly minimal on the tables:

    1. pre(t, Q) = (Q ∸ ∇Q) ⊎ ΔQ       2. ∇Q ∸ Q = ∅       3. ∇Q min ΔQ = ∅

Extensions beyond the figure: S ⋈ T = σ(S × T) has the rule of × with ⋈ in its place; the rules of
the semi, anti and outer joins are in ``gk98``; Γ is in ``aggregates``.
"""

from __future__ import annotations

from viewkeeper.algebra.changes import aggregates, gk98
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
from viewkeeper.errors import ChangeError


def nabla(q: Query, c: Changes) -> Query:
    """∇(t, Q): what the transaction removes from Q."""
    match q:
        case Table():  # ∇R if R is changed by t, else ∅                                      ∇1
            return c.tables[q].removed if q in c.tables else Empty(q.scope)
        case Empty() | Literal():  # ∅: constants do not change
            return Empty(q.scope)
        case Select(s, p):  # σp(∇S)                                                          ∇2
            return Select(c.nabla(s), p)
        case Project(s, items, names):  # ΠA(∇S) ∸ ΠA(ΔS)                                     ∇3
            return Project(c.nabla(s), items, names) - Project(c.delta(s), items, names)
        case Plus(s, t):  # (∇S ∸ ΔT) ⊎ (∇T ∸ ΔS)                                             ∇4
            return (c.nabla(s) - c.delta(t)) + (c.nabla(t) - c.delta(s))
        case Monus(s, t):  # ((∇S ∸ ∇T) ⊎ (ΔT ∸ ΔS)) min Q                                    ∇5
            return ((c.nabla(s) - c.nabla(t)) + (c.delta(t) - c.delta(s))) & q
        case Min(s, t):  # (∇S ∸ (S ∸ T)) max (∇T ∸ (T ∸ S))                                  ∇6
            return (c.nabla(s) - (s - t)) | (c.nabla(t) - (t - s))
        case Max(s, t):  # (∇S ⊎ (∇T min (T ∸ add S))) min (∇T ⊎ (∇S min (S ∸ add T)))        ∇7
            by_s = c.nabla(s) + (c.nabla(t) & (t - c.add(s)))
            by_t = c.nabla(t) + (c.nabla(s) & (s - c.add(t)))
            return by_s & by_t
        case Distinct(s):  # ε(∇S) ∸ del S                                                    ∇8
            return Distinct(c.nabla(s)) - c.sub(s)
        case Product() | Join():  # (∇S × ∇T) ⊎ ((del S × ∇T) ∸ (ΔS × del T))
            #                                 ⊎ ((∇S × del T) ∸ (del S × ΔT))                 ∇9
            s, t = q.s, q.t
            both = times(q, c.nabla(s), c.nabla(t))
            right = times(q, c.sub(s), c.nabla(t)) - times(q, c.delta(s), c.sub(t))
            left = times(q, c.nabla(s), c.sub(t)) - times(q, c.sub(s), c.delta(t))
            return (both + right) + left
        case Semi() | Anti():
            return gk98.bag_nabla(q, c)
        case Left() | Right() | Full():
            return gk98.bag_outer(q, inner_join(q, c), c).removed
        case GroupBy() | Window() | Top():
            return aggregates.nabla(q, c)
        case Unnest(s, generator, names, outer):  # row by row, as Π
            gone, come = (Unnest(d, generator, names, outer) for d in c[s])
            return gone - come
        case Net():
            raise no_rule(q)
        case _:
            assert_never(q)


def delta(q: Query, c: Changes) -> Query:
    """Δ(t, Q): what the transaction adds to Q."""
    match q:
        case Table():  # ΔR if R is changed by t, else ∅                                      Δ1
            return c.tables[q].added if q in c.tables else Empty(q.scope)
        case Empty() | Literal():  # ∅: constants do not change
            return Empty(q.scope)
        case Select(s, p):  # σp(ΔS)                                                          Δ2
            return Select(c.delta(s), p)
        case Project(s, items, names):  # ΠA(ΔS) ∸ ΠA(∇S)                                     Δ3
            return Project(c.delta(s), items, names) - Project(c.nabla(s), items, names)
        case Plus(s, t):  # (ΔS ∸ ∇T) ⊎ (ΔT ∸ ∇S)                                             Δ4
            return (c.delta(s) - c.nabla(t)) + (c.delta(t) - c.nabla(s))
        case Monus(s, t):  # ((ΔS ∸ ΔT) ⊎ (∇T ∸ ∇S)) ∸ (T ∸ S)                                Δ5
            return ((c.delta(s) - c.delta(t)) + (c.nabla(t) - c.nabla(s))) - (t - s)
        case Min(s, t):  # (ΔS ⊎ (ΔT min (del S ∸ T))) min (ΔT ⊎ (ΔS min (del T ∸ S)))        Δ6
            by_s = c.delta(s) + (c.delta(t) & (c.sub(s) - t))
            by_t = c.delta(t) + (c.delta(s) & (c.sub(t) - s))
            return by_s & by_t
        case Max(s, t):  # (ΔS ∸ (T ∸ S)) max (ΔT ∸ (S ∸ T))                                  Δ7
            return (c.delta(s) - (t - s)) | (c.delta(t) - (s - t))
        case Distinct(s):  # ε(ΔS) ∸ S                                                        Δ8
            return Distinct(c.delta(s)) - s
        case Product() | Join():  # (ΔS × ΔT) ⊎ ((del S × ΔT) ∸ (∇S × T))
            #                                 ⊎ ((ΔS × del T) ∸ (S × ∇T))                     Δ9
            s, t = q.s, q.t
            both = times(q, c.delta(s), c.delta(t))
            right = times(q, c.sub(s), c.delta(t)) - times(q, c.nabla(s), t)
            left = times(q, c.delta(s), c.sub(t)) - times(q, s, c.nabla(t))
            return (both + right) + left
        case Semi() | Anti():
            return gk98.bag_delta(q, c)
        case Left() | Right() | Full():
            return gk98.bag_outer(q, inner_join(q, c), c).added
        case GroupBy() | Window() | Top():
            return aggregates.delta(q, c)
        case Unnest(s, generator, names, outer):  # row by row, as Π
            gone, come = (Unnest(d, generator, names, outer) for d in c[s])
            return come - gone
        case Net():
            raise no_rule(q)
        case _:
            assert_never(q)


FIGURE_3 = Figure(nabla, delta)


def times(q: Product | Join, s: Query, t: Query) -> Query:
    """The same product or join, of other inputs."""
    return Product(s, t) if isinstance(q, Product) else Join(s, t, q.on)


def inner_join(q: Left | Right | Full, c: Changes) -> Pair:
    """The change of the inner join inside an outer join."""
    inner = Join(q.s, q.t, q.on)
    return Pair(nabla(inner, c), delta(inner, c))


def strongly_minimal(q: Query, pair: Pair) -> Pair:
    """Theorem 2: any solution becomes strongly minimal.

    ∇₂ = (Q min ∇₁) ∸ Δ₁ and Δ₂ = Δ₁ ∸ (Q min ∇₁).
    """
    really = q & pair.removed
    return Pair(really - pair.added, pair.added - really)


def no_rule(q: Query) -> ChangeError:
    """The error for operators that stand only in results of the rules, never in views."""
    return ChangeError(
        f"{type(q).__name__} has no change rule",
        hint="It is an operator of signed changes; take the change of the query below it.",
    )
