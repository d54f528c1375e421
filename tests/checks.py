"""The checks of one random case: used by the tests for thousands, by tools/fuzz.py for more."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import duckdb

from random_queries import TABLES, Generator, plain_tables
from viewkeeper import algebra as al
from viewkeeper.algebra.meaning import Bag
from viewkeeper.algebra.nodes import GroupBy, Query
from viewkeeper.algebra.walk import postorder

SCHEMAS = {t.name: t.names for t in TABLES}
Changes = dict[str, tuple[Bag, Bag]]
Case = tuple[Query, dict[str, Bag], list[str], Changes, dict[str, Bag]]


def case(seed: int, *, exact: bool = False) -> Case:
    """A random query, a state, the tables that change, their changes, and the state after."""
    g = Generator(seed, exact=exact)
    q = g.query(g.random.randint(1, 6))
    old = g.state()
    names = [n for n in plain_tables(q) if g.random.random() < 0.8]
    changes = g.changes(old, names)
    new = {n: after(rows, *changes.get(n, (Counter(), Counter()))) for n, rows in old.items()}
    return q, old, names, changes, new


def after(old: Bag, removed: Bag, added: Bag) -> Bag:
    return (old - removed) + added


def expected(q: Query, old: dict[str, Bag], new: dict[str, Bag]) -> tuple[Bag, Bag]:
    """The strongly minimal change, by the oracle: recompute and compare. It is unique."""
    before, now = al.evaluate(q, old), al.evaluate(q, new)
    return before - now, now - before


def has_groups(q: Query) -> bool:
    return any(isinstance(node, GroupBy) for node in postorder(q))


def check_pair(seed: int) -> bool:
    """Correct and strongly minimal, in all forms; true if anything changed."""
    q, old, names, changes, new = case(seed)
    before, now = al.evaluate(q, old), al.evaluate(q, new)
    want = before - now, now - before
    where = f"seed {seed}: {q}"
    for aggregates in ("recompute", "stored") if has_groups(q) else ("recompute",):
        c = al.change(q, names, aggregates=aggregates)
        got = al.evaluate(c.removed, old, changes), al.evaluate(c.added, old, changes)
        assert got == want, f"{aggregates}, {where}"
        assert not got[0] - before, f"∇ ⊑ old, {where}"
        assert not got[0] & got[1], f"∇ min Δ = ∅, {where}"
        assert after(before, *got) == now, f"correct, {where}"
    c = al.change(q, names, state="after")
    got = (
        al.evaluate(c.removed, new, changes, state="after"),
        al.evaluate(c.added, new, changes, state="after"),
    )
    assert got == want, f"from a log, {where}"
    return bool(want[0] or want[1])


def check_signed(seed: int) -> bool:
    """The signed form means the same as the pair."""
    q, old, names, changes, new = case(seed)
    removed, added = al.net(al.signed(q, names))
    got = al.evaluate(removed, old, changes), al.evaluate(added, old, changes)
    assert got == expected(q, old, new), f"signed, seed {seed}: {q}"
    return bool(got[0] or got[1])


def check_simplified(seed: int) -> bool:
    """Simplified and unsimplified agree; so do the notation and what is read from it."""
    q, old, names, changes, new = case(seed)
    c = al.change(q, names)
    before, now = al.evaluate(q, old), al.evaluate(q, new)
    want = before - now, now - before
    parts = al.simplify_all((c.removed, c.added))
    for part, small, rows in zip((c.removed, c.added), parts, want, strict=True):
        assert al.evaluate(small, old, changes) == rows, f"simplified, seed {seed}: {q}"
        assert al.size(small) <= al.size(part) + 3, f"grew, seed {seed}: {q}"
    assert al.evaluate(al.simplify(q), old) == before, f"seed {seed}: {q}"
    assert al.parse(str(q), SCHEMAS) is q, f"notation, seed {seed}: {q}"
    return bool(want[0] or want[1])


class Duck:
    """A DuckDB with the tables of the random cases, in all the states a query may name."""

    def __init__(self) -> None:
        self.db = duckdb.connect()
        self.db.execute("SET threads = 1")
        for t in TABLES:
            for name in (t.name, f"∇{t.name}", f"Δ{t.name}", f"{t.name}@old", f"{t.name}@new"):
                self.db.execute(f'CREATE TABLE "{name}" (a BIGINT, b BIGINT)')

    def load(
        self, names: set[str], old: dict[str, Bag], changes: Changes, new: dict[str, Bag]
    ) -> None:
        for n in names:
            removed, added = changes.get(n, (Counter(), Counter()))
            for name, rows in (
                (n, old[n]),
                (f"{n}@old", old[n]),
                (f"{n}@new", new[n]),
                (f"∇{n}", removed),
                (f"Δ{n}", added),
            ):
                self.db.execute(f'TRUNCATE "{name}"')
                if rows:
                    values = ", ".join(str(r).replace("None", "NULL") for r in rows.elements())
                    self.db.execute(f'INSERT INTO "{name}" VALUES {values}')

    def run(self, q: Query) -> Bag:
        found = self.db.execute(al.to_sql(q, dialect="duckdb")).fetchall()
        return Counter(tuple(rounded(v) for v in row[: q.arity]) for row in found)


def rounded(v: Any) -> Any:
    """A number to nine digits: engines differ in the last ones of averages and deviations."""
    if isinstance(v, float):
        return v if math.isnan(v) else float(f"{v:.9g}")
    return v


def check_sql(seed: int, duck: Duck) -> bool:
    """The SQL text of a query and of its change, run by DuckDB, gives what the reference gives."""
    q, old, names, changes, new = case(seed, exact=True)
    c = al.change(q, names)
    forms = (  # one form of the change per case: they take turns
        lambda: al.simplify(c.removed),
        lambda: al.simplify(c.added),
        lambda: al.net(al.signed(q, names)).removed,
        lambda: al.net(al.signed(q, names)).added,
    )
    parts = (q, forms[seed % len(forms)]())
    duck.load({t.name for p in parts for t in al.tables(p)}, old, changes, new)
    for part in parts:
        want = Counter()
        for row, n in al.evaluate(part, old, changes).items():
            want[tuple(rounded(v) for v in row)] += n
        assert duck.run(part) == want, f"SQL, seed {seed}: {part}"
    return True
