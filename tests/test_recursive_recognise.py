"""Which recursive queries are plain closures, and why the others are not."""

from __future__ import annotations

import pytest

from recursive_duckdb import Kept
from viewkeeper.recursive import NotAClosure, PlainClosure, recognise

BASE = "SELECT src, dst FROM edges"
LEFT = "SELECT tc.a, e.dst FROM tc JOIN edges e ON tc.b = e.src"
RIGHT = "SELECT e.src, tc.b FROM edges AS e JOIN tc ON e.dst = tc.a"
QUADRATIC = "SELECT x.a, y.b FROM tc x JOIN tc y ON x.b = y.a"


def query(
    base: str = BASE, step: str = LEFT, final: str = "SELECT a, b FROM tc", **how: str
) -> str:
    union, head = how.get("union", "UNION"), how.get("head", "tc(a, b)")
    return f"WITH RECURSIVE {head} AS ({base} {union} {step}) {final}"


FOUND = {
    "left": query(),
    "right": query(step=RIGHT),
    "quadratic": query(step=QUADRATIC),
    "comma and where": query(step="SELECT tc.a, e.dst FROM tc, edges e WHERE e.src = tc.b"),
    "edge first, path then edge": query(
        step="SELECT tc.a, e.dst FROM edges e JOIN tc ON tc.b = e.src"
    ),
    "names from the first part": query(
        "SELECT e.src AS a, e.dst AS b FROM edges e", final="SELECT * FROM tc", head="tc"
    ),
    "parentheses": query(f"({BASE})", f"({LEFT})"),
    "union distinct": query(union="UNION DISTINCT"),
    "union all, then distinct": query(union="UNION ALL", final="SELECT DISTINCT a, b FROM tc"),
    "distinct parts": query("SELECT DISTINCT src, dst FROM edges"),
    "order": query(final="SELECT a, b FROM tc ORDER BY b DESC"),
    "aliases": query(final="SELECT t.a AS x, t.b AS y FROM tc AS t"),
    "case": query(step="SELECT TC.A, E.DST FROM TC JOIN EDGES E ON TC.B = E.SRC"),
}


@pytest.mark.parametrize("case", FOUND)
def test_plain_closures_are_found(case: str) -> None:
    found = recognise(FOUND[case])
    assert isinstance(found, PlainClosure), found
    assert (found.edges, found.start, found.end) == ("edges", ("src",), ("dst",))
    assert not found.drops_nulls
    assert len(found.columns) == 2
    forms = {"right": "right", "quadratic": "quadratic"}
    assert found.form == forms.get(case, "left")


def test_what_is_found_is_the_closure() -> None:
    """The queries themselves, on DuckDB, against the kept closure."""
    kept = Kept("directed")
    kept.change([], [(1, 2), (2, 3), (2, 3), (4, 5)])
    kept.db.execute("ALTER TABLE edges RENAME s0 TO src")
    kept.db.execute("ALTER TABLE edges RENAME e0 TO dst")
    for case, sql in FOUND.items():
        assert set(kept.db.execute(sql).fetchall()) == {(1, 2), (2, 3), (1, 3), (4, 5)}, case


def test_several_columns_and_long_names() -> None:
    found = recognise("""
        WITH RECURSIVE tc(a1, a2, b1, b2) AS (
            SELECT s1, s2, e1, e2 FROM lake.graph.edges
            UNION
            SELECT tc.a1, tc.a2, e.e1, e.e2 FROM tc
            JOIN lake.graph.edges e ON tc.b1 = e.s1 AND tc.b2 = e.s2
        ) SELECT * FROM tc""")
    assert isinstance(found, PlainClosure)
    assert found.edges == "lake.graph.edges"
    assert (found.start, found.end) == (("s1", "s2"), ("e1", "e2"))


def test_nulls_are_dropped_only_if_all_parts_drop_them() -> None:
    where = " WHERE src IS NOT NULL AND dst IS NOT NULL"
    for step, drops in (
        (LEFT, False),
        (LEFT + " WHERE e.dst IS NOT NULL", True),
        (QUADRATIC, True),
        (RIGHT, False),
        (RIGHT + " AND e.src IS NOT NULL", True),
    ):
        found = recognise(query(BASE + where, step))
        assert isinstance(found, PlainClosure) and found.drops_nulls == drops, step


REFUSED = {
    "SELECT 1": "no recursive part",
    "WITH t AS (SELECT 1 AS a) SELECT a FROM t": "no recursive part",
    "SELECT": "no recursive part",
    query(union="UNION ALL"): "a row for each path",
    query(union="EXCEPT"): "not a UNION of two",
    query(BASE + " WHERE src > 3"): "the condition src > 3",
    query("SELECT src, dst + 1 FROM edges"): "is not a column",
    query("SELECT src, dst, w FROM edges", head="tc(a, b, c)"): "a start and an end",
    query(head="tc(a, b, c)"): "3 names for 2 columns",
    query(step=LEFT + " WHERE tc.a < 5"): "the condition tc.a < 5",
    query(step=LEFT.replace("JOIN", "LEFT JOIN")): "outer join",
    query(step=LEFT.replace("edges", "others")): "reads another table, others",
    query(
        step="SELECT tc.a, e.dst FROM tc JOIN edges e ON tc.a = e.src"
    ): "one path, then one more",
    query(
        step="SELECT e.src, tc.b FROM tc JOIN edges e ON tc.b = e.src"
    ): "one path, then one more",
    query(step="SELECT tc.a, e.dst FROM tc JOIN edges e USING (dst)"): "USING",
    query(
        step="SELECT e.src, f.dst FROM edges e JOIN edges f ON e.dst = f.src"
    ): "does not read tc",
    query(step="SELECT tc.a, tc.b FROM tc"): "does not join two tables",
    query(step="SELECT a, dst FROM tc JOIN edges e ON tc.b = e.src"): "does not say which table",
    query(final="SELECT a, b FROM tc WHERE a = 1"): "it has WHERE",
    query(final="SELECT b, a FROM tc"): "does not select a, b",
    query(final="SELECT count(*) FROM tc"): "is not a column",
    query(final="SELECT a, b FROM tc LIMIT 5"): "it has LIMIT",
    query(final="SELECT tc.a, tc.b FROM tc JOIN edges e ON tc.a = e.src"): "it has JOINS",
    query("SELECT a, b FROM tc"): "reads tc itself",
    query("SELECT src, dst FROM edges AS e(dst, src)"): "gives the columns of edges other names",
    query(BASE + " WHERE w IS NOT NULL"): "the condition NOT w IS NULL",
    query(step=LEFT + " WHERE e.w IS NOT NULL"): "the condition NOT e.w IS NULL",
    query(final="SELECT DISTINCT ON (a) a, b FROM tc"): "DISTINCT ON",
    query("SELECT src, dst FROM (SELECT * FROM edges) AS q"): "a query where a table should be",
    query("SELECT src, dst FROM f(1)"): "a query where a table should be",
    query(step="SELECT tc.a, e.dst FROM tc NATURAL JOIN edges e WHERE tc.b = e.src"): "by NATURAL",
    query(step=LEFT.replace("JOIN", "LEFT SEMI JOIN")): "outer join",
    query("SELECT src, dst FROM edges TABLESAMPLE (50 PERCENT)"): "it has SAMPLE",
    query(step=LEFT.replace(" e ON", " TABLESAMPLE (5 ROWS) e ON")): "it has SAMPLE",
    query(final="SELECT a, b FROM tc TABLESAMPLE (5 ROWS)"): "it has SAMPLE",
    query(final="SELECT * FROM tc PIVOT (count(*) FOR a IN (1, 2))"): "it has PIVOT",
    query(final="SELECT a, b FROM db.tc"): "reads more than tc",
    query(final="SELECT a, b FROM tc VERSION AS OF 1"): "reads more than tc",
    query(BASE + " VERSION AS OF 1"): "reads another table, edges",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_other_queries_are_refused_with_the_reason(sql: str) -> None:
    found = recognise(sql)
    assert isinstance(found, NotAClosure), found
    assert REFUSED[sql] in found.reason
