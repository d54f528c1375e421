"""The statements about materialized views, as text."""

from __future__ import annotations

import pytest

from viewkeeper.errors import NotationError
from viewkeeper.statements import Statement, read_statement

READ = [
    ("CREATE MATERIALIZED VIEW v AS SELECT 1", Statement("create", "v", "SELECT 1")),
    ("create materialized view v as select 1;", Statement("create", "v", "select 1")),
    (
        "CREATE OR REPLACE MATERIALIZED VIEW c.s.v\nAS\n"
        "  WITH t AS (SELECT 1 AS a) SELECT * FROM t",
        Statement("create", "c.s.v", "WITH t AS (SELECT 1 AS a) SELECT * FROM t", replace=True),
    ),
    (
        "CREATE MATERIALIZED VIEW IF NOT EXISTS `my view` AS SELECT 'a AS b' AS c",
        Statement("create", "`my view`", "SELECT 'a AS b' AS c", if_not_exists=True),
    ),
    (
        "CREATE MATERIALIZED VIEW v COMMENT 'of mine' TBLPROPERTIES ('refresh' = 'full', x = 1)"
        " AS SELECT 1",
        Statement(
            "create",
            "v",
            "SELECT 1",
            properties={"comment": "of mine", "refresh": "full", "x": "1"},
        ),
    ),
    ("REFRESH MATERIALIZED VIEW v", Statement("refresh", "v")),
    ("REFRESH MATERIALIZED VIEW s.v FULL", Statement("refresh", "s.v", strategy="full")),
    ("refresh materialized view v incremental;", Statement("refresh", "v", strategy="incremental")),
    ("DROP MATERIALIZED VIEW v", Statement("drop", "v")),
    ("DROP MATERIALIZED VIEW IF EXISTS a.b", Statement("drop", "a.b", if_exists=True)),
    ("EXPLAIN MATERIALIZED VIEW v", Statement("explain", "v")),
    (
        "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1 AS a",
        Statement("explain", "v", "SELECT 1 AS a"),
    ),
    ("SHOW MATERIALIZED VIEWS", Statement("show")),
]


@pytest.mark.parametrize(("text", "expected"), READ, ids=[text for text, _ in READ])
def test_reads(text: str, expected: Statement) -> None:
    assert read_statement(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "SELECT 'CREATE MATERIALIZED VIEW v AS SELECT 1'",
        "SELECT materialized FROM t",
        "DROP TABLE materialized",
        "SHOW VIEWS",
        "EXPLAIN SELECT materialized FROM t",
        "",
    ],
)
def test_leaves_the_rest_to_spark(text: str) -> None:
    assert read_statement(text) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("CREATE MATERIALIZED VIEW v", "AS and a query"),
        ("CREATE MATERIALIZED VIEW v AS", "query after AS"),
        ("CREATE MATERIALIZED VIEW v AS ;", "query after AS"),
        ("CREATE MATERIALIZED VIEW v PARTITIONED BY (a) AS SELECT 1", "expected AS and a query"),
        ("CREATE MATERIALIZED VIEW v COMMENT AS SELECT 1", "expected a string"),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES refresh AS SELECT 1", "expected '('"),
        ("CREATE MATERIALIZED VIEW 'v' AS SELECT 1", "a view's name"),
        ("DROP MATERIALIZED VIEW", "a view's name"),
        ("DROP MATERIALIZED VIEW a b", "ends before the text does"),
        ("REFRESH MATERIALIZED VIEW v LATER", "ends before the text does"),
        ("SHOW MATERIALIZED VIEWS x", "ends before the text does"),
    ],
)
def test_says_what_is_wrong_and_where(text: str, what: str) -> None:
    with pytest.raises(NotationError, match=what.replace("(", r"\(")) as found:
        read_statement(text)
    assert found.value.span is not None and found.value.hint


def test_comments_and_lines_before_the_statement() -> None:
    text = "-- the totals\n/* of\nall */ CREATE MATERIALIZED VIEW v AS SELECT 1 -- done"
    found = read_statement(text)
    assert found is not None and (found.verb, found.name) == ("create", "v")
    assert found.query is not None and found.query.startswith("SELECT 1")
