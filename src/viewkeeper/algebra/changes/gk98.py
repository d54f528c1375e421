"""Griffin & Kumar 1998: semi, anti and outer joins.

D1–D5 define the operators by the others; figure 4 gives ∇ and Δ. The paper treats sets, and
equality of equally named columns. There a row of T is *loyal* if no friend (a row with equal join
columns) stays behind: ∇T ▷ Tᵐ. For any condition p we say the same from S's side,

    S ⋉ (∇T ▷ Tᵐ)   becomes   (S ⋉p ∇T) ▷p Tᵐ        (``deserted``: all partners left)
    S ⋉ (ΔT ▷ T)    becomes   (S ⋉p ΔT) ▷p T         (``engaged``: the first partner came)

and prove it for bags by cases on "has x a partner before, and after":

    ∇(S ⋉ T):  yes, yes: ∇S    yes, no: S      otherwise nothing
    Δ(S ⋉ T):  yes, yes: ΔS    no, yes: Sᵐ     otherwise nothing

and likewise for ▷ with the answers exchanged. The outer joins follow by D3–D5 and the rule of ⊎,
which cancels a NULL-padded row against an equal joined row.

Doubts: the text of figure 4 reads ∇(S ⋉ T) with a last term ∇S ⋉ (ΔT ▷ T); such rows are not in
the old S ⋉ T. ∇S ⋉ (ΔT ⋉ T), friends among the old rows, is right, and is what ``nabla`` has.
"""

from __future__ import annotations

from viewkeeper.algebra.changes.propagation import Changes, Pair, padded, padded_left
from viewkeeper.algebra.nodes import (
    Anti,
    Distinct,
    Full,
    Join,
    Joined,
    Left,
    Project,
    Query,
    Right,
    Semi,
)
from viewkeeper.algebra.pool import assert_never
from viewkeeper.algebra.scalars import Call, Col, Scalar, conjunction, conjuncts, replace_columns

# ── Definitions ──────────────────────────────────────────────────────────────────────────────────


def definition(q: Semi | Anti | Left | Right | Full) -> Query:
    """The derived operator by its definition, on bags.

    D1 reads S ⋉ T = Π[S](S ⋈ T) on sets; on bags a row of S must keep its own multiplicity, so the
    projection becomes S min-ed with it: S ⋉ T = S ∸ (S ∸ (S × …)), written here by ▷ and ∸.
    """
    match q:
        case Semi(s, t, on):  # S ⋉ T = S ∸ (S ▷ T)                                           D1
            return s - Anti(s, t, on)
        case Anti(s, t, on):  # S ▷ T = S ∸ (S ⋉ T)                                           D2
            return s - Semi(s, t, on)
        case Left(s, t, on):  # S ⟕ T = (S ⋈ T) ⊎ ((S ▷ T) × {d_T})                           D3
            return Join(s, t, on) + padded(Anti(s, t, on), t)
        case Right(s, t, on):  # S ⟖ T = (S ⋈ T) ⊎ ({d_S} × (T ▷ S))                          D4
            return Join(s, t, on) + padded_left(s, Anti(t, s, flip(on, s.arity, t.arity)))
        case Full(s, t, on):  # S ⟗ T = (S ⟕ T) ⊎ ({d_S} × (T ▷ S))                           D5
            return Left(s, t, on) + padded_left(s, Anti(t, s, flip(on, s.arity, t.arity)))
        case _:
            assert_never(q)


def set_definition(q: Semi) -> Query:
    """D1 as printed, for sets: S ⋉ T = Π[S](S ⋈ T)."""
    columns = tuple(Col(i) for i in range(q.s.arity))
    return Distinct(Project(Join(q.s, q.t, q.on), columns, q.s.columns))


def flip(on: Scalar, left: int, right: int) -> Scalar:
    """The same condition with the two sides exchanged."""
    return replace_columns(on, lambda i: Col(i + right if i < left else i - left))


# ── Bags, any condition ──────────────────────────────────────────────────────────────────────────


def deserted(s: Query, t: Query, c: Changes, on: Scalar) -> Query:
    """(S ⋉ ∇T) ▷ Tᵐ: the rows of s that lose their last partner."""
    return Anti(Semi(s, c.nabla(t), on), c.mod(t), on)


def engaged(s: Query, t: Query, c: Changes, on: Scalar) -> Query:
    """(S ⋉ ΔT) ▷ T: the rows of s that get their first partner."""
    return Anti(Semi(s, c.delta(t), on), t, on)


def bag_nabla(q: Semi | Anti, c: Changes) -> Query:
    """∇Q for bags."""
    match q:
        case Semi(s, t, on):  # (∇S ⋉ T) ⊎ (((del S) ⋉ ∇T) ▷ Tᵐ)
            return Semi(c.nabla(s), t, on) + deserted(c.sub(s), t, c, on)
        case Anti(s, t, on):  # (∇S ▷ T) ⊎ (((del S) ⋉ ΔT) ▷ T)
            return Anti(c.nabla(s), t, on) + engaged(c.sub(s), t, c, on)
        case _:
            assert_never(q)


def bag_delta(q: Semi | Anti, c: Changes) -> Query:
    """ΔQ for bags."""
    match q:
        case Semi(s, t, on):  # (ΔS ⋉ Tᵐ) ⊎ (((del S) ⋉ ΔT) ▷ T)
            return Semi(c.delta(s), c.mod(t), on) + engaged(c.sub(s), t, c, on)
        case Anti(s, t, on):  # (ΔS ▷ Tᵐ) ⊎ (((del S) ⋉ ∇T) ▷ Tᵐ)
            return Anti(c.delta(s), c.mod(t), on) + deserted(c.sub(s), t, c, on)
        case _:
            assert_never(q)


def bag_outer(q: Left | Right | Full, inner: Pair, c: Changes) -> Pair:
    """The change of an outer join, from that of its inner join and those of its anti joins.

    By D3–D5 an outer join is A ⊎ B, so ∇ = (∇A ∸ ΔB) ⊎ (∇B ∸ ΔA) and Δ = (ΔA ∸ ∇B) ⊎ (ΔB ∸ ∇A).
    """
    removed, added = inner
    alone: list[Pair] = []
    if isinstance(q, (Left, Full)):  # B = (S ▷ T) × {d_T}
        a = Anti(q.s, q.t, q.on)
        alone.append(Pair(padded(bag_nabla(a, c), q.t), padded(bag_delta(a, c), q.t)))
    if isinstance(q, (Right, Full)):  # B = {d_S} × (T ▷ S)
        a = Anti(q.t, q.s, flip(q.on, q.s.arity, q.t.arity))
        alone.append(Pair(padded_left(q.s, bag_nabla(a, c)), padded_left(q.s, bag_delta(a, c))))
    for gone, come in alone:
        removed, added = (removed - come) + (gone - added), (added - gone) + (come - removed)
    return Pair(removed, added)


# ── Figure 4: sets, equality of columns ──────────────────────────────────────────────────────────


def nabla(q: Semi | Anti | Left | Right | Full, c: Changes) -> Query:
    """∇Q as in figure 4."""
    match q:
        case Semi(s, t, on):  # (S ⋉ (∇T ▷ Tᵐ)) ∪ (∇S ⋉ (T − ∇T)) ∪ (∇S ⋉ (ΔT ⋉ T))
            lost: Query = Semi(s, _loyal(c.nabla(t), c.mod(t), on, s), on)
            near = Semi(c.delta(t), t, friends(on, s.arity, t.arity))
            return (lost | Semi(c.nabla(s), c.sub(t), on)) | Semi(c.nabla(s), near, on)
        case Anti(s, t, on):  # ((S − ∇S) ⋉ (ΔT ▷ T)) ∪ (∇S ▷ T)
            return Semi(c.sub(s), _loyal(c.delta(t), t, on, s), on) | Anti(c.nabla(s), t, on)
        case Left(s, t, on):  # (∇S ⟕ T) ∪ (S ⋈ ∇T) ∪ (((S − ∇S) ⋉ (ΔT ▷ T)) × {d_T})
            gained: Query = padded(Semi(c.sub(s), _loyal(c.delta(t), t, on, s), on), t)
            return (Left(c.nabla(s), t, on) | Join(s, c.nabla(t), on)) | gained
        case Right(s, t, on):  # (S ⟖ ∇T) ∪ (∇S ⋈ T) ∪ ({d_S} × ((T − ∇T) ⋉ (ΔS ▷ S)))
            no = flip(on, s.arity, t.arity)
            gained = padded_left(s, Semi(c.sub(t), _loyal(c.delta(s), s, no, t), no))
            return (Right(s, c.nabla(t), on) | Join(c.nabla(s), t, on)) | gained
        case Full(s, t, on):  # (∇S ⟕ T) ∪ (S ⟖ ∇T) ∪ the last terms of ⟕ and ⟖
            no = flip(on, s.arity, t.arity)
            left = padded(Semi(c.sub(s), _loyal(c.delta(t), t, on, s), on), t)
            right = padded_left(s, Semi(c.sub(t), _loyal(c.delta(s), s, no, t), no))
            return (Left(c.nabla(s), t, on) | Right(s, c.nabla(t), on)) | (left | right)
        case _:
            assert_never(q)


def delta(q: Semi | Anti | Left | Right | Full, c: Changes) -> Query:
    """ΔQ as in figure 4."""
    match q:
        case Semi(s, t, on):  # ((S − ∇S) ⋉ (ΔT ▷ T)) ∪ (ΔS ⋉ Tᵐ)
            return Semi(c.sub(s), _loyal(c.delta(t), t, on, s), on) | Semi(c.delta(s), c.mod(t), on)
        case Anti(s, t, on):  # ((S − ∇S) ⋉ (∇T ▷ Tᵐ)) ∪ (ΔS ▷ Tᵐ)
            lost: Query = Semi(c.sub(s), _loyal(c.nabla(t), c.mod(t), on, s), on)
            return lost | Anti(c.delta(s), c.mod(t), on)
        case Left(s, t, on):  # (ΔS ⟕ Tᵐ) ∪ (Sᵐ ⋈ ΔT) ∪ (((S − ∇S) ⋉ (∇T ▷ Tᵐ)) × {d_T})
            lost = padded(Semi(c.sub(s), _loyal(c.nabla(t), c.mod(t), on, s), on), t)
            return (Left(c.delta(s), c.mod(t), on) | Join(c.mod(s), c.delta(t), on)) | lost
        case Right(s, t, on):  # (Sᵐ ⟖ ΔT) ∪ (ΔS ⋈ Tᵐ) ∪ ({d_S} × ((T − ∇T) ⋉ (∇S ▷ Sᵐ)))
            no = flip(on, s.arity, t.arity)
            lost = padded_left(s, Semi(c.sub(t), _loyal(c.nabla(s), c.mod(s), no, t), no))
            return (Right(c.mod(s), c.delta(t), on) | Join(c.delta(s), c.mod(t), on)) | lost
        case Full(s, t, on):  # (ΔS ⟕ Tᵐ) ∪ (Sᵐ ⟖ ΔT) ∪ the last terms of ⟕ and ⟖
            no = flip(on, s.arity, t.arity)
            left = padded(Semi(c.sub(s), _loyal(c.nabla(t), c.mod(t), on, s), on), t)
            right = padded_left(s, Semi(c.sub(t), _loyal(c.nabla(s), c.mod(s), no, t), no))
            both = Left(c.delta(s), c.mod(t), on) | Right(c.mod(s), c.delta(t), on)
            return both | (left | right)
        case _:
            assert_never(q)


def covered(q: Joined) -> bool:
    """Is the condition one of figure 4's: equality of columns, and nothing else?"""
    parts = conjuncts(q.on)
    return bool(parts) and all(_equal_columns(p, q.s.arity) is not None for p in parts)


def _equal_columns(p: Scalar, arity: int) -> int | None:
    """The right column of left.i = right.j; None for any other predicate."""
    if not (isinstance(p, Call) and p.op == "="):
        return None
    a, b = p.args
    if not (isinstance(a, Col) and isinstance(b, Col)):
        return None
    low, high = sorted((a.index, b.index))
    return high if low < arity <= high else None


def _loyal(left_behind: Query, kept: Query, on: Scalar, s: Query) -> Query:
    """X ▷ T: the rows of X without a friend in T."""
    return Anti(left_behind, kept, friends(on, s.arity, kept.arity))


def friends(on: Scalar, arity: int, right: int) -> Scalar:
    """Equality of the right side's join columns, between two bags of the right side's rows."""
    columns = sorted({j - arity for p in conjuncts(on) if (j := _equal_columns(p, arity))})
    return conjunction([Call("=", (Col(i), Col(right + i))) for i in columns])
