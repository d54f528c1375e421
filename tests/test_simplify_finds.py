"""What the optimizer must find: changes that are empty, and lookups that are not needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from random_facts import moments, spoken_of
from random_queries import Generator
from viewkeeper import algebra as al
from viewkeeper.algebra.nodes import Empty, Query

R, S, T = (al.table(n, ["a", "b"]) for n in "RST")
NONE = al.empty(["a", "b"])


def small(change: al.Change, facts: al.Facts | None = None) -> tuple[Query, Query]:
    """Both parts simplified together; checked on states that satisfy the facts."""
    facts = facts or al.Facts()
    parts = change.removed, change.added
    removed, added = al.simplify_all(parts, facts)
    read = {t.name: al.table(t.name, t.names) for p in parts for t in al.tables(p)}
    for old, changes in moments(Generator(3), facts, spoken_of(facts, read, *parts), 15):
        for before, after in zip(parts, (removed, added), strict=True):
            same = al.evaluate(before, old, changes) == al.evaluate(after, old, changes)
            assert same, f"{before} = {after}, {old} {changes}"
    return removed, added


def irrelevant(change: al.Change, facts: al.Facts | None = None) -> bool:
    return all(isinstance(part, Empty) for part in small(change, facts))


def append_only(q: Query, facts: al.Facts) -> bool:
    names = sorted({t.name for t in al.tables(q)})
    return isinstance(small(al.change(q, names), facts)[0], Empty)


# ── WellPaid, and changes outside a view's selection ──

EMPLOYEES = al.table("Employees", ["Name", "Salary"])
WELL_PAID = EMPLOYEES.select("Salary > 50000").project(["Name"])


def test_well_paid_loses_nobody() -> None:
    """GL95, section 4: ∇Employees = σ[Salary < 5000](Employees) gives ∇WellPaid = φ."""
    dismissed = EMPLOYEES.select("Salary < 5000"), al.empty(["Name", "Salary"])
    steps: list[al.Step] = []
    change = al.change(WELL_PAID, {"Employees": dismissed})
    assert irrelevant(change)
    assert isinstance(al.simplify(change.removed, trace=steps), Empty)
    laws = [step.law for step in steps]
    assert "select_select" in laws and "contradiction" in laws
    equations = {step.law: step.equation for step in steps}
    assert equations["select_select"] == "σp(σq(S)) = σ[q and p](S)."
    assert equations["contradiction"].startswith("Q = ∅")
    assert "Salary < 5000 AND Salary > 50000" in str(steps[laws.index("select_select")])


def test_well_paid_may_gain_somebody() -> None:
    raised = EMPLOYEES.select("Salary < 5000")
    doubled = raised.project({"Name": "Name", "Salary": "Salary * 20"})
    change = al.change(WELL_PAID, {"Employees": (raised, doubled)})
    assert not isinstance(small(change)[1], Empty)


VIEWS: dict[str, Callable[[Query], Query]] = {
    "select": lambda q: q.select("a > 5"),
    "project": lambda q: q.select("a > 5").project(["b"]),
    "renamed": lambda q: q.rename({"a": "x"}).select("x = 7").project(["x"]),
    "list": lambda q: q.select("a IN (6, 9) AND b IS NOT NULL"),
    "distinct": lambda q: q.select("a > 5").distinct(),
    "join": lambda q: q.join(S, "left.a = right.a").select("#0 > 5"),
    "join by the other side": lambda q: q.join(S.select("a > 5"), "#0 = #2 AND #0 > 5"),
    "semi": lambda q: q.select("a > 5").semi(S, ["a"]),
    "anti, on the right": lambda q: S.anti(q.select("a > 5"), ["a"]),
    "left": lambda q: q.select("a > 5").left(S, ["a"]),
    "left, on the right": lambda q: S.left(q.select("a > 5"), ["a"]),
    "full": lambda q: q.select("a > 5").full(S, ["a"]),
    "plus": lambda q: q.select("a > 5") + S,
    "monus": lambda q: S - q.select("a > 5"),
    "min": lambda q: S & q.select("a > 5"),
    "max": lambda q: S | q.select("a > 5"),
    "group": lambda q: q.select("a > 5").group_by(["b"], {"n": "count(*)", "m": "max(a)"}),
    "or": lambda q: q.select("a > 5 OR a = 4 AND b = 1"),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("semantics", ["bag", "set"])
def test_change_outside_the_selection_is_irrelevant(view: str, semantics: str) -> None:
    """The change is a query: nothing with a > 5 is deleted, moved or inserted."""
    q = VIEWS[view](R)
    moved = R.select("a < 2")
    changes = [
        (moved, moved.project({"a": "1", "b": "b + 1"})),
        (R.select("a IS NULL"), al.literal(["a", "b"], [(1, 2), (None, 7)])),
        (R.select("a = 1 OR a = 3"), R.select("a BETWEEN 1 AND 3").project({"a": "2", "b": "b"})),
    ]
    for removed, added in changes:
        change = al.change(q, {"R": (removed, added)}, semantics=semantics)
        assert irrelevant(change), f"{al.simplify(change.removed)}, {al.simplify(change.added)}"


@pytest.mark.parametrize("view", VIEWS)
def test_change_outside_by_a_check_is_irrelevant(view: str) -> None:
    """All of the table is outside: a check says so, and it holds of ∇R and ΔR."""
    facts = al.Facts(checks={"R": "a <= 3"})
    assert irrelevant(al.change(VIEWS[view](R), ["R"]), facts)
    assert not irrelevant(al.change(VIEWS[view](R), ["R"]))


# ── foreign keys ──

ORDERS = al.table("orders", ["id", "shop", "nr", "price"])
SHOPS = al.table("shops", ["shop", "nr", "town"])
ONE = al.Facts(foreign_keys=[("orders", "shop", "shops", "shop")], append_only=["shops"])
TWO = al.Facts(
    foreign_keys=[("orders", ["shop", "nr"], "shops", ["shop", "nr"])],
    keys={"shops": ["shop", "nr"]},
    append_only=["shops"],
)
SHOP, NR = "left.shop = right.shop", "left.nr = right.nr"
BY_KEY = [(SHOP, ONE), (f"{SHOP} AND {NR}", TWO), (f"{NR} AND price > 1 AND {SHOP}", TWO)]


@pytest.mark.parametrize(("on", "facts"), BY_KEY)
def test_join_gains_nothing_from_new_referenced_rows(on: str, facts: al.Facts) -> None:
    flipped = on.replace("left", "x").replace("right", "left").replace("x", "right")
    views = (
        ORDERS.join(SHOPS, on),
        SHOPS.join(ORDERS, flipped),
        ORDERS.join(SHOPS, on).project(["town", "price"]),
        ORDERS.select("price > 1").join(SHOPS.select("town = 2"), on),
        ORDERS.join(SHOPS, on).group_by(["town"], {"n": "count(*)", "s": "sum(price)"}),
        ORDERS.semi(SHOPS, on),
        ORDERS.anti(SHOPS, on),
        SHOPS.semi(ORDERS, flipped),
        ORDERS.left(SHOPS, on),
        (ORDERS.join(SHOPS, on).project(["id"]) + ORDERS.project(["id"])).distinct(),
    )
    for q in views:
        assert irrelevant(al.change(q, ["shops"]), facts), str(q)


def test_the_trace_names_the_foreign_key() -> None:
    steps: list[al.Step] = []
    change = al.change(ORDERS.join(SHOPS, SHOP), ["shops"])
    assert isinstance(al.simplify(change.added, ONE, trace=steps), Empty)
    assert "join_foreign_key" in {s.law for s in steps}
    assert any("S ⋈ ΔT" in s.equation for s in steps)


@pytest.mark.parametrize(("on", "facts"), BY_KEY)
def test_join_changes_where_the_referenced_side_also_loses(on: str, facts: al.Facts) -> None:
    """A row may be replaced by another of the same key."""
    both = al.Facts(foreign_keys=facts.foreign_keys, keys=facts.keys)
    for q in (ORDERS.join(SHOPS, on), ORDERS.semi(SHOPS.select("town = 2"), on)):
        removed, added = small(al.change(q, ["shops"]), both)
        assert not isinstance(removed, Empty) and not isinstance(added, Empty)


def test_join_changes_where_both_sides_grow() -> None:
    removed, added = small(al.change(ORDERS.join(SHOPS, SHOP), ["orders", "shops"]), ONE)
    assert not isinstance(added, Empty)
    grows = al.Facts(foreign_keys=ONE.foreign_keys, append_only=["orders", "shops"])
    removed, added = small(al.change(ORDERS.join(SHOPS, SHOP), ["orders", "shops"]), grows)
    assert isinstance(removed, Empty) and not isinstance(added, Empty)
    assert all(x.name != "orders" or x.state == "Δ" for x in al.tables(added)), (
        "only new orders are looked at"
    )


def test_join_changes_without_the_foreign_key() -> None:
    for on, facts in ((NR, ONE), (SHOP, TWO), ("left.id = right.shop", ONE)):
        assert not irrelevant(al.change(ORDERS.join(SHOPS, on), ["shops"]), facts)


def test_join_of_nulls_changes() -> None:
    """A row with NULL references nothing; <=> finds a partner for it when one comes."""
    on = "left.shop <=> right.shop"
    assert not irrelevant(al.change(ORDERS.join(SHOPS, on), ["shops"]), ONE)


# ── append-only sources ──

MONOTONE = {
    "select": R.select("a > 1"),
    "project": R.project({"c": "a + b"}),
    "join": R.join(S, ["a"]),
    "product": R.product(S),
    "plus": R + S,
    "all": (R.select("a > 1").join(S, ["a"]).project({"a": "#0", "b": "#3"}) + T).select("b = 1"),
    "self": R.join(R, "left.a = right.b"),
    "three": R.join(S, "#1 = #2").join(T, "#3 = #4").project({"x": "#0", "y": "#5"}),
    "semi": R.semi(S, ["a"]),
    "min": R & S,
    "max": R | S,
    "distinct": (R + S).distinct(),
    "no aggregate": R.join(S, ["a"]).project({"a": "#0"}).distinct(),
}


@pytest.mark.parametrize("view", MONOTONE)
def test_append_only_sources_remove_nothing(view: str) -> None:
    q = MONOTONE[view]
    assert append_only(q, al.Facts(append_only=["R", "S", "T"]))
    assert not append_only(q, al.Facts(append_only=["T"]))


@pytest.mark.parametrize("q", [R - S, R.anti(S, ["a"]), R.left(S, ["a"])], ids=str)
def test_append_only_is_not_kept_by_operators_that_look_at_what_is_missing(q: Query) -> None:
    assert not append_only(q, al.Facts(append_only=["R", "S"]))
    assert append_only(q, al.Facts(append_only=["R", "S"], insert_free=["S"]))


def test_tables_that_only_lose_add_nothing() -> None:
    facts = al.Facts(insert_free=["R", "S"])
    removed, added = small(al.change(R.join(S, ["a"]).project({"a": "#0"}), ["R", "S"]), facts)
    assert isinstance(added, Empty) and not isinstance(removed, Empty)


# ── disjointness ──


def test_monus_of_tables_disjoint_by_predicate_disappears() -> None:
    """Open and closed accounts never meet: R ∸ S is R, and its change is R's."""
    facts = al.Facts(checks={"R": "a < 2", "S": "a >= 2"})
    steps: list[al.Step] = []
    assert al.simplify(R - S, facts, trace=steps) is R
    assert [s.law for s in steps] == ["monus_disjoint"]
    assert steps[0].equation == "S ∸ T = S when S min T = ∅."
    assert [str(part) for part in small(al.change(R - S, ["R", "S"]), facts)] == ["∇R", "ΔR"]
    assert al.simplify(R.select("a < 1") - S.select("a > 1")) is R.select("a < 1")
    assert al.simplify(R - S, al.Facts(disjoint=[(R, S)])) is R
    assert al.simplify(R - (S + T), facts) is R - T
    assert al.simplify((R & S) + T, facts) is T
    names = {"R": "a IN (1, 2)", "S": "a IN (3, 4) AND b = 1"}
    assert al.simplify(R - S, al.Facts(checks=names)) is R
    null = {"R": "a IS NULL", "S": "a IS NOT NULL"}
    assert al.simplify(R - S, al.Facts(checks=null)) is R


def test_join_of_columns_that_never_meet_is_empty() -> None:
    """The checks of R and S contradict on the joined columns, in all states and changes."""
    facts = al.Facts(checks={"R": "a < 5", "S": "b > 10"})
    on = "left.a = right.b"
    for q in (R.join(S, on), R.semi(S, on), R.join(S, f"left.b = right.a AND {on}")):
        assert isinstance(al.simplify(q, facts), Empty)
        assert irrelevant(al.change(q, ["R", "S"]), facts)
        assert al.simplify(q) is q
    for null_safe in (R.join(S, "left.a <=> right.b"), R.product(S).select("#0 <=> #3")):
        assert isinstance(al.simplify(null_safe, facts), Empty)
    assert not irrelevant(al.change(R.join(S, "left.a <= right.b"), ["R", "S"]), facts)
    # NULL meets NULL under <=>, and in no other way
    either = al.Facts(checks={"R": "a < 5 OR a IS NULL", "S": "b > 10 OR b IS NULL"})
    assert irrelevant(al.change(R.join(S, on), ["R"]), either)
    assert not irrelevant(al.change(R.join(S, "left.a <=> right.b"), ["R"]), either)
    # what holds of a column holds of those it is equal to
    equal = R.join(S, on).select("#3 > 7")
    assert isinstance(al.simplify(equal, al.Facts(checks={"R": "a < 5"})), Empty)
    half = R.semi(S, on).select("a < 10")
    assert isinstance(al.simplify(half, al.Facts(checks={"S": "b > 10"})), Empty)


@pytest.mark.parametrize(
    ("predicate", "nothing"),
    [
        ("a = 'z' AND a <> 'z'", True),
        ("a <> 'z' AND 'z' = a", True),
        ("a = 1 AND NOT a = 1", True),
        ("a <=> 1 AND a <> 1", True),
        ("a IN (1, 2) AND a <> 1 AND a <> 2", True),
        ("a IN (1, 2) AND NOT a IN (3, 2, 1)", True),
        ("NOT a IN (1, NULL)", True),
        ("NOT a <> 1 AND a > 1", True),
        ("a = b AND b = 1 AND a <> 1", True),
        ("a = b AND b <> 1 AND a = 1", True),
        ("a <> 1 AND a IS NULL", True),
        ("a >= 1 AND a <= 1 AND a <> 1", True),
        ("a = 'z' AND a <> 'y'", False),
        ("a <> 1 AND a <> 2", False),
        ("a IN (1, 2) AND a <> 1", False),
        ("a <> 1 OR a = 1", False),
        ("(a = 1 OR a <> 1) AND a = 1", False),
        ("a = 1 AND b <> 1", False),
        ("NOT a <=> 1", False),
        ("a IN ('1') AND a IN (1)", False),  # an engine may find them equal
        ("a IN ('1') AND a = 1", False),
        ("a = '1' AND a <> 1", False),
    ],
)
def test_a_predicate_that_no_row_meets(predicate: str, nothing: bool) -> None:
    q = R.select(predicate)
    assert isinstance(al.simplify(q), Empty) == nothing
    if "'" not in predicate:
        rows = {"R": [(a, b) for a in (None, 0, 1, 2, 3) for b in (None, 1, 2)]}
        assert al.evaluate(q, rows) == al.evaluate(al.simplify(q), rows)
        assert not (nothing and al.evaluate(q, rows))


def test_projection_of_disjoint_tables_is_not_disjoint() -> None:
    facts = al.Facts(checks={"R": "a < 2", "S": "a >= 2"})
    q = R.project(["b"]) - S.project(["b"])
    assert al.simplify(q, facts) is q


def test_keys_make_a_change_simple() -> None:
    """Without duplicates ΔR and R are disjoint, so ε needs no lookup."""
    facts = al.Facts(keys={"R": ["a"]})
    assert str(small(al.change(R.distinct(), ["R"]), facts)[1]) == "ΔR"
    assert al.simplify(R.distinct(), facts) is R


# ── size ──


def join_of(n: int) -> Query:
    q: Query = al.table("R1", ["k1", "v1", "k2"])
    for i in range(2, n + 1):
        t = al.table(f"R{i}", [f"k{i}", f"v{i}", f"k{i + 1}"])
        q = q.join(t, f"left.k{i} = right.k{i}")
    return q


def sizes(n: int, changed: list[str], facts: al.Facts) -> tuple[int, int]:
    c = al.change(join_of(n), changed)
    return al.size(*c), al.size(*al.simplify_all(tuple(c), facts))


@pytest.mark.parametrize("grows", [False, True])
def test_change_of_a_join_is_linear_in_its_tables(grows: bool) -> None:
    names = [f"R{i}" for i in range(1, 61)]
    facts = al.Facts(append_only=names if grows else ())
    for changed in (names[:30], names), (["R1"], ["R1"]), (["R30"], ["R60"]), (["R15"], ["R30"]):
        half, whole = sizes(30, changed[0], facts), sizes(60, changed[1], facts)
        assert whole[0] <= 2.2 * half[0] and whole[1] <= 2.2 * half[1], (changed, half, whole)


def test_signed_change_of_a_join_has_one_term_for_each_changed_input() -> None:
    dq = {n: al.signed(join_of(n), [f"R{i}" for i in range(1, n + 1)]) for n in (15, 30)}
    assert al.size(dq[30]) <= 2.2 * al.size(dq[15])


def test_trace_of_a_query_that_is_small_already_is_empty() -> None:
    steps: list[al.Step] = []
    q = R.join(S, ["a"])
    assert al.simplify(q, trace=steps) is q and steps == []
    assert al.simplify(NONE) is NONE
