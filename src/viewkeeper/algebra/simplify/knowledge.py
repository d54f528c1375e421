"""What can be proved of queries from facts about tables: each proof is tried once and kept."""

from __future__ import annotations

from collections.abc import Iterator

from viewkeeper.algebra.nodes import (
    ADDED,
    NEW,
    OLD,
    REMOVED,
    SIGNED,
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Joined,
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
from viewkeeper.algebra.scalars import Col, Const
from viewkeeper.algebra.simplify.domains import (
    ANY,
    Domain,
    Domains,
    contradict,
    hull,
    hull_all,
    meet_all,
    of_predicate,
    where,
)
from viewkeeper.algebra.simplify.facts import Facts

_DEEPEST = 5  # how many steps a proof of ⊑ or of disjointness may take
_PROVED = 99
_MOST_KEYS = 4


class Knowledge:
    """Proofs about queries, under given facts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._domains: dict[Query, Domains | None] = {}
        self._keys: dict[Query, tuple[frozenset[int], ...]] = {}
        # for each pair: how deep a proof was sought in vain, or _PROVED
        self._contained: dict[tuple[Query, Query], int] = {}
        self._disjoint: dict[tuple[Query, Query], int] = {}
        self._given_contained = set(facts.contained)
        self._given_disjoint = {*facts.disjoint, *((t, s) for s, t in facts.disjoint)}

    # ── emptiness and domains ──

    def empty(self, q: Query) -> bool:
        """Is the query ∅ for every state?"""
        return isinstance(q, Empty) or self.domains(q) is None

    def domains(self, q: Query) -> Domains | None:
        """What holds of the columns of every row; None when there is no row."""
        if q in self._domains:
            return self._domains[q]
        stack = [q]
        while stack:  # inputs first, without recursion
            node = stack[-1]
            todo = [c for c in _inputs(node) if c not in self._domains]
            if todo:
                stack += todo
            else:
                stack.pop()
                if node not in self._domains:
                    self._domains[node] = self._domain(node)
        return self._domains[q]

    def _domain(self, q: Query) -> Domains | None:
        d = self._domains
        match q:
            case Table():
                check = self.facts.check(q) if self.facts.checks else None
                return {} if check is None else of_predicate(check)
            case Empty():
                return None
            case Literal(_, rows):
                return _of_rows(rows)
            case Select(s, p):
                return where(d[s], p)
            case Project(s, items, _):
                return _projected(d[s], items)
            case Plus(s, t) | Max(s, t):
                return hull_all(d[s], d[t])
            case Monus(s, _) | Distinct(s) | Top(s) | Window(s) | Unnest(s):
                return d[s]
            case Min(s, t):
                return meet_all(d[s], d[t])
            case Product(s, t):
                return _side_by_side(d[s], d[t], s.arity)
            case Join(s, t, on):
                return where(_side_by_side(d[s], d[t], s.arity), on)
            case Semi(s, t, on):
                pair = where(_side_by_side(d[s], d[t], s.arity), on)
                return pair and {c: v for c, v in pair.items() if c < s.arity}
            case Anti(s, _, _):
                return d[s]
            case Left(s, t, _):
                return None if d[s] is None else _side_by_side(d[s], _or_null(d[t]), s.arity)
            case Right(s, t, _):
                return None if d[t] is None else _side_by_side(_or_null(d[s]), d[t], s.arity)
            case Full(s, t, _):
                if d[s] is None and d[t] is None:
                    return None
                return _side_by_side(_or_null(d[s]), _or_null(d[t]), s.arity)
            case GroupBy(s, keys, _, _):
                if not keys:
                    return {}
                below = d[s]
                if below is None:
                    return None
                return {i: below[k] for i, k in enumerate(keys) if k in below}
            case Net(s):
                below = d[s]
                return below and {c: v for c, v in below.items() if c < q.arity}

    def strangers(self, q: Joined) -> bool:
        """Does no row of S with a row of T meet the condition?"""
        sides = _side_by_side(self.domains(q.s), self.domains(q.t), q.s.arity)
        return where(sides, q.on) is None

    # ── keys and duplicates ──

    def keys(self, q: Query) -> tuple[frozenset[int], ...]:
        """Sets of columns that no two rows share; each also means that there are no duplicates."""
        if q not in self._keys:
            stack = [q]
            while stack:
                node = stack[-1]
                todo = [c for c in _inputs(node) if c not in self._keys]
                if todo:
                    stack += todo
                else:
                    stack.pop()
                    if node not in self._keys:
                        self._keys[node] = tuple(dict.fromkeys(self._key(node)))[:_MOST_KEYS]
        return self._keys[q]

    def duplicate_free(self, q: Query) -> bool:
        """Does no row occur twice?"""
        return bool(self.keys(q))

    def _key(self, q: Query) -> Iterator[frozenset[int]]:
        k = self._keys
        whole = frozenset(range(q.arity))
        match q:
            case Table(name, _, state):
                # ±R may have a row of ∇R and one of ΔR with the same key, under other weights
                more = {q.arity - 1} if state == SIGNED else set()
                yield from (key | more for key in self.facts.keys_of(q))
                if name in self.facts.duplicate_free:
                    yield whole
            case Empty():
                yield frozenset()
            case Literal(_, rows):
                known = all(v == v for row in rows for v in row)  # NaN is one value to engines
                if known and len(set(rows)) == len(rows):
                    yield whole
            case Select(s, _) | Semi(s, _, _) | Anti(s, _, _) | Monus(s, _) | Top(s):
                yield from k[s]
            case Distinct(s):
                yield from k[s]
                yield whole
            case Project(s, items, _):
                kept = {item.index: i for i, item in enumerate(items) if isinstance(item, Col)}
                for key in k[s]:
                    if key <= kept.keys():
                        yield frozenset(kept[c] for c in key)
            case Window(s, _, _, _):
                yield from k[s]
            case GroupBy(_, keys, _, _):
                yield frozenset(range(len(keys)))
            case Min(s, t):
                yield from k[s]
                yield from k[t]
            case Max(s, t):
                if k[s] and k[t]:
                    yield whole
            case Plus(s, t):
                if k[s] and k[t] and self.disjoint(s, t):
                    yield whole
            case Product(s, t) | Join(s, t):
                for a in k[s]:
                    for b in k[t]:
                        yield a | {c + s.arity for c in b}
            case Left(s, t) | Right(s, t):  # padded rows have no partner, so none is joined too
                if k[s] and k[t]:
                    yield whole
            case Full() | Unnest() | Net():  # ⟗ can pad two rows of NULLs, one of each side
                return

    # ── containment and disjointness ──

    def contained(self, s: Query, t: Query, depth: int = _DEEPEST) -> bool:
        """S ⊑ T: does no row occur more often in S than in T?"""
        if s is t or isinstance(s, Empty):
            return True
        if depth == 0 or isinstance(t, Empty) or (depth == _DEEPEST and s.arity != t.arity):
            return False
        pair = (s, t)
        tried = self._contained.get(pair, 0)
        if tried < depth:
            proved = pair in self._given_contained or self._proved_contained(s, t, depth - 1)
            tried = self._contained[pair] = _PROVED if proved else depth
        return tried == _PROVED

    def _proved_contained(self, s: Query, t: Query, depth: int) -> bool:
        """One step on S or on T."""
        match s:
            case Table(name, _, state) if isinstance(t, Table) and t.name == name:
                before = state == REMOVED and t.state in ("", OLD)
                return before or (state == ADDED and t.state == NEW)
            case Select(inner, _) | Semi(inner, _, _) | Anti(inner, _, _) | Distinct(inner):
                if self.contained(inner, t, depth):
                    return True
            case Monus(inner, _) | Top(inner):
                if self.contained(inner, t, depth):
                    return True
            case Min(a, b):
                if self.contained(a, t, depth) or self.contained(b, t, depth):
                    return True
            case Max(a, b):
                if self.contained(a, t, depth) and self.contained(b, t, depth):
                    return True
            case _:
                pass
        match s, t:
            case (_, Plus(a, b) | Max(a, b)) if self._either(s, a, b, depth):
                return True
            case Plus(a, b), Plus(c, d):
                straight = self.contained(a, c, depth) and self.contained(b, d, depth)
                return straight or (self.contained(a, d, depth) and self.contained(b, c, depth))
            case Select(a, p), Select(b, o) if p is o:
                return self.contained(a, b, depth)
            case Project(a, i, _), Project(b, j, _) if i == j:
                return self.contained(a, b, depth)
            case Distinct(a), Distinct(b):
                return self.contained(a, b, depth)
            case Monus(a, b), Monus(c, d):
                return self.contained(a, c, depth) and self.contained(d, b, depth)
            case Product(a, b), Product(c, d):
                return self.contained(a, c, depth) and self.contained(b, d, depth)
            case Join(a, b, p), Join(c, d, o) if p is o:
                return self.contained(a, c, depth) and self.contained(b, d, depth)
            case Semi(a, b, p), Semi(c, d, o) if p is o:
                return self.contained(a, c, depth) and self.contained(b, d, depth)
            case Anti(a, b, p), Anti(c, d, o) if p is o:
                return self.contained(a, c, depth) and self.contained(d, b, depth)
            case _:
                return False

    def _either(self, s: Query, a: Query, b: Query, depth: int) -> bool:
        return self.contained(s, a, depth) or self.contained(s, b, depth)

    def disjoint(self, s: Query, t: Query, depth: int = _DEEPEST) -> bool:
        """S min T = ∅: is no row in both?"""
        if isinstance(s, Empty) or isinstance(t, Empty):
            return True
        if s is t or depth == 0 or (depth == _DEEPEST and s.arity != t.arity):
            return False
        pair = (s, t)
        tried = self._disjoint.get(pair, 0)
        if tried < depth:
            proved = self._proved_disjoint(s, t, depth - 1)
            tried = self._disjoint[pair] = self._disjoint[t, s] = _PROVED if proved else depth
        return tried == _PROVED

    def _proved_disjoint(self, s: Query, t: Query, depth: int) -> bool:
        if (s, t) in self._given_disjoint:
            return True
        # below σ ∸ ⋉ … the domains are only wider: they need not be compared again
        if depth == _DEEPEST - 1 and contradict(self.domains(s), self.domains(t)):
            return True
        match s, t:
            case Table(a, _, x), Table(b, _, y) if a == b:
                if {x, y} == {REMOVED, ADDED}:  # a change is strongly minimal
                    return True
                # in a set, what is added was not there, and what is removed is there no more
                states = {x, y} in ({ADDED, ""}, {ADDED, OLD}, {REMOVED, NEW})
                return states and self.duplicate_free(s)
            case Monus(a, b), Monus(c, d) if a is d and b is c:  # S ∸ T and T ∸ S
                return True
            case (Semi(_, a, p), Anti(_, b, o)) | (Anti(_, a, p), Semi(_, b, o)):
                if a is b and p is o:
                    return True
            case Product(a, b), Product(c, d) if a.arity == c.arity:
                if self.disjoint(a, c, depth) or self.disjoint(b, d, depth):
                    return True
            case Join(a, b), Join(c, d) if a.arity == c.arity:
                if self.disjoint(a, c, depth) or self.disjoint(b, d, depth):
                    return True
            case _:
                pass
        return self._split(s, t, depth) or self._split(t, s, depth)

    def _split(self, s: Query, t: Query, depth: int) -> bool:
        """S is disjoint from T if what S is taken from is."""
        match s:
            case Select(a, _) | Semi(a, _, _) | Anti(a, _, _) | Distinct(a) | Top(a):
                return self.disjoint(a, t, depth)
            case Monus(a, b):
                gone = b is t and self.duplicate_free(a)  # a set minus T has nothing of T
                return gone or self.disjoint(a, t, depth)
            case Min(a, b):
                return self.disjoint(a, t, depth) or self.disjoint(b, t, depth)
            case Plus(a, b) | Max(a, b):
                return self._apart(a, t, depth) and self._apart(b, t, depth)
            case _:
                return False

    def _apart(self, s: Query, t: Query, depth: int) -> bool:
        """Disjoint, by the domains of a part of ⊎ or by a proof."""
        return contradict(self.domains(s), self.domains(t)) or self.disjoint(s, t, depth)

    def apart(self, s: Query, t: Query) -> bool:
        """Disjoint at a glance: by the domains, or as given."""
        return (s, t) in self._given_disjoint or contradict(self.domains(s), self.domains(t))


def _inputs(q: Query) -> tuple[Query, ...]:
    match q:
        case Table() | Empty() | Literal():
            return ()
        case Select(s) | Project(s) | Distinct(s) | GroupBy(s) | Net(s):
            return (s,)
        case Unnest(s) | Window(s) | Top(s):
            return (s,)
        case _:
            return (q.s, q.t)


def _side_by_side(a: Domains | None, b: Domains | None, arity: int) -> Domains | None:
    if a is None or b is None:
        return None
    if not b:
        return a
    return {**a, **{c + arity: d for c, d in b.items()}}


def _or_null(d: Domains | None) -> Domains:
    """The domains of the side of an outer join that may be padded."""
    if d is None:
        return {}
    return {c: hull(v, Domain(value=False)) for c, v in d.items()}


def _of_rows(rows: tuple[tuple[object, ...], ...]) -> Domains | None:
    if not rows:
        return None
    found: Domains | None = None
    for row in rows:
        here = {i: _exactly(v) for i, v in enumerate(row)}
        found = here if found is None else hull_all(found, here)
    return found


def _exactly(v: object) -> Domain:
    if v is None:
        return Domain(value=False)
    return Domain(null=False, among=frozenset([v])) if v == v else ANY


def _projected(d: Domains | None, items: tuple[object, ...]) -> Domains | None:
    if d is None:
        return None
    found: dict[int, Domain] = {}
    for i, item in enumerate(items):
        if isinstance(item, Col) and item.index in d:
            found[i] = d[item.index]
        elif isinstance(item, Const):
            found[i] = _exactly(item.value)
    return found
