"""The reference meaning of a query: ``collections.Counter`` is the bag algebra."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

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
from viewkeeper.algebra.orders import plain_order, sort_key
from viewkeeper.algebra.pool import assert_never
from viewkeeper.algebra.scalar_meaning import (
    FAILURES,
    Compiled,
    Row,
    compile_scalar,
    evaluate_agg,
    failed,
)
from viewkeeper.algebra.scalars import Call, Scalar, columns_of, conjunction, conjuncts, shift
from viewkeeper.algebra.scope import A_QUERY, expect
from viewkeeper.algebra.walk import postorder
from viewkeeper.errors import (
    ArityError,
    ChangeError,
    UnknownTableError,
    UnsupportedScalarError,
    suggestion,
)

Bag = Counter[Row]
Rows = Mapping[Row, int] | Iterable[Row]


def evaluate(
    query: Query,
    tables: Mapping[str, Rows],
    changes: Mapping[str, tuple[Rows, Rows]] | None = None,
    *,
    state: str = "before",
) -> Bag:
    """The bag of rows that a query gives.

    Parameters
    ----------
    query : Query
        May read R, ∇R, ΔR, R@old and R@new.
    tables : mapping of str to bag of rows
        A Counter, or rows in a list, each row a tuple.
    changes : mapping of str to (removed, added), optional
        What a transaction removes from a table and adds to it.
    state : "before" or "after"
        Whether ``tables`` holds the state before the changes or after them.

    Examples
    --------
    >>> R = Table("R", ("a", "b"))
    >>> evaluate(R.project(["a"]), {"R": [(1, 2), (1, 3)]})
    Counter({(1,): 2})
    """
    expect(query, Node, "the query", A_QUERY)
    expect(tables, Mapping, "the rows of the tables", 'Give a dict, such as {"R": [(1, 2)]}.')
    expect(changes or {}, Mapping, "the changes", 'Give a dict, such as {"R": ([], [(1, 2)])}.')
    return Counter(Evaluation(tables, changes, state=state)(query))


class Evaluation:
    """Queries over one state of the tables: what they share is computed once.

    >>> R = Table("R", ("a",))
    >>> value = Evaluation({"R": [(1,), (1,)]})
    >>> value(R), value(R - R.distinct())
    (Counter({(1,): 2}), Counter({(1,): 1}))
    """

    def __init__(
        self,
        tables: Mapping[str, Rows],
        changes: Mapping[str, tuple[Rows, Rows]] | None = None,
        *,
        state: str = "before",
    ) -> None:
        self._leaf = _Leaves(tables, changes or {}, state)
        self._done: dict[Query, Bag] = {}

    def __call__(self, query: Query) -> Bag:
        """The rows of a query; not to be changed, as other queries may be made of them."""
        done = self._done
        for q in postorder(query, known=done):
            try:
                done[q] = _evaluate(q, done, self._leaf)
            except FAILURES as e:
                raise failed(type(q).__name__, e) from e
        return done[query]


def bag(rows: Rows) -> Bag:
    """Rows as a bag: a Counter, without rows that occur no time."""
    expect(rows, Iterable, "the rows of a table", "Give a Counter, or a list of tuples.")
    counts = rows if isinstance(rows, Mapping) else Counter(rows)
    return Counter({tuple(row): n for row, n in counts.items() if n > 0})


class _Leaves:
    """The bags of the tables in the states a query may name."""

    def __init__(
        self, tables: Mapping[str, Rows], changes: Mapping[str, tuple[Rows, Rows]], state: str
    ) -> None:
        if state not in ("before", "after"):
            raise ChangeError(f"state is {state!r}", hint="Use 'before' or 'after'.")
        self.tables = tables
        self.changes = changes
        self.after = state == "after"
        self._rows: dict[str, Bag] = {}
        self._changes: dict[str, list[Bag]] = {}

    def rows(self, name: str) -> Bag:
        """The given rows of a table, read once."""
        if name not in self._rows:
            self._rows[name] = bag(self.tables[name])
        return self._rows[name]

    def change(self, name: str) -> list[Bag]:
        """What is removed from a table and added to it, read once."""
        if name not in self._changes:
            self._changes[name] = [bag(c) for c in self.changes.get(name, ((), ()))]
        return self._changes[name]

    def __call__(self, table: Table) -> Bag:
        if table.name not in self.tables:
            raise UnknownTableError(
                f"no rows are given for table {table.name!r}",
                hint=suggestion(table.name, self.tables),
            )
        if table.state == "":
            return _checked(table, self.rows(table.name))
        removed, added = self.change(table.name)
        if table.state == SIGNED:
            weighted = Counter({(*row, -1): n for row, n in removed.items()})
            return _checked(table, weighted + Counter({(*r, 1): n for r, n in added.items()}))
        if table.state == REMOVED:
            return _checked(table, removed)
        if table.state == ADDED:
            return _checked(table, added)
        here = _checked(table, self.rows(table.name))
        if table.state == OLD and self.after:
            return (here - added) + removed
        if table.state == NEW and not self.after:
            return (here - removed) + added
        return here


def _checked(table: Table, rows: Bag) -> Bag:
    for row in rows:
        if len(row) != table.arity:
            raise ArityError(
                f"row {row!r} of {table.name} has {len(row)} values for {table.arity} columns",
                hint=f"Give one value each for {', '.join(table.names)}.",
            )
    return rows


def _evaluate(q: Query, done: Mapping[Query, Bag], leaf: Callable[[Table], Bag]) -> Bag:
    match q:
        case Table():
            return leaf(q)
        case Empty():
            return Counter()
        case Literal(_, rows):
            return Counter(rows)
        case Select(s, p):
            holds = compile_scalar(p)
            return Counter({row: n for row, n in done[s].items() if holds(row) is True})
        case Project(s, items, _):
            compiled = [compile_scalar(i) for i in items]
            projected: Bag = Counter()
            for row, n in done[s].items():
                projected[tuple(c(row) for c in compiled)] += n
            return projected
        case Plus(s, t):
            return done[s] + done[t]
        case Monus(s, t):
            return done[s] - done[t]
        case Min(s, t):
            return done[s] & done[t]
        case Max(s, t):
            return done[s] | done[t]
        case Distinct(s):
            return Counter(done[s].keys())
        case Product(s, t):
            return Counter({a + b: m * n for a, m in done[s].items() for b, n in done[t].items()})
        case Join(s, t, on):
            return _join(done[s], done[t], _Matcher(done[t], on, s.arity))
        case Semi(s, t, on):
            partners = _Matcher(done[t], on, s.arity)
            return Counter({a: m for a, m in done[s].items() if partners(a)})
        case Anti(s, t, on):
            partners = _Matcher(done[t], on, s.arity)
            return Counter({a: m for a, m in done[s].items() if not partners(a)})
        case Left(s, t, on):
            partners = _Matcher(done[t], on, s.arity)
            return _join(done[s], done[t], partners) + _unmatched(done[s], partners, t.arity)
        case Right(s, t, on) | Full(s, t, on):
            partners = _Matcher(done[t], on, s.arity)
            joined = _join(done[s], done[t], partners)
            used = {b for a in done[s] for b in partners(a)}
            nulls = (None,) * s.arity
            alone = Counter({nulls + b: n for b, n in done[t].items() if b not in used})
            if isinstance(q, Full):
                alone += _unmatched(done[s], partners, t.arity)
            return joined + alone
        case GroupBy(s, keys, aggs, _):
            groups: dict[Row, list[tuple[Row, int]]] = defaultdict(list)
            for row, n in done[s].items():
                groups[tuple(row[k] for k in keys)].append((row, n))
            if not keys and not groups:
                groups[()] = []
            return Counter(
                {k + tuple(evaluate_agg(a, rows) for a in aggs): 1 for k, rows in groups.items()}
            )
        case Top(s, order, limit, offset) if all(plain_order(o) for o in order):
            ordered = sorted(done[s].elements(), key=lambda row: sort_key(row, order))
            return Counter(ordered[offset : None if limit is None else offset + limit])
        case Unnest() | Window() | Top():
            raise UnsupportedScalarError(
                f"{type(q).__name__} is an operator of the engine, unknown to the reference",
                hint="Evaluate the query on the engine.",
            )
        case Net(s):
            weights: Counter[Row] = Counter()
            for row, n in done[s].items():
                weights[row[:-1]] += row[-1] * n
            return bag(weights)
        case _:
            assert_never(q)


class _Matcher:
    """The partners of a left row: by hash on the equalities of the condition, then by the rest."""

    def __init__(self, right: Mapping[Row, int], on: Scalar, arity: int) -> None:
        self.left, keys, self.null_safe, self.rest = _compiled_condition(on, arity)
        self.right: dict[Row, list[Row]] = defaultdict(list)
        for row in right:
            self.right[tuple(k(row) for k in keys)].append(row)

    def __call__(self, row: Row) -> list[Row]:
        key = tuple(k(row) for k in self.left)
        if any(k is None and not safe for k, safe in zip(key, self.null_safe, strict=True)):
            return []
        found = self.right.get(key, [])
        if self.rest is None:
            return found
        return [b for b in found if self.rest(row + b) is True]


@lru_cache(maxsize=1000)
def _compiled_condition(
    on: Scalar, arity: int
) -> tuple[list[Compiled], list[Compiled], list[bool], Compiled | None]:
    """What is equal on the left and on the right, which of it is NULL-safe, and the rest."""
    pairs, rest = equalities(on, arity)
    left = [compile_scalar(a) for a, _, _ in pairs]
    right = [compile_scalar(shift(b, -arity)) for _, b, _ in pairs]
    return left, right, [s for _, _, s in pairs], None if rest is None else compile_scalar(rest)


def equalities(on: Scalar, arity: int) -> tuple[list[tuple[Scalar, Scalar, bool]], Scalar | None]:
    """The parts of a condition of the form left = right, whether NULL-safe, and the other parts.

    The right expressions still count columns from the start of the joined row.
    """
    pairs: list[tuple[Scalar, Scalar, bool]] = []
    rest: list[Scalar] = []
    for part in conjuncts(on):
        sides = _sides(part, arity)
        if sides is None:
            rest.append(part)
        else:
            pairs.append((*sides, isinstance(part, Call) and part.op == "<=>"))
    return pairs, conjunction(rest) if rest else None


def _sides(part: Scalar, arity: int) -> tuple[Scalar, Scalar] | None:
    if not (isinstance(part, Call) and part.op in ("=", "<=>")):
        return None
    a, b = part.args
    of_a, of_b = columns_of(a), columns_of(b)
    if not of_a or not of_b:
        return None
    if max(of_a) < arity <= min(of_b):
        return a, b
    if max(of_b) < arity <= min(of_a):
        return b, a
    return None


def _join(left: Bag, right: Bag, partners: _Matcher) -> Bag:
    return Counter({a + b: m * right[b] for a, m in left.items() for b in partners(a)})


def _unmatched(left: Bag, partners: _Matcher, arity: int) -> Bag:
    nulls: tuple[Any, ...] = (None,) * arity
    return Counter({a + nulls: m for a, m in left.items() if not partners(a)})
