"""The signed change from the present state: what a refresh computes.

As ``algebra.changes.signed``, but over the new tables (R@new) and the changes (±R) alone: an old
state is the new one less the change, Sold = Snew − dS, so no old version of a table is read.

    d(I₁ ⋈ I₂ ⋈ …)   one term per changed input i: dIᵢ ⋈ new of those before it ⋈ old of those after
    d(S ⋉ T)          dS ⋉ Told  +  X ⋉ Tnew − X ⋉ Told,   X = Snew ⋉ dT
    d f(S)            f(Snew ⋉ K) − f(Sold ⋉ K),            K = keys of dS   (ε ∸ min max Γ ω τ)

Old partners and groups are looked up for the touched keys only: Told ⋉ K = net((Tnew ⋉ K) − dT).
"""

from __future__ import annotations

from collections.abc import Collection

from viewkeeper.algebra.changes.aggregates import keys_of
from viewkeeper.algebra.changes.gk98 import flip
from viewkeeper.algebra.changes.gl95 import no_rule
from viewkeeper.algebra.changes.propagation import padded, padded_left
from viewkeeper.algebra.changes.signed import WEIGHT, minus, negated, plus, rows
from viewkeeper.algebra.meaning import equalities
from viewkeeper.algebra.nodes import (
    NEW,
    SIGNED,
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
    children,
    with_children,
)
from viewkeeper.algebra.pool import assert_never
from viewkeeper.algebra.scalars import Col, Scalar, columns_of, replace_columns, shift
from viewkeeper.algebra.walk import postorder
from viewkeeper.plan.clusters import Cluster, Part, assemble, cluster
from viewkeeper.plan.restrict import restrict


class Present:
    """The signed changes of a query's nodes, and the nodes over the new tables."""

    def __init__(self, query: Query, changed: Collection[str]) -> None:
        self.changed = frozenset(changed)
        self._new: dict[Query, Query] = {}
        self._change: dict[Query, Query | None] = {}
        for q in postorder(query):
            self._new[q] = self._at_new(q)
            self._change[q] = self._signed(q) if self._touched(q) else None

    def new(self, q: Query) -> Query:
        """The node over the new tables."""
        return self._new[q]

    def change(self, q: Query) -> Query | None:
        """The signed change of the node; None where it cannot change."""
        return self._change[q]

    def _at_new(self, q: Query) -> Query:
        if isinstance(q, Table):
            return Table(q.name, q.names, NEW) if q.state == "" else q
        return with_children(q, tuple(self._new[c] for c in children(q)))

    def _touched(self, q: Query) -> bool:
        if isinstance(q, Table):
            return q.state == "" and q.name in self.changed
        return any(self._change[c] is not None for c in children(q))

    # ── the rules ──

    def _signed(self, q: Query) -> Query | None:
        match q:
            case Table(name, names, _):
                return Table(name, names, SIGNED)
            case Empty() | Literal():
                return None
            case Select(s, p):
                c = cluster(q)
                return self._cluster(c) if len(c.inputs) > 1 else Select(self._d(s), p)
            case Project(s, items, names):
                c = cluster(q)
                if len(c.inputs) > 1:
                    return self._cluster(c)
                return Project(self._d(s), (*items, Col(s.arity)), (*names, WEIGHT))
            case Plus(s, t):
                return _sum(self.change(s), self.change(t))
            case Product() | Join():
                return self._cluster(cluster(q))
            case Semi(s, t, on) | Anti(s, t, on):
                return self._partnered(q, s, t, on)
            case Left(s, t, on):
                alone = self._partnered(_anti(s, t, on), s, t, on)
                return _sum(self._inner(q), _weight_last(padded(alone, t), s.arity))
            case Right(s, t, on):
                return _sum(self._inner(q), padded_left(s, self._flipped(s, t, on)))
            case Full(s, t, on):
                alone = self._partnered(_anti(s, t, on), s, t, on)
                left = _weight_last(padded(alone, t), s.arity)
                right = padded_left(s, self._flipped(s, t, on))
                return _sum(_sum(self._inner(q), left), right)
            case Unnest(s, generator, names, outer):
                return _weight_last(Unnest(self._d(s), generator, names, outer), s.arity)
            case Distinct(s):
                return self._again(q, (s,), tuple(range(q.arity)))
            case Monus(s, t) | Min(s, t) | Max(s, t):
                return self._again(q, (s, t), tuple(range(q.arity)))
            case GroupBy() | Window() | Top():
                return self._again(q, (q.s,), keys_of(q))
            case Net():
                raise no_rule(q)
            case _:
                assert_never(q)

    def _d(self, q: Query) -> Query:
        found = self._change[q]
        assert found is not None
        return found

    def _inner(self, q: Left | Right | Full) -> Query | None:
        """The change of the inner join inside an outer join."""
        return self._cluster(cluster(Join(q.s, q.t, q.on)))

    def _cluster(self, c: Cluster) -> Query:
        """Σᵢ dIᵢ ⋈ new of the changed inputs before it ⋈ old of those after it."""
        self._see(c)
        changed = [i for i, q in enumerate(c.inputs) if self._change[q] is not None]
        terms: Query | None = None
        for i in changed:
            parts = []
            for j, q in enumerate(c.inputs):
                if j == i:
                    parts.append(Part(self._d(q), weighted=True))
                elif j in changed and j > i:
                    old = Plus(plus(self._new[q]), negated(self._d(q)))
                    parts.append(Part(old, weighted=True))
                else:
                    parts.append(Part(self._new[q], weighted=False))
            term = assemble(c, parts, [i])
            terms = term if terms is None else terms + term
        assert terms is not None
        return terms

    def _see(self, c: Cluster) -> None:
        """The inputs of a cluster are nodes below its root, so they have been seen already."""
        assert all(q in self._change for q in c.inputs)

    def _partnered(self, q: Semi | Anti, s: Query, t: Query, on: Scalar) -> Query:
        """d(S ⋉ T) = (dS ⋉ Told) + (X ⋉ Tnew) − (X ⋉ Told), X = Snew ⋉ dT; ▷ likewise."""
        ds, dt = self._change[s], self._change[t]
        node = type(q)
        found: Query | None = None
        if ds is not None:
            old = self._partners_of(rows(ds), t, on, s.arity)
            found = node(ds, old, _skip_weight(on, s.arity))
        if dt is not None:
            partners = rows(dt)
            x = self._with_partners(s, partners, on)
            new_t = _narrow(self._new[t], x, on, s.arity)
            old_t = self._partners_of(x, t, on, s.arity)
            found = _sum(found, plus(node(x, new_t, on)) + minus(node(x, old_t, on)))
        assert found is not None
        return found

    def _with_partners(self, s: Query, partners: Query, on: Scalar) -> Query:
        """X = Snew ⋉ dT, by the keys of dT where the condition has any."""
        pairs, _ = equalities(on, s.arity)
        plain = [(a.index, b) for a, b, safe in pairs if isinstance(a, Col) and columns_of(b)]
        x = self._new[s]
        if plain:
            items = tuple(shift(b, -s.arity) for _, b in plain)
            keys = Distinct(Project(partners, items, tuple(f"k{i}" for i in range(len(items)))))
            x = restrict(x, tuple(a for a, _ in plain), keys)
        return Semi(x, partners, on)

    def _partners_of(self, left: Query, t: Query, on: Scalar, arity: int) -> Query:
        """Told, as far as the rows of ``left`` can see it."""
        new = _narrow(self._new[t], left, on, arity)
        dt = self._change[t]
        if dt is None:
            return new
        gone = _narrow(dt, left, on, arity)
        return Net(Plus(plus(new), negated(gone)))

    def _flipped(self, s: Query, t: Query, on: Scalar) -> Query:
        """The change of T ▷ S."""
        no = flip(on, s.arity, t.arity)
        return self._partnered(_anti(t, s, no), t, s, no)

    def _again(self, q: Query, inputs: tuple[Query, ...], keys: tuple[int, ...]) -> Query:
        """f(Snew ⋉ K) − f(Sold ⋉ K)."""
        k = touched_keys([d for i in inputs if (d := self._change[i]) is not None], keys)
        new = [restrict(self._new[i], keys, k) for i in inputs]
        old = []
        for i, now in zip(inputs, new, strict=True):
            d = self._change[i]
            # every row of dS has a key in K
            old.append(now if d is None else Net(Plus(plus(now), negated(d))))
        return plus(with_children(q, tuple(new))) + minus(with_children(q, tuple(old)))


def signed_change(q: Query, changed: Collection[str]) -> Query:
    """The signed change of a query over R@new and ±R: its columns and a weight.

    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a"]), al.table("S", ["b"])
    >>> print(signed_change(R.join(S, "a = b"), ["S"]))
    Π[a, b, weight](±S ⋈[a = b] R@new)
    """
    found = Present(q, changed).change(q)
    return Empty(plus(q).scope) if found is None else found


def touched_keys(changes: list[Query], keys: tuple[int, ...]) -> Query:
    """K: the distinct keys of signed changes."""
    projected = [
        Project(d, tuple(Col(k) for k in keys), tuple(d.columns[k] for k in keys)) for d in changes
    ]
    whole: Query = projected[0]
    for p in projected[1:]:
        whole = whole + p
    return Distinct(whole)


def _narrow(t: Query, left: Query, on: Scalar, arity: int) -> Query:
    """The rows of T that the rows of ``left`` can be partners of, by the equalities of ``on``.

    T may have a weight after its columns. A small left side thus never meets a large right one.
    """
    pairs, _ = equalities(on, arity)
    plain = [(a, b.index - arity) for a, b, _ in pairs if isinstance(b, Col) and columns_of(a)]
    if not plain:
        return t
    items = tuple(a for a, _ in plain)
    keys = Distinct(Project(left, items, tuple(f"k{i}" for i in range(len(items)))))
    return restrict(t, tuple(b for _, b in plain), keys)


def _anti(s: Query, t: Query, on: Scalar) -> Anti:
    made = Anti(s, t, on)
    assert isinstance(made, Anti)
    return made


def _sum(a: Query | None, b: Query | None) -> Query:
    if a is None or b is None:
        found = a or b
        assert found is not None
        return found
    return a + b


def _skip_weight(on: Scalar, arity: int) -> Scalar:
    return replace_columns(on, lambda i: Col(i if i < arity else i + 1))


def _weight_last(q: Query, place: int) -> Query:
    order = [i for i in range(q.arity) if i != place] + [place]
    return Project(q, tuple(Col(i) for i in order), tuple(q.columns[i] for i in order))
