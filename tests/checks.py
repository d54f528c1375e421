"""The checks of one random case: used by the tests for thousands, by tools/fuzz.py for more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import duckdb

from random_queries import TABLES, Generator, plain_tables
from viewkeeper import algebra as al
from viewkeeper.algebra.meaning import Bag, Evaluation
from viewkeeper.algebra.nodes import GroupBy, Query
from viewkeeper.algebra.scalars import Agg
from viewkeeper.algebra.walk import postorder
from viewkeeper.errors import ChangeError

SCHEMAS = {t.name: t.names for t in TABLES}
Changes = dict[str, tuple[Bag, Bag]]
Case = tuple[Query, dict[str, Bag], list[str], Changes, dict[str, Bag]]


@lru_cache(maxsize=4)
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


def pair_values(change: al.Change | al.Pair, at: dict[str, Bag], by: Changes) -> tuple[Bag, Bag]:
    """The rows that a change removes and adds."""
    value = Evaluation(at, by)
    return value(change.removed), value(change.added)


def has_groups(q: Query) -> bool:
    return any(isinstance(node, GroupBy) for node in postorder(q))


class Values(NamedTuple):
    """The rows of queries in a case, each part of them computed once for all its checks."""

    before: Evaluation  # in the state before, with the changes
    after: Evaluation  # in the state after, with the changes
    then: Evaluation  # in the state after, alone


@lru_cache(maxsize=2)
def values(seed: int) -> Values:
    _, old, _, changes, new = case(seed)
    return Values(
        Evaluation(old, changes), Evaluation(new, changes, state="after"), Evaluation(new)
    )


def over_averages(q: Query) -> bool:
    """Are there groups over averages or deviations? Stored sums of such are not exact."""
    groups = [n for n in postorder(q) if isinstance(n, GroupBy)]
    return any(
        isinstance(a, Agg) and a.function not in ("count", "sum", "min", "max")
        for n in groups
        for below in postorder(n.s)
        if isinstance(below, GroupBy)
        for a in below.aggs
    )


def about(pair: tuple[Bag, Bag]) -> tuple[Bag, Bag]:
    """A change to six digits, without what is then in both parts."""

    def near(v: Any) -> Any:
        return (0.0 if abs(v) < 1e-6 else float(f"{v:.6g}")) if isinstance(v, float) else v

    gone, come = (Counter(tuple(near(v) for v in row) for row in b.elements()) for b in pair)
    return gone - come, come - gone


def check_pair(seed: int) -> bool:
    """Correct and strongly minimal, in all forms; true if anything changed."""
    q, _, names, _, _ = case(seed)
    at = values(seed)
    before, now = at.before(q), at.then(q)
    want = before - now, now - before
    for aggregates in ("recompute", "stored") if has_groups(q) else ("recompute",):
        c = al.change(q, names, aggregates=aggregates)
        got = at.before(c.removed), at.before(c.added)
        assert c.removed.columns == c.added.columns == q.columns, f"names, seed {seed}: {q}"
        if aggregates == "stored" and got != want and over_averages(q):
            assert about(got) == about(want), f"stored, about, seed {seed}: {q}"
            continue
        assert got == want, f"{aggregates}, seed {seed}: {q}"
        assert not got[0] - before, f"∇ ⊑ old, seed {seed}: {q}"
        assert not got[0] & got[1], f"∇ min Δ = ∅, seed {seed}: {q}"
        assert after(before, *got) == now, f"correct, seed {seed}: {q}"
    c = al.change(q, names, state="after")
    assert (at.after(c.removed), at.after(c.added)) == want, f"from a log, seed {seed}: {q}"
    return bool(want[0] or want[1])


def check_signed(seed: int) -> bool:
    """The signed form means the same as the pair."""
    q, _, names, _, _ = case(seed)
    at = values(seed)
    removed, added = al.net(al.signed(q, names))
    before, now = at.before(q), at.then(q)
    got = at.before(removed), at.before(added)
    assert got == (before - now, now - before), f"signed, seed {seed}: {q}"
    assert removed.columns == added.columns == q.columns, f"names, seed {seed}: {q}"
    return bool(got[0] or got[1])


def check_sets(seed: int) -> bool:
    """Over tables without duplicates: minimal by the rules of 1997, correct by those of 1991."""
    q, old, names, _, new = case(seed)
    old, new = ({n: Counter(dict.fromkeys(b, 1)) for n, b in at.items()} for at in (old, new))
    changes = {n: (old[n] - new[n], new[n] - old[n]) for n in names}
    meant = al.as_set(q)
    at, later = Evaluation(old, changes), Evaluation(new, changes, state="after")
    before, now = at(meant), Evaluation(new)(meant)
    want = before - now, now - before
    assert max((*before.values(), *now.values()), default=1) == 1, f"no set, seed {seed}: {q}"
    c = al.change(q, names, semantics="set")
    assert (at(c.removed), at(c.added)) == want, f"sets, seed {seed}: {q}"
    parts = al.simplify_all((c.removed, c.added))
    assert tuple(at(part) for part in parts) == want, f"sets, simplified, seed {seed}: {q}"
    c = al.change(q, names, semantics="set", state="after")
    assert (later(c.removed), later(c.added)) == want, f"sets from a log, seed {seed}: {q}"
    try:
        c = al.change(q, names, semantics="set-1991")
    except ChangeError:  # has no rule for an operator
        return bool(want[0] or want[1])
    assert (before - at(c.removed)) | at(c.added) == now, f"1991, seed {seed}: {q}"
    return bool(want[0] or want[1])


def check_simplified(seed: int) -> bool:
    """Simplified and unsimplified agree; so do the notation and what is read from it."""
    q, _, names, _, _ = case(seed)
    at = values(seed)
    c = al.change(q, names)
    before, now = at.before(q), at.then(q)
    want = before - now, now - before
    parts = al.simplify_all((c.removed, c.added))
    for part, small, rows in zip((c.removed, c.added), parts, want, strict=True):
        assert at.before(small) == rows, f"simplified, seed {seed}: {q}"
        assert al.size(small) <= al.size(part) + 3, f"grew, seed {seed}: {q}"
    assert at.before(al.simplify(q)) == before, f"seed {seed}: {q}"
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
        self,
        names: Iterable[str],
        old: dict[str, Bag],
        changes: Changes | None = None,
        new: dict[str, Bag] | None = None,
    ) -> None:
        """Puts the rows into the tables; without changes, only those of the state before."""
        for n in names:
            states = {n: old[n]}
            if changes is not None and new is not None:
                removed, added = changes.get(n, (Counter(), Counter()))
                states |= {f"{n}@old": old[n], f"{n}@new": new[n]}
                states |= {f"∇{n}": removed, f"Δ{n}": added}
            for name, rows in states.items():
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


def check_query_sql(seed: int, duck: Duck) -> bool:
    """The SQL text of a query, run by DuckDB, gives what the reference gives."""
    q, old, _, _, _ = case(seed, exact=True)
    duck.load({t.name for t in al.tables(q)}, old)
    assert duck.run(q) == _rounded_rows(al.evaluate(q, old)), f"SQL, seed {seed}: {q}"
    return True


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
        want = _rounded_rows(al.evaluate(part, old, changes))
        assert duck.run(part) == want, f"SQL, seed {seed}: {part}"
    return True


def _rounded_rows(rows: Bag) -> Bag:
    found: Bag = Counter()
    for row, n in rows.items():
        found[tuple(rounded(v) for v in row)] += n
    return found
