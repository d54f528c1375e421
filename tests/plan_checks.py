"""A refresh run on the reference evaluator: the steps of the plan, without an engine."""

from __future__ import annotations

from collections import Counter

from checks import Changes, case, expected
from viewkeeper import algebra as al
from viewkeeper.algebra.meaning import Bag
from viewkeeper.algebra.sql import unique_names
from viewkeeper.plan.bags import BagStore
from viewkeeper.plan.groups import GroupStore, group_store
from viewkeeper.plan.prune import prune
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


def run(refresh: Refresh, store: Bag, new: State, changes: Changes) -> tuple[Bag, Bag]:
    """The store after the refresh, and the view's signed change as a bag of (row, weight)."""
    tables: State = {**new, "#store": store}
    for step in refresh.computes:
        rows = al.evaluate(step.query, tables, changes, state="after")
        if step.only_if is not None:  # an optional step must not matter when it is not needed
            name, condition = step.only_if
            leaf = next(c.leaf for c in refresh.computes if c.name == name)
            if not al.evaluate(leaf.select(condition), tables):
                rows = Counter()
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
    q = prune(q)
    old, new = narrow(q, old), narrow(q, new)
    changes = {n: (old[n] - new[n], new[n] - old[n]) for n in changes}
    stores: list[BagStore | GroupStore] = [BagStore(q, unique_names(q.columns))]
    by_groups = group_store(q)
    if by_groups is not None:
        stores.append(by_groups)
    for shape in stores if names else []:
        where = f"{type(shape).__name__}, seed {seed}: {q}"
        before = al.evaluate(shape.build(), old)
        after, signed = run(shape.refresh(names), before, new, changes)
        built = al.evaluate(shape.build(), new)
        if isinstance(shape, BagStore):
            assert counted(after) == counted(built), where
        else:
            assert after == built, where
            assert al.evaluate(
                shape.visible(al.table("#store", shape.columns)), {"#store": after}
            ) == (al.evaluate(q, new)), where
        gone = Counter({row[:-1]: -row[-1] for row in signed if row[-1] < 0})
        come = Counter({row[:-1]: row[-1] for row in signed if row[-1] > 0})
        assert (gone, come) == want, where
    return bool(want[0] or want[1]) and by_groups is not None
