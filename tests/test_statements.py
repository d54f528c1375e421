"""Statements about materialized views, read without Spark."""

from __future__ import annotations

import pytest

from viewkeeper.errors import NotationError
from viewkeeper.statements import Statement, read_statement


def read(text: str) -> Statement:
    found = read_statement(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "properties",
    [
        "('refresh' = 'full', 'maintain' = 'deferred')",
        "(refresh = 'FULL', maintain = 'deferred')",
        "(viewkeeper.refresh = 'full', viewkeeper.maintain = 'deferred')",
        "('viewkeeper.refresh' 'full', \"viewkeeper.maintain\" 'deferred')",
    ],
)
def test_agrees_properties_in_every_spelling(properties: str) -> None:
    found = read(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES {properties} AS SELECT 1 AS a")
    assert found.options == {"refresh": "full", "maintain": "deferred"}
    assert found.query == "SELECT 1 AS a"


def test_agrees_clauses_in_any_order() -> None:
    first = "COMMENT 'it''s one; AS it stands'"
    second = "TBLPROPERTIES ('refresh' = 'full')"
    for clauses in (f"{first} {second}", f"{second} {first}"):
        found = read(f"CREATE OR REPLACE MATERIALIZED VIEW a.b.`v w` {clauses} AS SELECT 1; ")
        assert found.name == "a.b.`v w`" and found.replace
        assert found.options == {"refresh": "full", "comment": "it's one; AS it stands"}
        assert found.query == "SELECT 1"


def test_agrees_columns_name_those_of_the_query() -> None:
    found = read("CREATE MATERIALIZED VIEW v (a, `b c`) AS SELECT 1, 2 -- two\n;")
    assert found.query == "SELECT * FROM (SELECT 1, 2) AS named(a, `b c`)"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES ('refersh' = 'full') AS SELECT 1", "refersh"),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES (delta.x = 'full') AS SELECT 1", "delta.x"),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES (refresh =) AS SELECT 1", "a value"),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES () AS SELECT 1", "a property"),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES (refresh = 'full' AS SELECT 1", "')'"),
        ("CREATE MATERIALIZED VIEW v () AS SELECT 1", "column's name"),
        ("CREATE MATERIALIZED VIEW v (a AS SELECT 1", "')'"),
        ("CREATE MATERIALIZED VIEW v AS ", "a query after AS"),
        ("CREATE MATERIALIZED VIEW v", "AS and a query"),
        ("CREATE MATERIALIZED VIEW AS SELECT 1", "AS and a query"),
        ("CREATE MATERIALIZED VIEW v PARTITIONED BY (a) AS SELECT 1", "COMMENT or TBLPROPERTIES"),
        ("DROP MATERIALIZED VIEW v w", "ends before"),
        ("REFRESH MATERIALIZED VIEW 'v'", "view's name"),
        ("SHOW MATERIALIZED VIEWS LIKE 'a'", "ends before"),
    ],
)
def test_golden_what_is_wrong(text: str, where: str) -> None:
    with pytest.raises(NotationError) as error:
        read_statement(text)
    assert where in str(error.value)
    verb = text.split()[0]
    assert error.value.hint is not None and error.value.hint.startswith(verb)
