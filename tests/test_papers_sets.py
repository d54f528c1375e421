"""The worked examples of the papers on sets: that of 1997, and those of 1991 that can be read."""

from __future__ import annotations

from collections import Counter

from checks import pair_values
from random_queries import Generator, plain_tables
from viewkeeper import algebra as al
from viewkeeper.algebra.changes import glt97
from viewkeeper.algebra.changes.propagation import table_change
from viewkeeper.algebra.meaning import Bag
from viewkeeper.algebra.walk import substitute, tables

# ── Griffin, Libkin & Trickey 1997 ──

A, B = al.table("R1", ["x"]), al.table("R2", ["x"])
SETS = {"R1": Counter([("a",), ("b",)]), "R2": Counter([("a",)])}
COUNTER_EXAMPLE = {
    "R1": (Counter([("b",)]), Counter()),
    "R2": (Counter(), Counter([("b",), ("c",)])),
}
NONE = al.empty(["x"])
SINGLE = {"R1": (table_change(A).removed, NONE), "R2": (NONE, table_change(B).added)}


def test_glt97_proposition_1_the_rules_of_1991_violate_minimality() -> None:
    change = al.change(A | B, ["R1", "R2"], semantics="set-1991")
    removed, added = pair_values(change, SETS, COUNTER_EXAMPLE)
    assert added == Counter([("b",), ("c",)])
    assert added & al.evaluate(A | B, SETS) == Counter([("b",)])  # not new
    after = al.evaluate(A | B, SETS) - removed | added
    assert after == Counter([("a",), ("b",), ("c",)])  # correct all the same


def test_glt97_3_the_new_rules_do_not() -> None:
    change = al.change(A | B, ["R1", "R2"], semantics="set")
    assert pair_values(change, SETS, COUNTER_EXAMPLE) == (Counter(), Counter([("c",)]))


def test_glt97_3_the_rules_give_the_printed_expressions() -> None:
    schemas = {"R1": ["x"], "R2": ["x"]}
    old = al.change(A | B, SINGLE, semantics="set-1991")
    assert al.simplify(old.removed) is al.parse("∇R1 ∸ R2", schemas)
    assert al.simplify(old.added) is al.parse("ΔR2 ∸ (R1 ∸ ∇R1)", schemas)
    new = al.change(A | B, SINGLE, semantics="set")
    assert al.simplify(new.removed) is al.parse("∇R1 ∸ (R2 max ΔR2)", schemas)
    assert al.simplify(new.added) is al.parse("ΔR2 ∸ R1", schemas)


def same_growth(semantics: str, at: dict[str, Bag], by: dict[str, tuple[Bag, Bag]]) -> bool:
    """size(ΔS) − size(∇S) = size(ΔT) − size(∇T), with S = R1 ∪ R2 and T = R3."""
    growth = []
    for q in (A | B, al.table("R3", ["x"])):
        removed, added = pair_values(al.change(q, plain_tables(q), semantics=semantics), at, by)
        growth.append(added.total() - removed.total())
    return growth[0] == growth[1]


def test_glt97_1_equal_sizes_are_checked_by_change_sizes() -> None:
    """Given size(S) = size(T), the sizes of minimal changes decide whether it stays so."""
    for seed in range(200):
        g = Generator(seed)
        pool = [(x,) for x in "abcdef"]
        at = {n: Counter({r: 1 for r in pool if g.random.random() < 0.5}) for n in ("R1", "R2")}
        at["R3"] = Counter(pool[: len(at["R1"] | at["R2"])])
        by = {}
        for n, old in at.items():
            gone = Counter({r: 1 for r in old if g.random.random() < 0.3})
            come = Counter({r: 1 for r in pool if r not in old and g.random.random() < 0.3})
            by[n] = (gone, come)
        new = {n: (at[n] - by[n][0]) + by[n][1] for n in at}
        stays = len(new["R1"] | new["R2"]) == len(new["R3"])
        assert same_growth("set", at, by) == stays, f"seed {seed}"


def test_glt97_1_the_check_is_wrong_with_changes_that_are_not_minimal() -> None:
    """∇ = ∅ and Δ = pre(t, Q) solve the equation; only Proposition 2 makes their sizes count."""
    pairs = {t: (t - table_change(t)[0]) | table_change(t)[1] for t in (A, B)}
    loose = al.Pair(NONE, substitute(A | B, pairs))
    removed, added = pair_values(loose, SETS, COUNTER_EXAMPLE)
    assert added.total() - removed.total() == 3
    removed, added = pair_values(glt97.minimal(A | B, loose), SETS, COUNTER_EXAMPLE)
    assert added.total() - removed.total() == 1  # from {a, b} to {a, b, c}


def test_glt97_1_the_rules_of_1991_pass_the_check() -> None:
    """Their ∇ is contained in Q and their Δ disjoint from Q − ∇, so their sizes count, although Δ
    is not disjoint from Q. The 1997 paper does not say this."""
    at = SETS | {"R3": Counter([("a",), ("b",)])}
    by = COUNTER_EXAMPLE | {"R3": (Counter(), Counter([("c",)]))}
    assert same_growth("set", at, by)  # sizes 2 and 2 become 3 and 3
    assert same_growth("set-1991", at, by)


# ── Qian & Wiederhold 1991: E = R − σ(S), as far as its text can be read ──

E = A - B.select("x < 'z'")


def test_qw91_4_first_example() -> None:
    """∇S alone: by rule 1, then 10, E is extended by R ∩ σ(∇S)."""
    pair = {"R2": (table_change(B).removed, NONE)}
    change = al.change(E, pair, semantics="set-1991")
    expected = A & table_change(B).removed.select("x < 'z'")
    at = {"R1": Counter([("a",), ("b",), ("z",)]), "R2": Counter([("a",), ("b",), ("z",)])}
    by = {"R2": (Counter([("b",), ("z",)]), Counter())}
    removed, added = pair_values(change, at, by)
    assert removed == Counter()
    assert added == al.evaluate(expected, at, by) == Counter([("b",)])


def test_qw91_4_second_example() -> None:
    """ΔR in addition: by rule 11, ΔE = (ΔR − σ(S − ∇S)) ∪ (R ∩ σ(∇S))."""
    pair = {"R1": (NONE, table_change(A).added), "R2": (table_change(B).removed, NONE)}
    change = al.change(E, pair, semantics="set-1991")
    after = (B - table_change(B).removed).select("x < 'z'")
    gone = table_change(B).removed.select("x < 'z'")
    expected = (table_change(A).added - after) | (A & gone)
    for seed in range(100):
        g = Generator(seed)
        pool = [(x,) for x in "abcz"]
        at = {n: Counter({r: 1 for r in pool if g.random.random() < 0.5}) for n in ("R1", "R2")}
        come = Counter({r: 1 for r in pool if r not in at["R1"]})
        left = Counter({r: 1 for r in at["R2"] if g.random.random() < 0.5})
        by = {"R1": (Counter(), come), "R2": (left, Counter())}
        removed, added = pair_values(change, at, by)
        assert removed == Counter() and added == al.evaluate(expected, at, by), f"seed {seed}"


def test_qw91_5_an_irrelevant_change_is_known_before() -> None:
    """Section V: with the transaction's text at hand some changes are seen to be empty."""
    change = al.change(E, {"R2": (B.select("x = 'z'"), NONE)})
    assert not tables(al.simplify(change.removed), al.simplify(change.added))
