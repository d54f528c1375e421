"""The form of programs: what is read, what is refused, how blocks and parameters run."""

from __future__ import annotations

from pathlib import Path

import pytest

from recursive_duckdb import DuckRunner, connect
from viewkeeper.recursive import (
    GRAPHS,
    CheckFailedError,
    Closure,
    ProgramError,
    RoundsError,
    bind,
    count_joins,
    load,
    prepare,
    read_system,
    run,
)
from viewkeeper.recursive.errors import CycleError
from viewkeeper.recursive.library import SINGLE
from viewkeeper.recursive.model import Repeat, Step

HEAD = """
-- SYSTEM sums: for tests
-- INPUT R (x INT)
-- TABLE S (x INT)
-- SETTING most = 3: for tests
-- OUTPUT s
SELECT x FROM S;
-- ON INSERT (x INT): one row
"""
BODY = """-- STEP A: a step
SELECT :x AS x;
-- INSERT INTO S
SELECT x FROM A;
"""

ENDLESS = """-- STEP N
SELECT x FROM R;
-- REPEAT UNTIL EMPTY(N)
-- STEP N
SELECT x FROM N;
-- END
"""

REFUSED = {
    "no name": ("-- TABLE S (x INT)", "no name"),
    "no end": (HEAD + "-- STEP A\nSELECT 1 AS x;\n-- IF NOT EMPTY(A)\n" + BODY, "IF has no END"),
    "end of nothing": (HEAD + BODY + "-- END", "END closes nothing"),
    "no query": (HEAD + "-- STEP A\n-- STEP B\nSELECT 1 AS x;", "STEP A has no query"),
    "two queries": (HEAD + "-- STEP A\nSELECT 1 AS x;\nSELECT 2 AS x;", "no line introduces"),
    "not a select": (HEAD + "-- STEP A\nDELETE FROM S;", "is not a SELECT"),
    "not SQL": (HEAD + "-- STEP A\nSELECT FROM WHERE;", "cannot be read"),
    "malformed line": (HEAD + "-- REPEAT WHILE A\n", "is not of the form that REPEAT has"),
    "outside": ("-- SYSTEM s\n-- STEP A\nSELECT 1 AS x;", "outside of a program"),
    "unknown relation": (HEAD + "-- STEP A\nSELECT x FROM B;", "reads B, which is not defined"),
    "used too early": (HEAD + "-- STEP B\nSELECT x FROM A;\n" + BODY, "reads A, which is not"),
    "unknown parameter": (HEAD + "-- STEP A\nSELECT :y AS x;", "the parameter :y"),
    "not stored": (HEAD + BODY + "-- DELETE FROM R\nSELECT x FROM A;", "R is not a stored table"),
    "other columns": (HEAD + "-- INSERT INTO S\nSELECT 1 AS y;", "selects y"),
    "name of a table": (HEAD + "-- STEP S\nSELECT 1 AS x;", "has the name of a table"),
    "change in a loop": (
        HEAD + "-- STEP A\nSELECT 1 AS x;\n-- REPEAT UNTIL EMPTY(A)\n"
        "-- STEP A\nSELECT x FROM A;\n-- DELETE FROM S\nSELECT x FROM A;\n-- END",
        "is inside a loop",
    ),
    "endless loop": (
        HEAD + "-- STEP A\nSELECT 1 AS x;\n-- REPEAT UNTIL EMPTY(A)\n-- STEP B\nSELECT x FROM A;\n"
        "-- END",
        "does not change A",
    ),
    "twice the same": (HEAD + BODY + "-- INSERT INTO S\nSELECT x FROM A;", "stands twice"),
    "two programs": (HEAD + BODY + "-- ON INSERT (x INT)\n" + BODY, "two programs ON INSERT"),
    "declared twice": ("-- TABLE S (x INT)" + HEAD + BODY, "S is declared twice"),
    "unknown type": ("-- SYSTEM s\n-- TABLE S (x FOO)\n", "FOO is no type"),
    "no type": ("-- SYSTEM s\n-- TABLE S (x)\n", "is not a column"),
    "nothing stored": ("-- SYSTEM s\n-- ON BUILD\n-- STEP A\nSELECT 1 AS x;", "stores nothing"),
    "include": (HEAD + "-- INCLUDE other.sql\n", "nothing can be included"),
    # engines do not tell upper case from lower case, and we use some names ourselves
    "name of a table, in case": (HEAD + "-- STEP r\nSELECT 1 AS x;", "has the name of a table"),
    "rows that leave": (HEAD + BODY + "-- STEP S_COME\nSELECT 1 AS x;", "rows that leave or enter"),
    "one name in two cases": (
        HEAD + "-- STEP A\nSELECT 1 AS x;\n-- STEP a\nSELECT 1 AS x;",
        "is also called A",
    ),
    "declared twice, in case": ("-- TABLE s (x INT)" + HEAD + BODY, "s is declared twice"),
    "a column twice": (
        "-- SYSTEM s\n-- TABLE S (x INT, X INT)\n-- OUTPUT s\nSELECT x FROM S;\n"
        "-- ON BUILD\n" + BODY.replace(":x", "1"),
        "x is declared twice in S",
    ),
    "a name of ours": (HEAD.replace("R (", "ROWS__ (") + BODY, "two underscores"),
    "other parameters": (
        HEAD.replace("ON INSERT (x INT", "ON INSERT (x NODE") + BODY,
        "has other parameters",
    ),
    "parameters of a batch": (HEAD.replace("ON INSERT", "ON BATCH") + BODY, "other parameters"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_programs_are_refused(case: str) -> None:
    text, message = REFUSED[case]
    with pytest.raises(ProgramError, match=message.replace("(", r"\(")) as caught:
        read_system(text)
    assert caught.value.code == "MALFORMED_PROGRAM" and caught.value.hint


def test_semicolons_in_texts_names_and_comments() -> None:
    sql = "SELECT x -- it's; so\nFROM S WHERE 'a;b' <> ';' AND `x` > 0"
    text = HEAD.replace("SELECT x FROM S;", sql + "; -- the end") + BODY
    assert read_system(text).outputs[0].sql == sql


def start(body: str) -> tuple[DuckRunner, object]:
    """A runner with R = {1, 2, 3} and S = {}, and a program."""
    db = connect()
    db.execute("CREATE TABLE R AS SELECT x::INT AS x FROM range(1, 4) AS t(x)")
    db.execute("CREATE TABLE S (x INT)")
    system = prepare(read_system(HEAD + body), "duckdb")
    return DuckRunner(db), bind(system, system.programs["INSERT"], {"x": 7}, dialect="duckdb")


def test_loops_and_conditions() -> None:
    """Down from 7 to 1; a block that does not run defines empty relations, or leaves them."""
    runner, program = start("""
-- STEP N
SELECT :x AS x;
-- STEP SEEN
SELECT x FROM N;
-- REPEAT UNTIL EMPTY(N)
-- STEP N
SELECT x - 1 AS x FROM N WHERE x > 1;
-- STEP SEEN
SELECT x FROM SEEN UNION ALL SELECT x FROM N;
-- END
-- IF NOT EMPTY(N)
-- STEP OTHER
SELECT x FROM R;
-- STEP SEEN
SELECT x FROM R;
-- END
-- IF NOT EMPTY(R)
-- INSERT INTO S
SELECT x FROM SEEN UNION ALL SELECT x FROM OTHER;
-- END
-- IF NOT EMPTY(OTHER)
-- DELETE FROM S
SELECT x FROM OTHER;
-- END
""")
    outcome = run(program, runner)  # type: ignore[arg-type]
    assert outcome.rounds == 7
    (change,) = outcome.changes
    assert change.deleted is None
    assert sorted(runner.rows(str(change.inserted))) == [(n,) for n in range(1, 8)]


def test_checks_and_giving_up() -> None:
    runner, program = start("-- FAIL LARGE UNLESS EMPTY(R) SHOW R: R has rows\n" + BODY)
    with pytest.raises(CheckFailedError) as caught:
        run(program, runner)  # type: ignore[arg-type]
    assert caught.value.check == "LARGE" and len(caught.value.rows) == 3
    assert "LARGE: R has rows: (1,), (2,), (3,)" in str(caught.value)
    runner, program = start("-- RECOMPUTE UNLESS EMPTY(R): R has rows\n" + BODY)
    outcome = run(program, runner)  # type: ignore[arg-type]
    assert outcome.recompute == "R has rows" and not outcome.changes
    runner, program = start(ENDLESS.replace("(N)", "(N) AT MOST 5: too long") + BODY)
    outcome = run(program, runner)  # type: ignore[arg-type]
    assert outcome.recompute == "too long"


def test_a_loop_without_a_bound_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viewkeeper.recursive.running.MOST_ROUNDS", 20)
    runner, program = start(ENDLESS + BODY)
    with pytest.raises(RoundsError, match="ran 20 times"):
        run(program, runner)  # type: ignore[arg-type]


def test_parameters_and_settings() -> None:
    system = prepare(read_system(HEAD + "-- STEP A\nSELECT :x AS x, :most AS most;\n" + BODY))
    program = system.programs["INSERT"]
    with pytest.raises(ProgramError, match="needs a value for :x"):
        bind(system, program)
    with pytest.raises(ProgramError, match="has no :z"):
        bind(system, program, {"x": 1, "z": 1})
    step = next(bind(system, program, {"x": None, "most": 5}).items())
    assert isinstance(step, Step) and step.sql == "SELECT NULL AS `x`, 5 AS `most`"


@pytest.mark.parametrize("name", [*GRAPHS, *SINGLE])
def test_shipped_programs_render_for_spark(name: str) -> None:
    """Nothing of another dialect, no name without its prefix, all widths."""
    for width in (1, 3):
        system = prepare(load(name), "spark", width, prefix="__vk_")
        for program in system.programs.values():
            for item in program.items():
                sql = getattr(item, "sql", "")
                assert '"' not in sql and "$" not in sql and "::" not in sql
                if sql and " FROM " in sql:
                    assert "`__vk_" in sql


def test_views_are_not_in_loops_and_steps_are_few() -> None:
    """What a refresh costs on an engine where each step has its price."""
    for name in ("acyclic", "directed"):
        system = load(name)
        insert = count_joins(system, "BATCH", skip=["DELETED"])
        delete = count_joins(system, "BATCH", skip=["INSERTED"])
        assert insert.steps <= 18 and delete.steps <= 25, (insert, delete)
        assert insert.scans <= 5 and delete.scans <= 11, (insert, delete)
    loops = [i for i in load("undirected").programs["BUILD"].items() if isinstance(i, Repeat)]
    assert len(loops) == 2


COUNTED = {
    "acyclic batch, inserted edges all implied": ("acyclic", "BATCH", ["DELETED", "ADDED"]),
    "acyclic batch, insert": ("acyclic", "BATCH", ["DELETED"]),
    "acyclic batch, deleted edges all redundant": ("acyclic", "BATCH", ["INSERTED", "CUT"]),
    "acyclic batch, delete": ("acyclic", "BATCH", ["INSERTED"]),
    "directed batch, insert": ("directed", "BATCH", ["DELETED"]),
    "directed batch, deleted edges all redundant": ("directed", "BATCH", ["INSERTED", "CUT"]),
    "directed batch, delete": ("directed", "BATCH", ["INSERTED"]),
    "acyclic or directed, build": ("directed", "BUILD", ["FAR"]),
    "the same, with longer paths": ("directed", "BUILD", []),
    "undirected batch, insert within components": (
        "undirected",
        "BATCH",
        ["DELETED", "LINKED", "MOVES"],
    ),
    "undirected batch, insert that merges": ("undirected", "BATCH", ["DELETED"]),
    "undirected batch, delete that does not split": (
        "undirected",
        "BATCH",
        ["INSERTED", "FINISHED", "PART", "MOVES"],
    ),
    "undirected batch, delete that splits": ("undirected", "BATCH", ["INSERTED"]),
}


@pytest.mark.parametrize("label", COUNTED)
def test_joins_are_as_the_page_says(label: str) -> None:
    page = (Path(__file__).parent.parent / "docs" / "closure.md").read_text(encoding="utf-8")
    name, event, skip = COUNTED[label]
    found = count_joins(load(name), event, skip=skip)  # type: ignore[arg-type]
    assert f"| {label} | {found.joins} | {found.scans} | {found.steps} |" in page, found


def test_what_a_closure_needs() -> None:
    with pytest.raises(ProgramError, match="no kind of graph"):
        Closure(["a"], ["b"], "round")  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="start has 1 columns and end has 2"):
        Closure(["a"], ["b", "c"], "directed")
    with pytest.raises(ProgramError, match="named twice"):
        Closure(["a"], ["A"], "directed")
    with pytest.raises(ProgramError, match="there is no system"):
        load("triangular")
    two = Closure(["a", "b"], ["c", "d"], "undirected", prefix="p_")
    assert two.edges("t", "w") == (
        "SELECT `a` AS `Start_1`, `b` AS `Start_2`, `c` AS `End_1`, `d` AS `End_2`, `w` AS `w` "
        "FROM t"
    )
    assert "AS `component_b`" in two.output("components")


def test_long_cycles_are_shortened() -> None:
    error = CycleError(range(100))
    assert "… 81 more …" in str(error) and len(error.cycle) == 100


def test_nodes_of_several_columns_refuse_what_has_no_meaning() -> None:
    head = "-- SYSTEM s\n-- TABLE T (N NODE)\n-- OUTPUT t\nSELECT t.N FROM T AS t;\n-- ON BUILD\n"
    for query, message in {
        "SELECT UPPER(t.N) AS N FROM T AS t": "has no meaning",
        "SELECT t.N AS M FROM T AS t": "M holds a node and is not declared so",
        "SELECT 1 AS one FROM T AS t WHERE t.N LIKE t.N": "has no meaning",
    }.items():
        system = read_system(
            f"{head}-- STEP A\n{query};\n-- INSERT INTO T\nSELECT t.N FROM T AS t;"
        )
        prepare(system, width=1)
        with pytest.raises(ProgramError, match=message):
            prepare(system, width=2)
