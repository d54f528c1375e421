"""Queries on the driver: where DuckDB is sure, its rows and types are those of the reference."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from checks import case
from viewkeeper import algebra as al
from viewkeeper.algebra.meaning import Bag
from viewkeeper.algebra.nodes import Project, Select, Unnest
from viewkeeper.algebra.repeats import times
from viewkeeper.algebra.scalars import Call, Col, Const, Opaque
from viewkeeper.algebra.sql_names import unique_names
from viewkeeper.engine import duck
from viewkeeper.engine.sure_text import UnsureError, arithmetic
from viewkeeper.plan.bags import BagStore, repeated
from viewkeeper.plan.present import signed_change


def arrow(leaf: al.Table, rows: Bag) -> pa.Table:
    columns = list(zip(*rows.elements(), strict=True)) or [()] * leaf.arity
    arrays = [pa.array(c, pa.int64()) for c in columns]
    return pa.table(arrays, names=list(unique_names(leaf.columns)))


@pytest.mark.parametrize("seeds", [range(50), range(50, 100)])
def test_random_queries_agree(seeds: range) -> None:
    sure = 0
    for seed in seeds:
        q, _, names, changes, new = case(seed, exact=True)
        q = signed_change(q, names)
        leaves = al.tables(q)
        rows = {t: arrow(t, al.evaluate(t, new, changes, state="after")) for t in leaves}
        try:
            found = duck.run(q, rows, {t: (pa.int64(),) * t.arity for t in leaves})
        except UnsureError:
            continue
        sure += 1
        want = al.evaluate(q, new, changes, state="after")
        have = Counter(tuple(row.values()) for row in _rows(found))
        assert have == want, f"seed {seed}: {q}"
    assert sure > len(seeds) // 3


def test_rows_repeated_by_a_count_agree() -> None:
    """A view over a view stored with counts: each row as often as its counts say."""
    store = al.table("store", ["a", "b", "__count"])
    q = repeated(store, ("a", "b"))
    rows = pa.table({"a": [1, 1, 2, None], "b": [5, 5, None, 7], "__count": [1, 2, 1, 3]})
    kinds = (pa.int64(), pa.int64(), pa.int64())
    found = duck.run(q, {store: rows}, {store: kinds})
    have = Counter(tuple(row.values()) for row in _rows(found))
    assert have == {(1, 5): 3, (2, None): 1, (None, 7): 3}
    grouped = q.group_by(["a"], {"n": "count(*)"})
    found = duck.run(grouped, {store: rows}, {store: kinds})
    assert {tuple(r.values()) for r in _rows(found)} == {(1, 3), (2, 1), (None, 3)}


def _of(text: str, *args: Any) -> Opaque:
    """Spark's text, with columns for the gaps."""
    return Opaque(tuple(text.split("@")), args)


BIG, DAY = 2**31 - 1, datetime.date(2024, 1, 1)


@pytest.mark.parametrize(
    "predicate",
    [
        "n + 1 > 0", "n * 2 > 0", "n - -1 <> 3", "-m > 5", "(n + 1) in (5, 7)", "l + 1 > 0",
    ],
)  # fmt: skip
def test_what_does_not_fit_is_left_to_spark(predicate: str) -> None:
    """DuckDB would compute n > -1 for n + 1 > 0, and never meet the number that is too large."""
    table = al.table("R", ["n", "m", "l"])
    rows = pa.table({"n": [BIG], "m": [-BIG - 1], "l": [2**63 - 1]})
    kinds = (pa.int32(), pa.int32(), pa.int64())
    rows = rows.cast(pa.schema(list(zip("nml", kinds, strict=True))))
    with pytest.raises(UnsureError):
        duck.run(table.select(predicate), {table: rows}, {table: kinds})


def test_texts_that_do_not_fit_are_left_to_spark() -> None:
    table = al.table("R", ["d", "x", "n"])
    kinds = (pa.date32(), pa.decimal128(12, 2), pa.int32())
    rows = pa.table({"d": [DAY], "x": [Decimal(0)], "n": [100_000]})
    rows = rows.cast(pa.schema(list(zip("dxn", kinds, strict=True))))
    product = Call("*", (_of("year(@)", Col(0)), Const(2_000_000)))
    unsure = [
        Call(">", (product, Const(0))),
        Call(">", (_of("(- CAST('-2147483648' AS INT))"), Const(0))),
        Call(">", (_of("CAST((@ / @) AS DECIMAL(38,20))", Col(1), Col(1)), Const(0))),
        Call(">", (_of("CAST(CAST(@ AS SMALLINT) AS DECIMAL(5,0))", Col(2)), Const(0))),
        Call("=", (Col(2), _of("CAST('1.5' AS INT)"))),
    ]
    for predicate in unsure:
        with pytest.raises(UnsureError):
            duck.run(Select(table, predicate), {table: rows}, {table: kinds})


def test_a_sum_that_is_only_compared_must_fit() -> None:
    table = al.table("R", ["k", "l"])
    kinds = (pa.int64(), pa.int64())
    sums = table.group_by(["k"], {"s": "sum(l)"})
    rows = pa.table({"k": [1, 1], "l": [2**62, 2**62]})
    with pytest.raises(UnsureError):
        duck.run(sums.select("s > 0").project(["k"]), {table: rows}, {table: kinds})
    found = duck.run(sums.select("s > 0"), {table: rows.slice(1)}, {table: kinds})
    assert _rows(found) == [{"0": 1, "1": 2**62}]


def test_numbers_are_counted_down_as_spark_does() -> None:
    """explode(sequence(1, n)) of a user's, where n need not be a count."""
    table = al.table("R", ["n"])
    q = Unnest(table, times(Col(0)), ("i",), False)
    rows = pa.table({"n": [2, 0, -1, None]})
    found = Counter(
        tuple(r.values()) for r in _rows(duck.run(q, {table: rows}, {table: (pa.int64(),)}))
    )
    assert found == Counter([(2, 1), (2, 2), (0, 1), (0, 0), (-1, 1), (-1, 0), (-1, -1)])


def _rows(table: pa.Table) -> list[dict[str, object]]:
    numbered = table.rename_columns([str(i) for i in range(table.num_columns)])
    found: list[dict[str, object]] = numbered.to_pylist()
    return found


def test_decimals_have_the_digits_of_spark() -> None:
    """price · (1 − discount), and its sum."""
    parts = ("(", " * (CAST(1 AS DECIMAL(1,0)) - ", "))")
    text, _, kind = arithmetic(parts, [pa.decimal128(15, 2)] * 2)
    assert kind == pa.decimal128(32, 4)
    leaf = al.table("R", ["k", "p", "d"])
    total = Opaque(text, (Col(1), Col(2)))
    q = Project(leaf, (Col(0), total), ("k", "x")).group_by(["k"], {"s": "sum(x)"})
    kinds = (pa.int64(), pa.decimal128(15, 2), pa.decimal128(15, 2))
    rows = pa.table(
        [pa.array([1, 1, 2]), pa.array(["2.50", "1.00", None]), pa.array(["0.10", "0.00", "0.1"])],
        names=["k", "p", "d"],
    ).cast(pa.schema(list(zip("kpd", kinds, strict=True))))
    found = duck.run(q, {leaf: rows}, {leaf: kinds})
    assert found.schema.field("s").type == pa.decimal128(38, 4)
    assert sorted(found.to_pylist(), key=lambda r: r["k"]) == [
        {"k": 1, "s": Decimal("3.2500")},
        {"k": 2, "s": None},
    ]


@pytest.mark.parametrize(
    ("parts", "kinds"),
    [
        (("sqrt(", ")"), [pa.int64()]),
        (("(", " / ", ")"), [pa.int64()] * 2),
        (("(", " * ", ")"), [pa.decimal128(30, 10)] * 2),
        (("CAST(", " AS DECIMAL(3,1))"), [pa.decimal128(5, 2)]),
        (("(", " + ", ")"), [pa.float32()] * 2),
        (("(", " LIKE 'a\\\\_b')"), [pa.string()]),
        (("substring(", ", 0, 2)"), [pa.string()]),
        (("year(", ")"), [pa.timestamp("us")]),
        (("CAST('2024/01/02' AS DATE)",), []),
        (("(", " >= X'')"), [pa.binary()]),
        (("X'61FF'",), []),
    ],
)
def test_what_is_left_to_spark(parts: tuple[str, ...], kinds: list[pa.DataType]) -> None:
    with pytest.raises(UnsureError):
        arithmetic(parts, kinds)


def test_an_overflow_is_left_to_spark() -> None:
    leaf = al.table("R", ["a"])
    rows = pa.table({"a": pa.array([2**62, 2**62], pa.int64())})
    with pytest.raises(UnsureError):
        duck.run(leaf.group_by([], {"s": "sum(a)"}), {leaf: rows}, {leaf: (pa.int64(),)})
    with pytest.raises(UnsureError):
        duck.run(leaf.project({"b": "a * 4"}), {leaf: rows}, {leaf: (pa.int64(),)})
    narrow = Opaque(("CAST(", " AS DECIMAL(18,0))"), (Col(0),))
    with pytest.raises(UnsureError):
        duck.run(Project(leaf, (narrow,), ("b",)), {leaf: rows}, {leaf: (pa.int64(),)})


def test_a_column_named_weight() -> None:
    """The weight of a change is its last column, whatever the table's own columns are called."""
    shape = BagStore(al.table("R", ["a", "weight"]), ("a", "weight"))
    query = shape.refresh(["R"]).computes[0].query
    (leaf,) = al.tables(query)
    rows = pa.table([pa.array([2, 3]), pa.array([6, 7]), pa.array([1, -2])], names=["x", "y", "z"])
    found = duck.run(query, {leaf: rows}, {leaf: (pa.int64(),) * 3})
    assert sorted(tuple(r.values()) for r in _rows(found)) == [(2, 6, 1), (3, 7, -2)]
