"""A refresh run on the reference evaluator: the steps of the plan, without an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checks import Changes, case, expected
from viewkeeper import algebra as al
from viewkeeper.algebra.meaning import Bag
from viewkeeper.algebra.sql_names import unique_names
from viewkeeper.plan.bags import BagStore
from viewkeeper.plan.groups import GroupStore, group_store
from viewkeeper.plan.lookups import reduced
from viewkeeper.plan.prune import prune
from viewkeeper.plan.pushdown import push_down
from viewkeeper.plan.steps import DELETE, UPSERT, Refresh

State = dict[str, Bag]


def narrow(q: al.Query, state: State) -> State:
    """The state over the columns that a pruned query has of each table."""
    found = dict(state)
    for t in al.tables(q):
        places = [("a", "b").index(c) for c in t.names]
        rows: Bag = Counter()
        for row, n in state[t.name].items():
            rows[tuple(row[i] for i in places)] += n
        found[t.name] = rows
    return found


@dataclass(frozen=True)
class Values:
    """A set of values, as lookups know them."""

    held: frozenset[Any]

    def __len__(self) -> int:
        return len(self.held)

    def with_null(self) -> Values:
        return Values(self.held | {None})

    def without_null(self) -> Values:
        return Values(self.held - {None})

    def union(self, other: Values) -> Values:
        return Values(self.held | other.held)


class Lookups:
    """Changes and earlier results are at hand; sources and store are read by values."""

    def __init__(self, tables: State, changes: Changes) -> None:
        self.tables, self.changes = tables, changes
        self.reads = 0

    def values(self, leaf: al.Table, column: int) -> Values | None:
        if leaf.state == "@new" or leaf.name == "#store":
            return None
        rows = al.evaluate(leaf, self.tables, self.changes, state="after")
        return Values(frozenset(row[column] for row in rows))

    def read(self, leaf: al.Table, wanted: Mapping[int, Values]) -> al.Table:
        if self.values(leaf, 0) is not None:
            return leaf
        rows = al.evaluate(leaf, self.tables, self.changes, state="after")
        self.reads += 1
        found = al.Table(f"#read{self.reads}", leaf.names, "")
        assert isinstance(found, al.Table)
        self.tables[found.name] = Counter(
            {r: n for r, n in rows.items() if all(r[i] in v.held for i, v in wanted.items())}
        )
        return found


def run(
    refresh: Refresh,
    store: Bag,
    new: State,
    changes: Changes,
    lookups: bool = False,
    needed: Counter[str] | None = None,
) -> tuple[Bag, Bag]:
    """The store after the refresh, and the view's signed change as a bag of (row, weight).

    ``needed`` counts the optional steps that were needed.
    """
    tables: State = {**new, "#store": store}
    reader = Lookups(tables, changes)
    for step in refresh.computes:
        query = reduced(step.query, reader) if lookups else step.query
        rows = al.evaluate(query, tables, changes, state="after")
        if step.only_if is not None:  # an optional step must not matter when it is not needed
            name, condition = step.only_if
            leaf = next(c.leaf for c in refresh.computes if c.name == name)
            if not al.evaluate(leaf.select(condition), tables):
                rows = Counter()
            elif needed is not None:
                needed[step.name] += 1
        assert not rows or step.name not in refresh.must_be_empty, step.name
        tables[f"#{step.name}"] = rows
    patch = al.evaluate(refresh.patch.query, tables, changes, state="after")
    change = al.evaluate(refresh.change, tables, changes, state="after")
    return apply(store, patch, len(refresh.patch.keys)), change


def apply(store: Bag, patch: Bag, keys: int) -> Bag:
    """What a patch does to a store."""
    gone = {row[:keys] for row in patch if row[-1] in (DELETE, UPSERT)}
    upserts = [row[:keys] for row in patch.elements() if row[-1] == UPSERT]
    assert len(set(upserts)) == len(upserts), "one upsert per key"
    kept = Counter({row: n for row, n in store.items() if row[:keys] not in gone})
    return kept + Counter(row[:-1] for row in patch.elements() if row[-1] != DELETE)


def counted(rows: Bag) -> Bag:
    """The rows of a bag store as a bag."""
    found: Bag = Counter()
    for row, n in rows.items():
        assert row[-1] > 0, "counts are positive"
        found[row[:-1]] += row[-1] * n
    return found


def check_plan(seed: int) -> bool:
    """After the steps of a refresh the store is what it would be if built anew."""
    q, old, names, changes, new = case(seed)
    want = expected(q, old, new)
    q = prune(push_down(q))
    old, new = narrow(q, old), narrow(q, new)
    changes = {n: (old[n] - new[n], new[n] - old[n]) for n in changes}
    stores: list[BagStore | GroupStore] = [BagStore(q, unique_names(q.columns))]
    by_groups = group_store(q)
    if by_groups is not None:
        stores.append(by_groups)
    for shape in stores if names else []:
        where = f"{type(shape).__name__}, seed {seed}: {q}"
        before = al.evaluate(shape.build(), old)
        after, signed = run(shape.refresh(names), before, new, changes, lookups=seed % 2 == 1)
        built = al.evaluate(shape.build(), new)
        if isinstance(shape, BagStore):
            assert counted(after) == counted(built), where
        else:
            assert after == built, where
            assert al.evaluate(
                shape.visible(al.table("#store", shape.columns)), {"#store": after}
            ) == (al.evaluate(q, new)), where
        weights: Counter[Any] = Counter()
        for row, n in signed.items():
            weights[row[:-1]] += row[-1] * n
        gone = Counter({row: -n for row, n in weights.items() if n < 0})
        come = Counter({row: n for row, n in weights.items() if n > 0})
        assert (gone, come) == want, where
    return bool(want[0] or want[1]) and by_groups is not None
