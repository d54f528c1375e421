"""What DuckDB runs in Spark's place: expressions and aggregates give the same rows and types."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from viewkeeper import algebra as al
from viewkeeper.algebra.nodes import GroupBy, Project, Query
from viewkeeper.algebra.scalars import Agg, Col, Opaque, Scalar
from viewkeeper.algebra.sql import to_sql
from viewkeeper.engine import duck
from viewkeeper.engine.sure import kinds_of

NAMES = ["s", "t", "d", "x", "i", "l", "f"]
R = al.table("R", NAMES)
LETTERS = ["a", "b", "%", "_", "'", "ä", "ß", "é", "日", "🙂", " ", "A", "special", "requests"]


def of(text: str) -> Scalar:
    """An expression as Spark's text; a column's name in braces is the column."""
    parts, args = [""], []
    for i, piece in enumerate(text.replace("}", "{").split("{")):
        if i % 2:
            args.append(Col(NAMES.index(piece)))
            parts.append("")
        else:
            parts[-1] += piece
    return Opaque(tuple(parts), tuple(args))


EXPRESSIONS = [
    "({s} LIKE '%special%requests%')", "({s} LIKE 'a_b%')", "({s} NOT LIKE '%日_')",
    "({s} LIKE '')", "(NOT {s} LIKE '%a')", "startswith({s}, {t})", "endswith({s}, 'a')",
    "contains({s}, 'ß')", "substring({s}, 1, 2)", "substring({s}, 3, 0)", "substring({s}, 2, 50)",
    "char_length({s})", "({s} || {t})", "year({d})", "month({d})", "day({d})", "quarter({d})",
    "year(CAST({d} AS DATE))", "CAST({i} AS DOUBLE)", "CAST({l} AS DOUBLE)", "({f} + {f})",
    "({f} * CAST({i} AS DOUBLE))", "({x} / 7.0BD)", "(100.00BD * {x} / 0.30BD)", "({f} - {f})",
    "({x} * (CAST(1 AS DECIMAL(1,0)) - {x}))", "CAST(({x} / 7.0BD) AS DECIMAL(38,20))",
    "CAST(CAST({i} AS SMALLINT) AS DECIMAL(5,0))", "(- {i})", "(- {l})", "CAST('12' AS BIGINT)",
]  # fmt: skip


@pytest.fixture(scope="module")
def rows(spark: Any) -> pa.Table:
    seed = 5
    print(f"seed {seed}")
    r = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if r.random() < 0.1 else value

    def text() -> Any:
        return maybe("".join(r.choices(LETTERS, k=r.randint(0, 4))))

    floats = [0.0, -0.0, 1.5, -2.25, 1e300, float("nan"), float("inf"), 0.1]
    made = [
        (
            text(), text(), maybe(date(1, 1, 1) + timedelta(days=r.randint(0, 3_600_000))),
            maybe(Decimal(r.randint(-(10**11), 10**11)).scaleb(-3)), maybe(r.randint(-99, 99)),
            maybe(r.randint(-(2**62), 2**62)), maybe(r.choice(floats)),
        )
        for _ in range(300)
    ]  # fmt: skip
    kinds = "s string, t string, d date, x decimal(12,3), i int, l bigint, f double"
    spark.createDataFrame(made, kinds).createOrReplaceTempView("sure_rows")
    return spark.table("sure_rows").toArrow()


def check(spark: Any, rows: pa.Table, query: Query) -> None:
    want = spark.sql(to_sql(query, tables={R: "sure_rows"}))
    have = duck.run(query, {R: rows}, {R: kinds_of(spark.table("sure_rows").schema)})
    types = [f.type for f in want.toArrow().schema]
    assert [f.type for f in have.schema] == types, (str(query), have.schema)
    numbered = have.rename_columns([str(i) for i in range(have.num_columns)])
    found = Counter(repr(tuple(row.values())) for row in numbered.to_pylist())
    assert found == Counter(repr(tuple(row)) for row in want.collect()), str(query)


def test_expressions_agree(spark: Any, rows: pa.Table) -> None:
    items = tuple(of(text) for text in EXPRESSIONS)
    check(spark, rows, Project(R, items, tuple(f"c{i}" for i in range(len(items)))))


def test_aggregates_agree(spark: Any, rows: pa.Table) -> None:
    aggs = (
        Agg("avg", (Col(3),), False, "decimal(12,3)"),
        Agg("sum", (Col(3),), False, "decimal(12,3)"),
        Agg("count", (Col(6),), True, "double"),
        Agg("max", (Col(6),), False, "double"),
        Agg("min", (Col(2),), False, "date"),
    )
    for keys in ((4,), ()):
        check(spark, rows, GroupBy(R, keys, aggs, tuple("abcde")))
