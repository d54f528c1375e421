"""Random queries, states and changes for the tests and the long run. Everything from one seed."""

from __future__ import annotations

import random
from collections import Counter

from viewkeeper import algebra as al
from viewkeeper.algebra.meaning import Bag
from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.scope import Scope

TABLES = [al.table(name, ["a", "b"]) for name in ("R", "S", "T", "U", "V")]
VALUES = (None, 1, 2, 3)
AGGREGATES = ("count(*)", "count({0})", "sum({0})", "avg({0})", "min({0})", "max({0})")
AGGREGATES += ("count(DISTINCT {0})", "sum({0} + {1})")
INEXACT = ("var_pop({0})", "stddev_samp({0})")  # engines differ in the last digit


class Generator:
    """Random values of everything the algebra has."""

    def __init__(self, seed: int, *, exact: bool = False) -> None:
        self.random = random.Random(seed)
        self.aggregates = AGGREGATES if exact else AGGREGATES + INEXACT
        self.budget = 6  # tables still to be read: keeps products small

    # ── data ──

    def row(self, arity: int) -> tuple[object, ...]:
        return tuple(self.random.choice(VALUES) for _ in range(arity))

    def bag(self, arity: int, most: int = 5) -> Bag:
        rows = [self.row(arity) for _ in range(self.random.randint(0, most))]
        return Counter(rows + [r for r in rows if self.random.random() < 0.3])

    def state(self) -> dict[str, Bag]:
        return {t.name: self.bag(t.arity) for t in TABLES}

    def changes(self, state: dict[str, Bag], names: list[str]) -> dict[str, tuple[Bag, Bag]]:
        """A strongly minimal change of each named table."""
        return {n: self.change(state[n]) for n in names}

    def change(self, old: Bag) -> tuple[Bag, Bag]:
        gone = Counter({r: self.random.randint(0, n) for r, n in old.items()})
        gone = +gone if self.random.random() < 0.8 else Counter()
        come = self.bag(2, 3) if self.random.random() < 0.8 else Counter()
        if old and self.random.random() < 0.3:
            come += Counter([self.random.choice(list(old))])
        return gone - come, come - gone

    # ── scalars ──

    def column(self, scope: Scope) -> str:
        return scope.describe(self.random.randrange(len(scope.columns)))

    def scalar(self, scope: Scope) -> str:
        a, b = self.column(scope), self.column(scope)
        n = self.random.randint(0, 3)
        forms = (a, f"{a} + {b}", f"{a} * {n}", f"{a} - {b}", f"coalesce({a}, {n})", f"-{a}")
        forms += (f"CASE WHEN {a} > {b} THEN {a} ELSE {n} END", f"{a} % 2", f"least({a}, {b})")
        return self.random.choice(forms)

    def predicate(self, scope: Scope, deep: bool = True) -> str:
        a, b = self.column(scope), self.scalar(scope)
        n = self.random.randint(1, 3)
        forms = (f"{a} > {n}", f"{a} = {n}", f"{a} <= {b}", f"{a} <> {b}", f"{a} IS NULL")
        forms += (f"{a} IN ({n}, 2)", f"{a} IS NOT NULL", f"{a} <=> {b}", "TRUE")
        simple = self.random.choice(forms)
        if deep and self.random.random() < 0.3:
            word = self.random.choice(("AND", "OR"))
            return f"{simple} {word} {self.predicate(scope, False)}"
        return f"NOT ({simple})" if self.random.random() < 0.1 else simple

    def condition(self, s: Query, t: Query) -> str:
        scope = Scope(s.scope + t.scope, split=s.arity)
        left = scope.describe(self.random.randrange(s.arity))
        right = scope.describe(s.arity + self.random.randrange(t.arity))
        roll = self.random.random()
        if roll < 0.6:
            return f"{left} = {right}"
        if roll < 0.7:
            return f"{left} <=> {right}"
        if roll < 0.9:
            return f"{left} = {right} AND {self.predicate(scope, False)}"
        return self.predicate(scope)

    # ── queries ──

    def query(self, depth: int = 6) -> Query:
        self.budget = 6
        return self._query(depth)

    def _query(self, depth: int) -> Query:
        if depth <= 1 or self.budget <= 1 or self.random.random() < 0.08:
            return self.leaf()
        if self.random.random() < 0.4:
            return self.unary(self._query(depth - 1))
        s = self._query(depth - 1)
        t = self._query(depth - 1)
        return self.binary(s, t)

    def leaf(self) -> Query:
        self.budget -= 1
        if self.random.random() < 0.05:
            rows = [self.row(2) for _ in range(self.random.randint(0, 3))]
            return al.literal(["a", "b"], rows)
        return self.random.choice(TABLES)

    def unary(self, s: Query) -> Query:
        scope = Scope(s.scope)
        roll = self.random.random()
        if roll < 0.3:
            return s.select(self.predicate(scope))
        if roll < 0.6:
            return s.project({n: self.scalar(scope) for n in "ab"[: self.random.randint(1, 2)]})
        if roll < 0.75:
            return s.distinct()
        keys = [self.column(scope)] if self.random.random() < 0.85 else []
        return s.group_by(keys, {"n": self.aggregate(scope), "m": self.aggregate(scope)})

    def aggregate(self, scope: Scope) -> str:
        template = self.random.choice(self.aggregates)
        return template.format(self.column(scope), self.column(scope))

    def binary(self, s: Query, t: Query) -> Query:
        roll = self.random.random()
        if roll < 0.45:
            s, t = self.aligned(s), self.aligned(t)
            return self.random.choice((s + t, s - t, s & t, s | t))
        if roll < 0.5:
            return self.aligned(s).product(self.aligned(t))
        on = self.condition(s, t)
        return self.random.choice((s.join, s.semi, s.anti, s.left, s.right, s.full))(t, on)

    def aligned(self, q: Query) -> Query:
        """The query with two columns a and b, so that any two can be added or compared."""
        if q.columns == ("a", "b"):
            return q
        scope = Scope(q.scope)
        first, last = scope.describe(0), scope.describe(q.arity - 1)
        return q.project({"a": first, "b": last})


def plain_tables(q: Query) -> list[str]:
    """The names of the tables that a query reads."""
    return sorted({t.name for t in al.tables(q) if isinstance(t, Table)})
