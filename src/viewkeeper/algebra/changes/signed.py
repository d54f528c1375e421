"""The signed change: one stream of rows with a weight in the last column, for speed.

It means the same as the papers' pair: ``net`` of it is ΔQ, ``net`` of its negation is ∇Q. Its
leaves are ∇R and ΔR and the two states R@old and R@new, so a join needs one term per changed
input, where the pair has up to six:

    d(S ⋈ T) = dS ⋈ Tnew  +  Sold ⋈ dT                             (s't' − st = (s'−s)t' + s(t'−t))

σ Π ⊎ pass the weights through. Semi, anti and outer joins are linear in S; where T changes, only
rows of Sold with a partner in dT can gain or lose: X = Sold ⋉ dT. The operators that compare
multiplicities (ε ∸ min max) and Γ are computed again for the touched rows or groups K, before and
after: f(Snew ⋉ K) − f(Sold ⋉ K).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from viewkeeper.algebra.changes.aggregates import keys_of
from viewkeeper.algebra.changes.gk98 import flip
from viewkeeper.algebra.changes.gl95 import no_rule
from viewkeeper.algebra.changes.propagation import Pair, padded, padded_left, table_change
from viewkeeper.algebra.nodes import (
    NEW,
    OLD,
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
    children,
    with_children,
)
from viewkeeper.algebra.pool import assert_never
from viewkeeper.algebra.scalars import Col, Const, Scalar, call, equal_columns, replace_columns
from viewkeeper.algebra.scope import A_QUERY, expect
from viewkeeper.algebra.walk import postorder

WEIGHT = "weight"


def signed(q: Query, changed: Iterable[str]) -> Query:
    """The signed change of a query: its columns and a weight.

    >>> R, S = Table("R", ("a",)), Table("S", ("a",))
    >>> print(signed(R.product(S), ["R"]))
    Π[R.a, S.a, weight]((Π[a, 1 AS weight](ΔR) ⊎ Π[a, (-1) AS weight](∇R)) × S)
    """
    expect(q, Node, "the query", A_QUERY)
    expect(changed, Iterable, "the list of changed tables")
    names = frozenset([changed] if isinstance(changed, str) else changed)
    for name in names:
        expect(name, str, "the name of a changed table")
    terms = _Terms(names)
    for node in postorder(q):
        terms.change[node] = terms.signed(node)
    found = terms.change[q]
    return Empty(plus(q).scope) if found is None else found


def net(change: Query) -> Pair:
    """The papers' pair from a signed change: ∇Q = net(−dQ) and ΔQ = net(dQ)."""
    expect(change, Node, "the change", A_QUERY)
    return Pair(Net(negated(change)), Net(change))


def plus(q: Query) -> Query:
    """The rows of q with weight 1."""
    return _weighted(q, Const(1))


def minus(q: Query) -> Query:
    """The rows of q with weight −1."""
    return _weighted(q, Const(-1))


def negated(change: Query) -> Query:
    """The same rows with opposite weights."""
    last = change.arity - 1
    items = (*(Col(i) for i in range(last)), call("neg", Col(last)))
    return Project(change, items, change.columns)


def rows(change: Query) -> Query:
    """The rows of a signed change, whatever their weights."""
    last = change.arity - 1
    return Project(change, tuple(Col(i) for i in range(last)), change.columns[:last])


def _weighted(q: Query, weight: Scalar) -> Query:
    return Project(q, (*(Col(i) for i in range(q.arity)), weight), (*q.columns, WEIGHT))


class _Terms:
    """The signed changes of the nodes seen so far; None where nothing changes."""

    def __init__(self, changed: frozenset[str]) -> None:
        self.changed = changed
        self.change: dict[Query, Query | None] = {}
        self.states: dict[str, dict[Query, Query]] = {OLD: {}, NEW: {}}

    def state(self, q: Query, state: str) -> Query:
        """The node over old or new tables, sharing what is shared."""
        done = self.states[state]
        for node in postorder(q) if q not in done else ():
            if node not in done:
                done[node] = at_node(node, state, self.changed, done)
        return done[q]

    def signed(self, q: Query) -> Query | None:
        match q:
            case Table(name, _, ""):
                if name not in self.changed:
                    return None
                gone, come = table_change(q)
                return plus(come) + minus(gone)
            case Table() | Empty() | Literal():
                return None
            case Select(s, p):  # d σp(S) = σp(dS)
                ds = self.change[s]
                return ds and Select(ds, p)
            case Project(s, items, names):  # d Π(S) = Π(dS)
                ds = self.change[s]
                return ds and Project(ds, (*items, Col(s.arity)), (*names, WEIGHT))
            case Plus(s, t):  # d(S ⊎ T) = dS + dT
                ds, dt = self.change[s], self.change[t]
                return _sum(ds, dt) if ds else dt and _named(dt, (*q.columns, WEIGHT))
            case Product() | Join():
                return self.joined(q)
            case Semi(s, t, on) | Anti(s, t, on):
                return self.partnered(type(q), s, t, on)
            case Left(s, t, on):  # D3
                alone = self.partnered(Anti, s, t, on)
                return _sum(self.joined(q), alone and _padded(alone, s, t))
            case Right(s, t, on):  # D4
                alone = self.flipped(s, t, on)
                return _sum(self.joined(q), alone and padded_left(s, alone))
            case Full(s, t, on):  # D5
                left = self.partnered(Anti, s, t, on)
                right = self.flipped(s, t, on)
                both = _sum(self.joined(q), left and _padded(left, s, t))
                return _sum(both, right and padded_left(s, right))
            case Distinct(s):
                return self.touched(q, (s,), tuple(range(q.arity)))
            case Monus(s, t) | Min(s, t) | Max(s, t):
                return self.touched(q, (s, t), tuple(range(q.arity)))
            case GroupBy() | Window() | Top():
                return self.touched(q, (q.s,), keys_of(q))
            case Unnest(s, generator, names, outer):  # row by row, as Π
                ds = self.change[s]
                return ds and _weight_last(Unnest(ds, generator, names, outer), s.arity)
            case Net():
                raise no_rule(q)
            case _:
                assert_never(q)

    def joined(self, q: Product | Join | Left | Right | Full) -> Query | None:
        """dS ⋈ Tnew + Sold ⋈ dT: one term per changed input."""
        s, t = q.s, q.t
        ds, dt = self.change[s], self.change[t]
        on = None if isinstance(q, Product) else q.on
        left = ds and _weight_last(_pair_up(ds, self.state(t, NEW), on, s.arity, 1), s.arity)
        right = dt and _pair_up(self.state(s, OLD), dt, on, s.arity, 0)
        return _sum(left, right)

    def partnered(
        self, node: type[Semi] | type[Anti], s: Query, t: Query, on: Scalar
    ) -> Query | None:
        """d(S ⋉ T) = (dS ⋉ Tnew) + (X ⋉ Tnew) − (X ⋉ Told), with X = Sold ⋉ dT; ▷ likewise."""
        ds, dt = self.change[s], self.change[t]
        left = ds and node(ds, self.state(t, NEW), _skip_weight(on, s.arity))
        if dt is None:
            return left
        x = Semi(self.state(s, OLD), rows(dt), on)
        right = plus(node(x, self.state(t, NEW), on)) + minus(node(x, self.state(t, OLD), on))
        return _sum(left, right)

    def flipped(self, s: Query, t: Query, on: Scalar) -> Query | None:
        """The change of T ▷ S."""
        no = flip(on, s.arity, t.arity)
        return self.partnered(Anti, t, s, no)

    def touched(self, q: Query, inputs: tuple[Query, ...], keys: tuple[int, ...]) -> Query | None:
        """f(Snew ⋉ K) − f(Sold ⋉ K), K being the keys of the inputs' changes."""
        changes = [d for i in inputs if (d := self.change[i]) is not None]
        if not changes:
            return None
        k = Distinct(_union([_keys_of(d, keys) for d in changes]))

        def restricted(state: str) -> Query:
            states = [self.state(i, state) for i in inputs]
            if keys:
                on = equal_columns(keys, tuple(range(len(keys))), inputs[0].arity)
                states = [Semi(i, k, on) for i in states]
            return with_children(q, tuple(states))

        return plus(restricted(NEW)) + minus(restricted(OLD))


def at_node(node: Query, state: str, changed: Collection[str], done: dict[Query, Query]) -> Query:
    """One node over old or new tables, its inputs being done."""
    if isinstance(node, Table):
        plain = node.state == "" and node.name in changed
        return Table(node.name, node.names, state) if plain else node
    return with_children(node, tuple(done[c] for c in children(node)))


def _sum(a: Query | None, b: Query | None) -> Query | None:
    if a is None or b is None:
        return a or b
    return a + b


def _named(q: Query, names: tuple[str, ...]) -> Query:
    return q if q.columns == names else Project(q, tuple(Col(i) for i in range(q.arity)), names)


def _union(queries: list[Query]) -> Query:
    whole = queries[0]
    for q in queries[1:]:
        whole = whole + q
    return whole


def _keys_of(change: Query, keys: tuple[int, ...]) -> Query:
    return Project(change, tuple(Col(k) for k in keys), tuple(change.columns[k] for k in keys))


def _pair_up(s: Query, t: Query, on: Scalar | None, arity: int, extra: int) -> Query:
    """S × T or S ⋈ T where S has ``extra`` columns after its own ``arity``."""
    if on is None:
        return Product(s, t)
    return Join(s, t, _skip_weight(on, arity) if extra else on)


def _skip_weight(on: Scalar, arity: int) -> Scalar:
    """The condition when a weight stands between the left and the right columns."""
    return replace_columns(on, lambda i: Col(i if i < arity else i + 1))


def _weight_last(q: Query, place: int) -> Query:
    """The weight moved from its place to the end."""
    order = [i for i in range(q.arity) if i != place] + [place]
    names = q.columns
    return Project(q, tuple(Col(i) for i in order), tuple(names[i] for i in order))


def _padded(alone: Query, s: Query, t: Query) -> Query:
    """(dS' × {d_T}) with the weight last."""
    return _weight_last(padded(alone, t), s.arity)
