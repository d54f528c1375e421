"""The plans of refreshes, run on the reference evaluator: the store ends as if built anew."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from checks import case, expected
from plan_checks import check_plan, narrow, run
from viewkeeper import algebra as al
from viewkeeper.plan.choose import Timing, choose
from viewkeeper.plan.groups import group_store
from viewkeeper.plan.present import signed_change
from viewkeeper.plan.prune import prune
from viewkeeper.plan.pushdown import push_down


@pytest.mark.parametrize("seeds", [range(300), range(300, 600)])
def test_stores_end_as_if_built_anew(seeds: range) -> None:
    changed = sum(check_plan(seed) for seed in seeds)
    assert changed > 5, "some of the cases must change a view stored by groups"


@pytest.mark.parametrize("seeds", [range(1000, 1400)])
def test_the_change_from_the_present_state_is_the_net_difference(seeds: range) -> None:
    for seed in seeds:
        q, old, names, changes, new = case(seed)
        removed, added = al.net(signed_change(q, names))
        got = (
            al.evaluate(removed, new, changes, state="after"),
            al.evaluate(added, new, changes, state="after"),
        )
        assert got == expected(q, old, new), f"seed {seed}: {q}"


def test_pruned_queries_mean_the_same() -> None:
    for seed in range(400):
        q, old, *_ = case(seed)
        p = prune(q)
        assert al.evaluate(p, narrow(p, old)) == al.evaluate(q, old), f"seed {seed}: {q}"
        assert p.columns == q.columns


def test_conditions_moved_down_mean_the_same_law() -> None:
    moved = 0
    for seed in range(1500):
        q, old, *_ = case(seed)
        p = push_down(q)
        moved += p is not q
        assert al.evaluate(p, old) == al.evaluate(q, old), f"seed {seed}: {q}"
        assert p.columns == q.columns
    assert moved > 100


def test_outer_joins_whose_padded_rows_are_rejected() -> None:
    R, S = al.table("R", ["a", "b"]), al.table("S", ["c", "d"])
    q = R.left(S, "a = c")
    assert "⟕" not in str(push_down(q.select("b > d")))
    for kept in ("d is null", "b > 1", "b <=> d", "d > 1 or b > 1"):
        assert "⟕" in str(push_down(q.select(kept))), kept
    state = {"R": Counter({(1, 2): 1, (2, 2): 2}), "S": Counter({(1, 1): 1, (1, None): 1})}
    for p in ("b > d", "b > d + 0", "d is null", "b <=> d", "d > 1 or b > 1"):
        both = q.select(p)
        assert al.evaluate(push_down(both), state) == al.evaluate(both, state), p


def test_one_term_per_changed_input() -> None:
    """A chain of six joins, all inputs changed: six terms, each with one change at its start."""
    q: al.Query = al.table("T0", ["k0", "k1"])
    for i in range(1, 6):
        q = q.join(al.table(f"T{i}", [f"k{i}", f"k{i + 1}"]), f"left.k{i} = right.k{i}")
    names = [f"T{i}" for i in range(6)]
    sizes = [al.size(signed_change(q, names[:n])) for n in range(1, 7)]
    assert sizes[-1] <= 6 * sizes[0] + 30


def test_the_choice_follows_what_refreshes_took() -> None:
    prior = choose(2_000_000, 10_000_000, Timing())
    assert prior.strategy == "full"
    fast = Timing(full=4.0, incremental=0.25)
    assert choose(2_000_000, 10_000_000, fast).strategy == "incremental"
    learned = Timing().learned("full", seconds=100.0, predicted=1.0)
    assert 1.0 < learned.full <= 2.0, "one slow refresh counts, but not for all"
    assert "2,000,000 changed of 10,000,000" in prior.reason


@pytest.mark.parametrize("keys", [[], ["a"]])
def test_groups_emptied_and_refilled_oracle(keys: list[str]) -> None:
    """The last row of a group goes; without keys the row of the view stays, and says NULL."""
    aggs = {"n": "count(*)", "s": "sum(b)", "lo": "min(b)", "hi": "max(b)"}
    shape = group_store(al.table("R", ["a", "b"]).group_by(keys, aggs))
    assert shape is not None
    states = [Counter({(1, 5): 2, (2, None): 1}), Counter(), Counter({(1, None): 1, (3, 7): 1})]
    store = al.evaluate(shape.build(), {"R": states[0]})
    for old, new in itertools.pairwise(states):
        changes = {"R": (old - new, new - old)}
        store, _ = run(shape.refresh(["R"]), store, {"R": new}, changes)
        assert store == al.evaluate(shape.build(), {"R": new})
