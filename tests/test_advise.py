"""Advice without Spark: what a probe finds in plans, what a layout says, what is worth telling."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from viewkeeper import algebra as al
from viewkeeper.advice import Advice
from viewkeeper.advise import LEAST, _clustered, advise, apply, text
from viewkeeper.algebra.sql_names import unique_names
from viewkeeper.compiled import Compiled
from viewkeeper.engine.vector import Pin
from viewkeeper.frontend import Definition
from viewkeeper.frontend.definition import SourceRef
from viewkeeper.intermediates import stored_parts
from viewkeeper.lake import layout, lookup
from viewkeeper.lake.layout import Layout
from viewkeeper.lake.sources import Source
from viewkeeper.plan.bags import BagStore
from viewkeeper.plan.groups import group_store
from viewkeeper.plan.probe import Lookup, Needs, needs
from viewkeeper.records import InvalidOptionError, Record

C = al.table("C", ["ck", "name"])
O = al.table("O", ["ok", "ck", "total"])  # noqa: E741
L = al.table("L", ["ok", "price"])


@dataclass
class Facts:
    """Tables of given sizes."""

    sizes: dict[str, int] = field(
        default_factory=lambda: {"C": 150_000, "O": 1_500_000, "L": 6_000_000, "#store": 10_000}
    )
    values: dict[tuple[str, str], int] = field(default_factory=dict)
    unsought: set[str] = field(default_factory=set)
    by_spark: set[str] = field(default_factory=set)

    def rows(self, leaf: al.Table) -> int:
        return self.sizes[leaf.name]

    def distinct(self, leaf: al.Table, column: int) -> int | None:
        return self.values.get((leaf.name, leaf.names[column]))

    def can_seek(self, leaf: al.Table, column: int) -> bool:
        return leaf.names[column] not in self.unsought

    def on_driver(self, leaf: al.Table) -> bool:
        return leaf.name not in self.by_spark

    def size(self, leaf: str) -> int:
        return self.sizes[leaf] * 20

    def is_ours(self, leaf: str) -> bool:
        return leaf.startswith("#")


def bag(q: al.Query) -> BagStore:
    return BagStore(q, unique_names(q.columns))


JOINED = C.join(O, "left.ck = right.ck").join(L, "left.ok = right.ok")


def sought(found: Needs) -> dict[str, tuple[tuple[str, ...], int]]:
    return {u.leaf.name: (u.columns, u.rows) for u in found.lookups}


# ── the probe ──


def test_lookups_go_outwards_from_the_change() -> None:
    found = needs(bag(JOINED), "C", 10, Facts())
    by = sought(found)
    assert by["O"] == (("ck",), 100), "ten orders for each customer, by the sizes"
    assert by["L"] == (("ok",), 4000), "forty lineitems for each customer, or more"
    assert "#store" in by and not found.wholes
    assert all(u.on_driver for u in found.lookups)
    other = sought(needs(bag(JOINED), "L", 10, Facts()))
    assert (other["O"], other["C"]) == ((("ok",), 10), (("ck",), 10))


def test_grouped_views_look_up_their_groups() -> None:
    shape = group_store(JOINED.group_by(["name"], {"n": "count(*)", "hi": "max(price)"}))
    assert shape is not None
    found = needs(shape, "O", 10, Facts())
    by = sought(found)
    assert by["#store"][0] == ("name",)
    assert {u.columns for u in found.lookups if u.leaf.name == "C"} == {("ck",), ("name",)}


def test_few_values_have_many_rows() -> None:
    """A column with 25 values: a lookup by some of them is no lookup any more."""
    few = Facts(values={("O", "ck"): 25})
    found = needs(bag(C.join(O, "left.ck = right.ck")), "C", 10, few)
    use = next(u for u in found.lookups if u.leaf.name == "O")
    assert use.rows == 600_000 and not use.on_driver, "Spark filters them"
    many = needs(bag(C.join(O, "left.ck = right.ck")), "C", 5000, Facts(by_spark={"O"}))
    assert [str(w) for w in many.wholes] == ["O"]


def test_what_is_not_sought_is_read_whole() -> None:
    found = needs(bag(JOINED), "C", 10, Facts(unsought={"ck"}))
    assert "O" not in sought(found) and "O" in {str(w) for w in found.wholes}
    listed = needs(bag(JOINED), "C", 10, Facts(by_spark={"O"}))
    by = {u.leaf.name: u.on_driver for u in listed.lookups}
    assert by["O"] is False and "L" not in by, "what Spark finds is not on the driver"


def test_small_tables_are_never_told_of() -> None:
    small = Facts(sizes={"C": 100, "O": 100, "L": 100, "#store": 10})
    assert not needs(bag(C.join(O, "left.ck < right.ck")), "C", 10, small).wholes


# ── intermediates ──

TOP = L.group_by([], {"m": "max(price)"})
ABOVE = O.join(TOP, "total > m")


def compiled(q: al.Query) -> Compiled:
    sources = {t.name: SourceRef(("c", "d", t.name.lower()), "delta") for t in al.tables(q)}
    return Compiled(Definition(q, sources, None), bag(q), None)


def record() -> Record:
    names: dict[str, Any] = dict.fromkeys(["id", "label", "sql", "catalog", "schema"], "v")
    return Record(**names, name="`c`.`d`.`v`", store="`c`.`k`.`s`")


def test_a_part_that_no_change_controls_is_worth_a_view() -> None:
    found = [needs(bag(ABOVE), name, 10, Facts()) for name in ("O", "L")]
    assert TOP in found[0].wholes, "read whole for each change of O"
    (advice,) = stored_parts(record(), compiled(ABOVE), found, Facts())
    assert advice.kind == "intermediate" and advice.changed == ("O", "L")
    assert advice.read_before == 120_000_000 and advice.read_after < 100
    part, view = advice.sql
    assert part == (
        "CREATE MATERIALIZED VIEW `c`.`d`.`v_part1` AS "
        "SELECT MAX(s.price) AS m FROM `c`.`d`.`l` AS s"
    )
    assert view.startswith("CREATE OR REPLACE MATERIALIZED VIEW `c`.`d`.`v` AS SELECT")
    assert "`c`.`d`.`v_part1`" in view and "`l`" not in view
    assert "about 1 rows" in str(advice) and "after changes of O, L" in str(advice)


def test_a_table_and_the_whole_query_are_not() -> None:
    theta = O.join(L, "total > price")
    found = [needs(bag(theta), name, 10, Facts()) for name in ("O", "L")]
    assert [str(w) for w in found[0].wholes] == ["L"]
    assert not list(stored_parts(record(), compiled(theta), found, Facts()))


# ── layouts and clustering ──


def files(size: int, ranges: list[tuple[Any, Any]], **more: list[tuple[Any, Any]]) -> Layout:
    columns: dict[str, Any] = {
        "size_bytes": [size] * len(ranges),
        "num_records": [size // 20] * len(ranges),
    }
    for name, held in {"k": ranges, **more}.items():
        columns[f"min.{name}"] = [a for a, _ in held]
        columns[f"max.{name}"] = [b for _, b in held]
    return Layout(pa.table(columns))


MB = 2**20
MIXED = [(i % 7, 10**6 - i % 5) for i in range(100)]
SORTED = [(i * 10_000, i * 10_000 + 9_999) for i in range(100)]
PIN = Pin(Source("`c`.`d`.`t`", "id", "/nowhere"), 3, {})


def use(columns: dict[str, int], rows: int = 10) -> Lookup:
    leaf = al.table("T", ["k", "j"])
    assert isinstance(leaf, al.Table)
    return Lookup(leaf, {leaf.names.index(c): n for c, n in columns.items()}, rows, True)


def test_a_mixed_table_is_to_be_clustered() -> None:
    advice = _clustered(PIN, files(8 * MB, MIXED), [("R", use({"k": 20}))])
    assert advice is not None and advice.seconds > LEAST
    assert advice.sql[1] == "OPTIMIZE `c`.`d`.`t` ZORDER BY (`k`)"
    assert advice.read_before == advice.cost == 800 * MB
    assert advice.read_after < advice.read_before / 10
    assert "100% of 100 files" in str(advice) and "saves" in text([advice])
    assert "rewrites 838.9 MB once" in str(advice)


@pytest.mark.parametrize(
    ("size", "ranges", "values"),
    [
        (8 * MB, SORTED, 20),  # it is clustered
        (2**10, MIXED[:10], 20),  # it is small
        (8 * MB, MIXED, 50_000),  # nearly all files hold one of so many values
        (8 * MB, [(None, None)] * 100, 20),  # no statistics: Delta refuses to cluster by it
    ],
)
def test_nothing_to_advise(size: int, ranges: list[tuple[Any, Any]], values: int) -> None:
    advice = _clustered(PIN, files(size, ranges), [("R", use({"k": values}))])
    assert advice is None or advice.seconds < LEAST
    assert text([]).startswith("Nothing to advise")


def test_two_columns_if_two_changes_ask_for_them() -> None:
    held = files(8 * MB, MIXED, j=MIXED)
    both = _clustered(PIN, held, [("R", use({"k": 1})), ("S", use({"j": 1}))])
    assert both is not None and "ZORDER BY (`k`, `j`)" in both.sql[1]
    assert both.changed == ("R", "S")
    one = _clustered(PIN, held, [("R", use({"k": 1, "j": 1}))])
    assert one is not None and "ZORDER BY (`k`)" in one.sql[1], "either column is enough"
    kept = files(8 * MB, SORTED, j=MIXED)
    mixed = _clustered(PIN, kept, [("R", use({"k": 1})), ("S", use({"j": 5000}))])
    assert mixed is None, "the other lookup would lose more"


def test_ranges_of_all_types() -> None:
    dates = [(datetime.date(2020, 1, 1 + i), datetime.date(2020, 1, 1 + i)) for i in range(10)]
    texts = [(f"a{i}", f"a{i}z") for i in range(10)]
    numbers = [(Decimal(i), Decimal(i) + Decimal("0.5")) for i in range(10)]
    for held in (dates, texts, numbers):
        found = files(100, held)
        assert 95 < found.bytes_for("k", 1) < 250 and found.bytes_for("k", 500) > 900
    assert files(100, dates).distinct("k") == 10 and files(100, texts).distinct("k") is None
    nothing = files(100, [(None, None), (1, 2)])
    assert nothing.bytes_for("k", 1) == 200 and nothing.bytes_for("other", 1) == 200


def test_only_what_changes_no_rows_is_applied() -> None:
    with pytest.raises(InvalidOptionError, match="not applied"):
        apply(None, Advice("intermediate", "t", "keep it", "it is large"))  # type: ignore[arg-type]


# ── from the logs of real tables ──


class Pins:
    """Tables that deltalake wrote, in the place of a vector of pins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def pin(self, name: str) -> Pin:
        path = str(self.folder / name.strip("`").split("`.`")[-1])
        table = DeltaTable(path)
        held = table.metadata()
        fields = {"schemaString": table.schema().to_json(), "configuration": held.configuration}
        more = {"partitionColumns": held.partition_columns}
        return Pin(Source(name, str(held.id), path), table.version(), {**fields, **more})


def test_all_of_it_on_real_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "LEAST_SIZE", 10_000)
    feed = {"delta.enableChangeDataFeed": "true"}
    for i in range(8):
        numbers = pa.array([(n * 7919) % 6000 for n in range(i * 1500, (i + 1) * 1500)], pa.int64())
        rows = pa.table({"ok": numbers, "price": numbers})
        write_deltalake(tmp_path / "l", rows, mode="append", configuration=feed if i == 0 else None)
    few = pa.table({"ok": pa.array(range(100), pa.int64()), "ck": pa.array([1] * 100, pa.int64())})
    write_deltalake(tmp_path / "o", few)
    write_deltalake(tmp_path / "s", pa.table({"ck": [1], "price": [1], "__count": [1]}))
    DeltaTable(tmp_path / "o").update(predicate="ok = 7", updates={"ck": "2"})
    q = al.table("O", ["ok", "ck"]).join(al.table("L", ["ok", "price"]), "left.ok = right.ok")
    nothing: Any = None
    vector: Any = Pins(tmp_path)

    def found(rows: int = 1, least: float = 0.0, ours: tuple[str, ...] = ()) -> list[Advice]:
        made = compiled(q.project(["ck", "price"]))
        return advise(nothing, record(), made, vector, rows=rows, least=least, ours=ours)

    assert found(least=LEAST) == [], "small tables"
    assert {(a.kind, a.table, a.changed) for a in found()} == {
        ("clustering", "`c`.`d`.`l`", ("O",)),
        ("feed", "`c`.`d`.`o`", ("O",)),
    }
    assert not found(ours=("`c`.`d`.`l`", "`c`.`d`.`o`")), "stores of views are left alone"
    DeltaTable(tmp_path / "l").optimize.z_order(["ok"], target_size=10_000)
    DeltaTable(tmp_path / "o").alter.set_table_properties(feed)
    assert found() == [], "all of it was done"

    def obstacle(source: Source, version: int) -> str | None:
        return "deletion vectors" if source.name.endswith("`o`") else None

    monkeypatch.setattr(lookup, "obstacle", obstacle)
    (advice,) = found()
    assert (advice.kind, advice.changed) == ("driver", ("L",))
    assert "deletion vectors" in advice.why and "DROP FEATURE" in advice.sql[-1]
