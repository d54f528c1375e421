"""A table with a transaction laid over it, against bags: no Spark, no files."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, IntegerType, StringType, StructField, StructType

from viewkeeper.engine.overlay import Overlay
from viewkeeper.engine.vector import Pin
from viewkeeper.lake.sources import Source

STRUCT = StructType(
    [
        StructField("a", IntegerType()),
        StructField("b", StringType()),
        StructField("c", DoubleType()),
    ]
)
PIN = Pin(Source("t", "1", "/t"), 0, {"schemaString": json.dumps(json.loads(STRUCT.json()))})
SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.float64())])


def rows(bag: Counter[Any]) -> pa.Table:
    listed = list(bag.elements())
    columns = [[row[i] for row in listed] for i in range(3)]
    return pa.table(columns, schema=SCHEMA)


def bag(table: pa.Table) -> Counter[Any]:
    return Counter(zip(*(table.column(i).to_pylist() for i in range(3)), strict=True))


def some(chance: random.Random, most: int) -> Counter[Any]:
    values = [(a, b, c) for a in (1, 2, None) for b in ("x", None) for c in (0.0, 1.5, None)]
    return Counter(chance.choices(values, k=chance.randint(0, most)))


@pytest.mark.parametrize("seed", range(60))
def test_overlay_oracle(seed: int) -> None:
    chance = random.Random(seed)
    old = some(chance, 8)
    state, overlay = Counter(old), Overlay.of(PIN)
    for _ in range(chance.randint(1, 6)):
        if chance.random() < 0.5:
            come = some(chance, 4)
            overlay, state = overlay.inserted(rows(come)), state + come
        else:  # a statement takes every copy of the rows that meet its condition
            column, value = chance.randint(0, 2), chance.choice([1, 2, "x", None, 0.0, 1.5])
            gone = Counter({r: n for r, n in state.items() if r[column] == value})
            overlay, state = overlay.deleted(rows(gone)), state - gone
        check(overlay, old, state)


def check(overlay: Overlay, old: Counter[Any], new: Counter[Any]) -> None:
    change = overlay.change
    weights = change.column("__weight").to_pylist()
    found = dict(zip(bag_rows(change), weights, strict=True))
    wanted = {r: new[r] - old[r] for r in old | new if new[r] != old[r]}
    assert found == wanted, "the strongly minimal change"
    assert overlay.sizes == ((new - old).total(), (old - new).total())
    assert overlay.empty == (new == old)
    patch = overlay.patch()
    ops = patch.rows.column("__op").to_pylist()
    after = Counter(old)
    for row, op in zip(bag_rows(patch.rows), ops, strict=True):
        if op == "D":
            del after[row]
    for row, op in zip(bag_rows(patch.rows), ops, strict=True):
        after[row] += op == "I"
    assert +after == new, "what the lake is told to do"
    assert patch.only_inserts == ("D" not in ops)
    for wanted_a in ([1, None], [2], [1, 2, None]):
        limits = {"a": pa.array(wanted_a, pa.int32())}
        looked_up = Counter({r: n for r, n in old.items() if r[0] in wanted_a})
        seen = overlay.after(rows(looked_up), ["a", "b", "c"], limits)
        assert bag(seen) == Counter({r: n for r, n in new.items() if r[0] in wanted_a})


def bag_rows(table: pa.Table) -> list[Any]:
    return list(zip(*(table.column(i).to_pylist() for i in range(3)), strict=True))


def test_a_zero_is_a_zero() -> None:
    negative = rows(Counter([(1, "x", -0.0), (1, "x", 0.0)]))
    assert Overlay.of(PIN).inserted(negative).rows.num_rows == 1
