"""The statements about materialized views, as text."""

from __future__ import annotations

import pytest

from viewkeeper.errors import NotationError
from viewkeeper.records import InvalidOptionError
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


# ── what a statement says of the view ──


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


@pytest.mark.parametrize("key", ["'refersh'", "delta.x", "viewkeeper.x", "'name'", "'replace'"])
def test_golden_properties_that_views_do_not_have(key: str) -> None:
    found = read(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({key} = 'full') AS SELECT 1")
    with pytest.raises(InvalidOptionError, match=key.strip("'")) as error:
        assert found.options
    assert error.value.hint
