"""SQL text agrees with the reference: run by DuckDB, read by sqlglot, and some of it by eye."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
import pytest
import sqlglot

from checks import Duck, case, check_sql
from random_queries import Generator
from viewkeeper import algebra as al
from viewkeeper.algebra.changes.signed import minus, plus
from viewkeeper.algebra.nodes import (
    Empty,
    GroupBy,
    Literal,
    Project,
    Query,
    Table,
    Unnest,
    Window,
)
from viewkeeper.algebra.scalars import Col, Opaque
from viewkeeper.errors import NotationError

R, S = al.table("R", ["a", "b"]), al.table("S", ["a", "b"])
CASES = 200


@pytest.fixture(scope="module")
def duck() -> Duck:
    return Duck()


@pytest.mark.parametrize("start", range(50_000, 50_000 + CASES, 40))
def test_sql_agrees_with_the_reference(start: int, duck: Duck) -> None:
    for seed in range(start, start + 40):
        assert check_sql(seed, duck)


def test_spark_text_can_be_read() -> None:
    """As Spark's syntax, and to the same text again."""
    for seed in range(60):
        q, _, names, _, _ = case(seed)
        forms = (q, *al.change(q, names), *al.net(al.signed(q, names)))
        text = al.to_sql(forms[seed % len(forms)], dialect="spark")
        tree = sqlglot.parse_one(text, dialect="spark")
        assert tree.sql(dialect="spark") == text, f"seed {seed}"


# ── names ──


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def run(q: Query, state: Mapping[str, Sequence[tuple[Any, ...]]], kind: str = "BIGINT") -> None:
    """The query in DuckDB gives what the reference gives; its Spark text can be read."""
    with duckdb.connect() as db:
        for t in al.tables(q):
            columns = ", ".join(f"{quoted(n)} {kind}" for n in t.names)
            db.execute(f"CREATE TABLE {quoted(t.name)} ({columns})")
            marks = ", ".join("?" * t.arity)
            for row in state[t.name]:
                db.execute(f"INSERT INTO {quoted(t.name)} VALUES ({marks})", list(row))
        found = db.execute(al.to_sql(q, dialect="duckdb")).fetchall()
    assert Counter(row[: q.arity] for row in found) == al.evaluate(q, state)
    text = al.to_sql(q, dialect="spark")
    assert sqlglot.parse_one(text, dialect="spark").sql(dialect="spark") == text


STRANGE = ["order", "sel ect", "Größe", 'a"b', "x`y", "select", "s.a", "1st", "ε", "a b.c d"]


def test_strange_names() -> None:
    t = al.table("my table, of `all` things", STRANGE)
    rows = [tuple(range(10)), tuple(range(10)), (None, *range(9))]
    state = {t.name: rows}
    views = (
        t,
        t.select("`sel ect` = 1 AND `x``y` > 0"),
        (t - t.distinct()) + t,
        t.product(t).select("#0 = #10").distinct(),
        t.left(t, "#0 = #10"),
        t.group_by(["order", "sel ect"], {"from": "count(*)", 'max "of"': "max(Größe)"}),
        t.project({"group by": "`select` + `1st`", "ε": "`ε`"}),
        t.semi(t.rename({"order": "from"}), "`order` = `from`"),
        t.rename({"ε": "ORDER", "1st": "Select"}),
    )
    for q in views:
        run(q, state)


def test_reserved_words_as_names() -> None:
    words = ("select", "from", "where", "table", "group", "order", "by", "and", "null", "user")
    for word in words:
        t = al.table(word, [word, "end"])
        run(t.distinct() - t.select(f"`{word}` = 1"), {word: [(1, 2), (1, 2), (3, None)]})


def test_equal_names_get_numbers() -> None:
    state = {"R": [(1, 2), (1, 2), (None, 3)]}
    twice = Project(R, (Col(0), Col(1), Col(0), Col(1)), ("a", "A", "a_2", "a"))
    for q in (
        R.product(R).product(R),
        R.product(R) - R.product(R).distinct(),
        twice,
        twice.distinct() + twice,
        twice.group_by(["#2", "#0"], {"a": "count(*)", "A": "max(#1)"}),
        R.full(twice, "#0 = #2"),
        R.product(R).semi(R.product(R), "#0 = #4 AND #3 <=> #7"),
    ):
        run(q, state)
    shown = sqlglot.parse_one(al.to_sql(twice, dialect="spark"), dialect="spark")
    names = shown.named_selects
    assert len({n.lower() for n in names}) == 4


def test_own_aliases_as_column_names() -> None:
    t = al.table("s", ["s", "l", "r", "n", "u", "_time", "_times", "_unit", "weight"])
    state = {"s": [tuple(range(9)), tuple(range(9))]}
    for q in (t.distinct(), t - t.distinct(), t.join(t, "#0 = #9"), t.semi(t, "#1 = #10")):
        run(q, state)


def test_tables_named_as_common_table_expressions() -> None:
    t = al.table("q1", ["a", "b"])
    once = t.select("a = 1")
    run(t + (once + once), {"q1": [(1, 2), (None, 3)]})


def test_queries_without_columns() -> None:
    state = {"R": [(1, 2), (1, 2)]}
    none = Project(R, (), ())
    some: tuple[Query, ...] = (none, none.distinct(), none + none, (none + none) - none)
    some += (R.product(none), none.semi(R, "TRUE"), none | none.distinct(), none + Empty(()))
    for q in some:
        run(q, state)


ONE: Query = GroupBy(R, (), (), ())
TWO: Query = Literal((), ((), ()))
NONE: Query = Literal((), ())


@pytest.mark.parametrize(
    "q",
    [
        *(ONE, TWO, NONE, TWO - ONE, ONE | TWO, ONE + NONE, ONE & TWO, TWO.distinct()),
        *(R.product(TWO), TWO.product(ONE).product(NONE + ONE), R.semi(ONE, "TRUE")),
        *(TWO.left(NONE, "TRUE"), R.left(NONE, "a = 1"), (ONE + R.project([])) - TWO),
        *(GroupBy(TWO, (), (), ()), TWO.group_by([], {"n": "count(*)"})),
        *al.net((minus(TWO) + plus(R.project([]))) + plus(ONE)),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [[(1, 2), (1, 2)], []], ids=["two rows", "no row"])
def test_rows_without_columns(q: Query, rows: list[tuple[int, int]]) -> None:
    """SQL has no rows without columns, and no GROUP BY nothing."""
    run(q, {"R": rows})


def test_engine_operators_over_no_columns() -> None:
    over = Opaque(("count(*) OVER ()",), ())
    q = Window(Project(R, (), ()), (), (over,), ("n",))
    assert al.to_sql(q) == "SELECT count(*) OVER () AS n FROM (SELECT 1 AS _unit FROM R AS s) AS s"
    each = Unnest(Project(R, (), ()), Opaque(("explode(array(1))",), ()), ("n",), False)
    assert al.to_sql(each) == (
        "SELECT u.n FROM (SELECT 1 AS _unit FROM R AS s) AS s LATERAL VIEW explode(array(1)) u AS n"
    )


def test_text_and_nulls() -> None:
    t = al.table("T", ["s", "u"])
    state = {"T": [("x", None), ("it's", "a\\b"), ("%_", "")]}
    for q in (
        t.select("s = 'it''s'"),
        t + al.literal(["s", "u"], [("a'b", None), (None, None), ("\\", '"')]),
        t - al.literal(["s", "u"], [("x", None)]),
        al.empty(["s", "u"]) + t,
        t.select("s LIKE 'i%'"),
        t.project({"v": "upper(s) || coalesce(u, '-')", "n": "length(s)"}),
        t.left(al.literal(["k", "v"], [("x", 1)]), "s = k"),
    ):
        run(q, state, "VARCHAR")


def test_operators_keep_their_order() -> None:
    items = {
        "c": "-(-a)",
        "d": "a - -1",
        "e": "-(a - b)",
        "f": "a - (b - a)",
        "g": "a * (b + 1) % 3",
        "h": "(a = 1) = (b = 2)",
        "i": "NOT a = 1",
        "j": "(a IS NULL) = FALSE",
        "k": "NOT (a = 1 OR b IS NULL) AND b > 1 OR a IN (1, NULL)",
        "l": "CASE WHEN a > b THEN 1 WHEN a = b THEN NULL ELSE -2 END",
        "m": "(a - b) - (a - b) * 2",
        "n": "a % 0",
        "o": "nullif(a, b) IS NULL",
        "p": "a BETWEEN 1 AND 2 AND NOT b BETWEEN 1 AND 2",
    }
    rows = [(x, y) for x in (None, -1, 1, 2, 3) for y in (None, -2, 1, 2)]
    run(R.project(items), {"R": rows})


# ── depth ──

DEEP: dict[str, Callable[[Query, int], Query]] = {
    "⊎": lambda q, i: q + R,
    "∸": lambda q, i: q - R.select(f"a > {i}"),
    "σ": lambda q, i: q.select(f"a <> {i + 7}"),
    "Π": lambda q, i: q.project({"a": "b", "b": "a + 1"}),
    "σε": lambda q, i: q.select(f"a <> {i + 7}").distinct(),
    "Γ": lambda q, i: q.group_by(["a"], {"b": "count(*)"}),
    "⟕": lambda q, i: q.left(S, "left.a = right.a").project({"a": "#0", "b": "#3"}),
    "⋉": lambda q, i: q.semi(S, ["a"]),
}


@pytest.mark.parametrize("operator", DEEP)
def test_deep_queries_have_text(operator: str) -> None:
    """A thousand operators inside one another are not so in the text."""
    q: Query = R
    for i in range(1000 if al.size(DEEP[operator](S, 0)) == 2 else 500):
        q = DEEP[operator](q, i)
    assert al.size(q) >= 500
    text = al.to_sql(q, dialect="spark")
    assert len(text) < 200 * 1000
    assert text.count("WITH ") == 1
    assert str(q) and al.size(al.simplify(q)) <= al.size(q)


def test_deep_queries_run() -> None:
    q: Query = R
    for i in range(20):
        q = (q.project({"a": "b", "b": "a"}) - S.select(f"a = {i}")).distinct() | R
    run(q, {"R": [(1, 2), (2, 2)], "S": [(1, 1), (2, 1)]})


# ── golden ──

GOLDEN: list[tuple[Query, str]] = [
    (
        R.select("a > 1 and b is not null").project({"total": "a * b", "a": "a"}),
        "SELECT s.a * s.b AS total, s.a FROM R AS s WHERE s.a > 1 AND NOT s.b IS NULL",
    ),
    (
        (R - S).distinct(),
        "SELECT DISTINCT s.a, s.b FROM ((SELECT s.a, s.b FROM R AS s)"
        " EXCEPT ALL (SELECT s.a, s.b FROM S AS s)) AS s",
    ),
    (R.semi(S, ["a"]), "SELECT l.a, l.b FROM R AS l LEFT SEMI JOIN S AS r ON l.a = r.a"),
    (
        R.full(S, "left.a <=> right.b"),
        "SELECT l.a, l.b, r.a AS a_2, r.b AS b_2 FROM R AS l FULL JOIN S AS r"
        " ON l.a IS NOT DISTINCT FROM r.b",
    ),
    (
        R.group_by(["a"], {"n": "count(*)", "d": "count(distinct b)"}),
        "SELECT s.a AS a, COUNT(*) AS n, COUNT(DISTINCT s.b) AS d FROM R AS s GROUP BY s.a",
    ),
    (
        al.simplify(al.change(R.join(S, ["a"]), ["S"]).added),
        "SELECT l.a, l.b, r.a AS a_2, r.b AS b_2 FROM R AS l JOIN `ΔS` AS r ON l.a = r.a",
    ),
    (
        R.distinct() & S.distinct(),
        "(SELECT s.a, s.b FROM R AS s) INTERSECT (SELECT s.a, s.b FROM S AS s)",
    ),
    (
        al.simplify(al.change(R.distinct(), ["R"]).removed),
        "(SELECT s.a, s.b FROM `∇R` AS s) EXCEPT ((SELECT s.a, s.b FROM R AS s)"
        " EXCEPT ALL (SELECT s.a, s.b FROM `∇R` AS s))",
    ),
    (
        al.net(al.signed(R.select("a > 1"), ["R"])).added,
        "SELECT n.a, n.b FROM (SELECT s.a AS a, s.b AS b, CAST(SUM(s.weight) AS BIGINT) AS _times"
        " FROM (SELECT s.a, s.b, s.weight FROM ((SELECT s.a, s.b, 1 AS weight FROM `ΔR` AS s)"
        " UNION ALL (SELECT s.a, s.b, -1 AS weight FROM `∇R` AS s)) AS s WHERE s.a > 1) AS s"
        " GROUP BY s.a, s.b HAVING SUM(s.weight) > 0) AS n"
        " LATERAL VIEW EXPLODE(SEQUENCE(1, n._times)) u AS _time",
    ),
]


@pytest.mark.parametrize(("q", "text"), GOLDEN, ids=[str(q) for q, _ in GOLDEN])
def test_golden_text(q: Query, text: str, duck: Duck) -> None:
    assert al.to_sql(q, dialect="spark") == text
    g = Generator(5)
    old = {n: g.bag(2) for n in "RS"}
    changes = g.changes(old, ["R", "S"])
    new = {n: (old[n] - changes[n][0]) + changes[n][1] for n in old}
    duck.load({"R", "S"}, old, changes, new)
    assert duck.run(q) == al.evaluate(q, old, changes)


def test_tables_may_have_other_names() -> None:
    added = Table("R", ("a", "b"), "Δ")
    q = R.anti(added, ["a"])
    names: dict[Query, str] = {R: "lake.db.r", added: "changes_1"}
    text = al.to_sql(q, tables=names)
    assert text == "SELECT l.a, l.b FROM lake.db.r AS l LEFT ANTI JOIN changes_1 AS r ON l.a = r.a"


def test_unknown_dialect_is_told() -> None:
    with pytest.raises(NotationError):
        al.to_sql(R, dialect="sparkle")
