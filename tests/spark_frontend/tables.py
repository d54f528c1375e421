"""Small Delta tables with NULLs and duplicates, and how results are compared."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

TABLES = (
    """CREATE OR REPLACE TABLE r (a INT, b STRING, d DATE, n DECIMAL(12,2), x DOUBLE, t TIMESTAMP,
         arr ARRAY<INT>, m MAP<STRING,INT>, st STRUCT<u:INT,`v w`:STRING>, big BIGINT, `my col` INT)
       USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')""",
    """INSERT INTO r
       SELECT a, b, CAST(d AS DATE), CAST(n AS DECIMAL(12,2)), x, CAST(t AS TIMESTAMP), arr, m, st,
              big, mc
       FROM VALUES
       (1, 'x', '2020-01-15', 1.50, 0.5D, '2020-01-15 10:05:00', array(1, 2), map('k', 1),
        named_struct('u', 1, 'v w', 'p'), 10L, 1),
       (1, 'x', '2020-01-15', 1.50, 0.5D, '2020-01-15 10:05:00', array(1, 2), map('k', 1),
        named_struct('u', 1, 'v w', 'p'), 10L, 1),
       (2, 'y', '2020-02-29', 2.25, 1.5D, '2020-02-29 23:59:59', array(), map(),
        named_struct('u', 2, 'v w', CAST(NULL AS STRING)), 20L, 2),
       (2, 'xy', '2021-12-31', -3.00, -1.0D, '2021-12-31 00:00:00', array(3, NULL), NULL, NULL,
        -5L, NULL),
       (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3),
       (NULL, 'it''s', '2022-06-01', 0.00, 0.0D, '2022-06-01 12:00:00', array(9), map('z', 9),
        named_struct('u', 7, 'v w', 'q'), 3000000000L, 4),
       (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
       v(a, b, d, n, x, t, arr, m, st, big, mc)""",
    "CREATE OR REPLACE TABLE s (a INT, c BIGINT, e STRING) USING delta",
    """INSERT INTO s VALUES (1, 10L, 'x'), (1, 11L, 'x'), (2, 10L, NULL), (4, 40L, 'w'),
       (NULL, 5L, 'n'), (2, 10L, NULL)""",
    "CREATE OR REPLACE TABLE one (k INT, v INT) USING delta",
    "INSERT INTO one VALUES (1, 100), (2, 200), (5, NULL)",
    "CREATE OR REPLACE TABLE pq (a INT, b STRING) USING parquet",
    "INSERT INTO pq VALUES (1, 'x'), (1, 'x'), (NULL, NULL)",
    "CREATE OR REPLACE VIEW sv AS SELECT a, count(*) AS n FROM s GROUP BY a",
    "CREATE OR REPLACE TEMPORARY VIEW tv AS SELECT a, c FROM s WHERE c > 5",
)


def queries() -> list[str]:
    """Queries that must be read: one or more for each operator and kind of expression."""
    lines = (Path(__file__).parent / "queries.sql").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("--")]


def make(spark: Any) -> None:
    """The tables and views of the tests."""
    for statement in TABLES:
        if "REPLACE TABLE pq" in statement:
            spark.sql("DROP TABLE IF EXISTS pq")
            statement = statement.replace("OR REPLACE ", "")
        spark.sql(statement)


def bag(frame: Any) -> Counter[str]:
    """The rows of a DataFrame, each with how often it occurs; floats are rounded."""
    return Counter(repr(tuple(_plain(v) for v in row)) for row in frame.collect())


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return sorted((k, _plain(v)) for k, v in value.items())
    return value


def types(frame: Any) -> list[tuple[str, str]]:
    """The names and types of a DataFrame's columns."""
    return [(f.name, f.dataType.simpleString()) for f in frame.schema]
