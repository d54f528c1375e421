"""Values of the wrong kind, in all functions of the algebra: our error, not Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from viewkeeper import algebra as al
from viewkeeper.algebra.nodes import Table
from viewkeeper.errors import ViewKeeperError

R = al.table("R", ["a", "b"])
S = al.table("S", ["a", "c"])
U = al.table("U", ["x"])


@pytest.mark.parametrize(
    "wrong",
    [1, None, 2.5, object(), b"a", True],
    ids=["int", "None", "float", "object", "bytes", "bool"],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda x: al.table(x, ["a"]),
        lambda x: al.table("R", x),
        lambda x: al.table("R", [x]),
        lambda x: al.empty(x),
        lambda x: al.empty([x]),
        lambda x: al.literal(x, []),
        lambda x: al.literal([x], [(1,)]),
        lambda x: al.literal(["a"], x),
        lambda x: al.literal(["a"], [x]),
        lambda x: R.select(x),
        lambda x: R.project(x),
        lambda x: R.project([x]),
        lambda x: R.project({"x": x}),
        lambda x: R.project({x: "a"}),
        lambda x: R.rename(x),
        lambda x: R.rename({"a": x}),
        lambda x: R.product(x),
        lambda x: R.join(x, "a = a"),
        lambda x: R.join(S, x),
        lambda x: R.semi(S, [x]),
        lambda x: R.anti(x, ["a"]),
        lambda x: R.left(S, x),
        lambda x: R.right(x, "TRUE"),
        lambda x: R.full(x, ["a"]),
        lambda x: R.group_by(x, {}),
        lambda x: R.group_by([x], {}),
        lambda x: R.group_by(["a"], x),
        lambda x: R.group_by(["a"], {"n": x}),
        lambda x: R.group_by(["a"], {x: "count(*)"}),
        lambda x: al.change(x, ["R"]),
        lambda x: al.change(R, x),
        lambda x: al.change(R, [x]),
        lambda x: al.change(R, {"R": x}),
        lambda x: al.change(R, {"R": (x, x)}),
        lambda x: al.change(R, ["R"], semantics=x),
        lambda x: al.signed(x, ["R"]),
        lambda x: al.signed(R, x),
        lambda x: al.net(x),
        lambda x: al.as_set(x),
        lambda x: al.simplify(x),
        lambda x: al.simplify_all([x]),
        lambda x: al.simplify_all(x),
        lambda x: al.evaluate(x, {}),
        lambda x: al.evaluate(R, x),
        lambda x: al.evaluate(R, {"R": x}),
        lambda x: al.evaluate(R, {"R": [x]}),
        lambda x: al.evaluate(al.change(R, ["R"]).added, {"R": []}, {"R": x}),
        lambda x: al.evaluate(al.change(R, ["R"]).added, {"R": []}, {"R": (x, x)}),
        lambda x: al.evaluate(R, {"R": []}, state=x),
        lambda x: al.parse(x, {}),
        lambda x: al.parse("R", x),
        lambda x: al.parse("R", {"R": x}),
        lambda x: al.to_sql(x),
        lambda x: al.to_sql(R, dialect=x),
        lambda x: al.insert(x, R),
        lambda x: al.insert(R, x),
        lambda x: al.delete(x, R),
        lambda x: al.delete(R, x),
        lambda x: al.update(x, {}),
        lambda x: al.update(R, x),
        lambda x: al.update(R, {"a": x}),
        lambda x: al.update(R, {"a": "1"}, where=x),
        lambda x: al.transaction(x),
        lambda x: al.transaction([x]),
        lambda x: al.violations(x, ["R"]),
        lambda x: al.cost(x, {}, {}),
        lambda x: al.size(x),
        lambda x: al.tables(R, x),
    ],
)
def test_wrong_kinds_of_values(call: Callable[[Any], object], wrong: object) -> None:
    with pytest.raises(ViewKeeperError) as caught:
        call(wrong)
    assert caught.value.hint and type(caught.value) is not ViewKeeperError


def test_any_iterable_will_do() -> None:
    """One that can be read only once, and one name by itself."""
    q = R.join(S, ["a"])
    names = ["R", "S"]
    assert al.signed(q, (n for n in names)) is al.signed(q, names)
    assert al.change(q, (n for n in names)) == al.change(q, names)
    assert al.signed(q, "R") is al.signed(q, ["R"]) and al.change(q, "R") == al.change(q, ["R"])
    orders = al.table("orders", ["a"])
    assert al.signed(orders, "orders") is al.signed(orders, {"orders": 1})
    assert al.simplify_all(part for part in (R - R, R + R)) == (al.simplify(R - R), R + R)
    assert al.literal(["a"], ((i,) for i in (1, 2))) is al.literal(["a"], [[1], [2]])
    new = al.evaluate(Table("R", ("a", "b"), "@new") + R, {"R": ((i, i) for i in (1, 2))})
    assert new == {(1, 1): 2, (2, 2): 2}
    insert = al.insert(R, R)
    assert len(al.transaction(s for s in (insert, insert))) == 1


FACTS: list[tuple[str, Any]] = [
    ("keys", {"R": 1}),
    ("keys", {"R": ["z"]}),
    ("keys", ["R"]),
    ("foreign_keys", [("R", ["a"], "S")]),
    ("foreign_keys", [("R", ["a"], "S", ["a", "c"])]),
    ("foreign_keys", 1),
    ("append_only", 1),
    ("insert_free", [1]),
    ("duplicate_free", None),
    ("checks", {"R": 1}),
    ("checks", {"R": "z > 1"}),
    ("checks", ["a > 1"]),
    ("contained", [(R, U)]),
    ("contained", [(R,)]),
    ("disjoint", [("R", "S")]),
    ("disjoint", R),
]


@pytest.mark.parametrize(("fact", "value"), FACTS, ids=str)
def test_wrong_facts(fact: str, value: Any) -> None:
    added = al.change(R.join(S, ["a"]), ["R", "S"]).added
    with pytest.raises(ViewKeeperError) as caught:
        al.simplify(added, al.Facts(**{fact: value}))
    assert caught.value.hint


def test_one_table_in_a_fact_is_a_name_not_a_text() -> None:
    """The letters of a name are no tables."""
    gone = al.table("R", ["a"]), al.table("RS", ["a"])
    facts = al.Facts(append_only="RS")
    small = [al.simplify(al.change(t, [t.name]).removed, facts) for t in gone]
    assert [str(q) for q in small] == ["∇R", "∅[a]"]
