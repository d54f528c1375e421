"""The command line: what it prints, where, and its exit codes."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import cli, doctor, session
from viewkeeper.cli_progress import Progress
from viewkeeper.records import SessionError

FEED = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[Any]:
    from viewkeeper.keeper import Keeper

    spark.sql("CREATE SCHEMA IF NOT EXISTS cli")
    spark.sql(f"CREATE TABLE cli.t (a INT, b STRING) {FEED}")
    spark.sql("CREATE TABLE cli.u (a INT) USING delta")
    spark.sql("INSERT INTO cli.t VALUES (1, 'x'), (1, 'x'), (2, NULL)")
    yield Keeper(spark, schema="cli_home")


@pytest.fixture
def run(keeper: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def call(*args: str, as_json: bool = True) -> tuple[int, Any, str]:
        common = ["--lake", str(tmp_path), *(["--json"] if as_json else [])]
        code = cli.main([*common, *args], keeper=keeper)
        said = capsys.readouterr()
        return code, json.loads(said.out) if as_json else said.out, said.err

    return call


def test_a_view_from_create_to_drop(run: Run, keeper: Any, tmp_path: Path) -> None:
    file = tmp_path / "v.sql"
    file.write_text("SELECT b, count(*) AS n FROM cli.t GROUP BY b")
    code, made, err = run("create", "cli.v", "--file", str(file))
    assert (code, made["inserted"], made["strategy"], err) == (0, 2, "full", "")
    code, made, _ = run("create", "cli.w", "--sql", "SELECT n FROM cli.v", "--refresh", "auto")
    assert (code, made["inserted"]) == (0, 2)

    _, found, _ = run("status")
    v, w = found
    assert v["view"] == "cli.v" and v["next"] == "none" and v["last"]["strategy"] == "full"
    assert [s["ahead"] for s in v["sources"]] == [0] and w["sources"][0]["name"] == "cli.v"
    code, answer, _ = run("sql", "INSERT INTO cli.t VALUES (3, 'x')")
    assert code == 0 and answer["rows"] == []
    _, found, _ = run("status")
    assert found[0]["sources"][0] == {"name": "cli.t", "then": 1, "now": 2, "ahead": 1}
    assert found[0]["next"] == "incremental" and "1 changed of" in found[0]["reason"]
    assert "cli.t +1" in run("status", as_json=False)[1]

    code, reports, err = run("refresh", "cli.w", "cli.v")
    assert code == 0 and err == ""
    changes = {r["view"]: (r["strategy"], r["inserted"], r["deleted"]) for r in reports}
    assert changes == {"cli.v": ("incremental", 1, 1), "cli.w": ("incremental", 1, 1)}
    code, reports, _ = run("refresh", "--full")
    assert [r["strategy"] for r in reports] == ["full", "full"]
    assert "cli.v: none" in run("refresh", as_json=False)[1]

    _, answer, _ = run("sql", "SELECT * FROM cli.v ORDER BY n DESC", "--limit", "1")
    assert answer == {"columns": ["b", "n"], "rows": [["x", 3]], "more": True}
    _, past, _ = run("history", "cli.v", "--limit", "2")
    assert [entry["strategy"] for entry in past] == ["full", "incremental"]
    assert past[0]["at"].endswith("Z")
    _, explained, _ = run("explain", "cli.v")
    assert explained["incremental"] and explained["strategy"] == "none"
    _, text, _ = run("explain", "--sql", "SELECT rand() AS r FROM cli.t", as_json=False)
    assert "blocked" in text and "rand()" in text
    _, text, _ = run("sql", "EXPLAIN MATERIALIZED VIEW cli.v", as_json=False)
    assert text.startswith("view      cli.v\n")

    code, answer, _ = run("drop", "cli.v")
    assert (code, answer["error"]["code"]) == (1, "VIEW_IN_USE")
    assert run("drop", "cli.w")[0] == run("drop", "cli.v")[0] == 0
    assert run("drop", "cli.v", "--if-exists")[0] == 0
    assert run("status")[1] == []


def test_errors(run: Run) -> None:
    code, answer, _ = run("refresh", "nobody")
    assert (code, answer["error"]["code"]) == (1, "UNKNOWN_VIEW")
    assert answer["error"]["message"] == "no view 'nobody' is kept here"
    assert answer["error"]["hint"].startswith("Known:")
    code, out, err = run("create", "cli.x", "--sql", "SELECT a FROM cli.gone", as_json=False)
    assert (code, out) == (1, "") and err.startswith("[UNKNOWN_TABLE]")
    code, answer, _ = run("sql", "SELECT a FROM cli.gone")  # Spark's own error
    assert (code, answer["error"]["code"]) == (1, "TABLE_OR_VIEW_NOT_FOUND")
    code, answer, _ = run("create", "cli.x", "--file", "no such file")
    assert (code, answer["error"]["code"]) == (1, "INVALID_OPTION")


def test_ctrl_c_and_bugs(run: Run, keeper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("first\nsecond")

    monkeypatch.setattr(keeper, "refresh", stopped)
    code, out, err = run("refresh", as_json=False)
    assert (code, out) == (130, "") and err.startswith("Stopped.")
    monkeypatch.setattr(keeper, "refresh", broken)
    code, out, err = run("refresh", as_json=False)
    assert code == 1 and "[INTERNAL_ERROR] ValueError: first\nRun with --verbose" in err


@pytest.mark.parametrize(
    "args",
    [
        ["--lake", "x"],
        ["--lake", "x", "create", "v"],
        ["--lake", "x", "create", "v", "--sql", "a", "--file", "b"],
        ["--lake", "x", "refresh", "--full", "--incremental"],
        ["--lake", "x", "history", "--limit", "0"],
        ["--lake", "x", "explain"],
        ["--lake", "x", "dance"],
        ["status"],
    ],
)
def test_wrong_usage(args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIEWKEEPER_LAKE", raising=False)
    with pytest.raises(SystemExit) as found:
        cli.main(args)
    assert found.value.code == 2


def test_no_lake_is_made_by_looking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--lake", str(tmp_path / "no"), "status"]) == 1
    assert "[NO_SESSION] there is no folder" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_a_file_is_read_before_a_lake_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "new"
    (tmp_path / "odd").write_bytes(b"SELECT '\xff'")
    for file in ("no such file", str(tmp_path), str(tmp_path / "odd"), "nul\0"):
        assert cli.main(["--lake", str(lake), "create", "v", "--file", file]) == 1
        assert capsys.readouterr().err.startswith("[INVALID_OPTION]") and not lake.exists()


def test_a_text_may_have_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("SELECT 1 AS a", encoding="utf-8-sig")
    assert cli._text_of(str(tmp_path / "q")) == "SELECT 1 AS a"


@pytest.mark.parametrize("given", [b"\xff", None])
def test_stdin_that_cannot_be_read(given: bytes | None, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "viewkeeper.cli", "--lake", str(tmp_path / "lake"), "create"]
    line = " ".join([*map(shlex.quote, command), "v", "--file", "-"])
    closed = f"{line} <&-" if given is None else line
    done = subprocess.run(["bash", "-c", closed], input=given or b"", capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith(b"[INVALID_OPTION] stdin cannot be read"), done.stderr
    assert b"Traceback" not in done.stderr and not (tmp_path / "lake").exists()


def test_nobody_reads_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """``viewkeeper … | head`` ends in peace; a full disk is told."""
    monkeypatch.setattr(cli, "_run", lambda *_: cli.Answer(["x"], "x"))
    for flags in ([], ["--json"]):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as out:
            monkeypatch.setattr(sys, "stdout", out)
            assert cli.main(["--lake", ".", *flags, "status"]) == 0
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as out:
            monkeypatch.setattr(sys, "stdout", out)
            assert cli.main(["--lake", ".", "status"]) == 1


def test_letters_that_the_terminal_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding in ("ascii", "utf-8"):
        for value in ("größer", "\ud800"):
            monkeypatch.setattr(cli, "_run", lambda *_, v=value: cli.Answer({v: v}, v))
            for flags in ([], ["--json"]):
                out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
                monkeypatch.setattr(sys, "stdout", out)
                assert cli.main(["--lake", ".", *flags, "status"]) == 0
                said = out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
                assert not flags or json.loads(said) == {value: value}


def test_java_is_sought_where_spark_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(session.JavaMissingError, match="JAVA_HOME is /nowhere"):
        session.need_java()
    assert doctor.machine()[0].state == "bad"


@pytest.mark.parametrize("path", ["", " ", None, 5, "nul\0", "{file}", "{file}/below"])
def test_paths_that_are_no_folder(path: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    wrong = path.format(file=tmp_path / "file") if isinstance(path, str) else path
    with pytest.raises(SessionError) as found:
        session._folder(wrong)
    assert found.value.hint


@pytest.mark.slow  # tries all that a lake needs
def test_doctor(run: Run, keeper: Any) -> None:
    spark = keeper.spark
    run("create", "cli.d", "--sql", "SELECT t.b, u.a FROM cli.t JOIN cli.u ON t.a = u.a")
    run("create", "cli.e", "--sql", "SELECT b, sum(cast(a AS DOUBLE)) AS s FROM cli.t GROUP BY b")
    spark.sql("INSERT INTO cli.u VALUES (1)")
    spark.sql("CREATE TABLE cli_home.store_lost (a INT) USING delta")
    code, found, _ = run("doctor", "--verify", "--older-than", "0")
    assert code == 0
    by = {}
    for check in found:
        by.setdefault(check["what"], []).append(check)
    assert by["Java"][0]["state"] == by["pyspark"][0]["state"] == by["lake"][0]["state"] == "good"
    feed, equal = by["view cli.d"]
    assert feed["state"] == "odd" and "SET TBLPROPERTIES (delta.enableCh" in feed["hint"]
    assert equal["found"] == "equals its query at the versions of its last refresh"
    assert "store_lost" in by["store"][0]["found"] and by["store"][0]["state"] == "odd"

    store = next(v.record.store for v in keeper.views() if v == "cli.e")
    spark.sql(f"DELETE FROM {store} WHERE b = 'x'")
    code, text, _ = run("doctor", "--verify", "--fix", "--older-than", "0", as_json=False)
    assert code == 1 and "bad   view cli.e: differs from its query: 1 rows are missing" in text
    assert "store_lost`, which no view had, was dropped" in text
    assert not spark.catalog.tableExists("cli_home.store_lost")
    run("refresh", "cli.e", "--full")
    spark.sql("DROP TABLE cli.u")
    code, text, _ = run("doctor", as_json=False)
    assert code == 1 and "is gone" in text and "view cli.e: its sources are there" in text
    for name in ("cli.d", "cli.e"):
        assert run("drop", name)[0] == 0


def test_doctor_of_a_bare_machine(tmp_path: Path) -> None:
    (bad,) = doctor.folder(str(tmp_path / "no"))
    assert bad.state == "bad" and not doctor.healthy([bad])
    assert doctor.java_check("no idea").state == "odd"
    assert doctor.java_check('openjdk version "21" 2023-09-19').state == "good"


def test_progress_is_for_terminals(capfd: pytest.CaptureFixture[str]) -> None:
    import time

    with Progress(enabled=True).doing("refreshing", total=2) as line:
        line.step("v")
        time.sleep(0.25)
    shown = capfd.readouterr()
    assert shown.out == "" and "0/2 v 0 s" in shown.err and shown.err.endswith("\r\x1b[K")
    with Progress().doing("refreshing"):
        time.sleep(0.15)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow  # four processes, each with a JVM of its own
@pytest.mark.spark
def test_two_processes_share_a_lake_and_are_quiet(tmp_path: Path) -> None:
    def process(*args: str) -> tuple[int, str, str]:
        lake = ["--lake", str(tmp_path / "lake")]
        command = [sys.executable, "-m", "viewkeeper.cli", *lake, *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        return done.returncode, done.stdout, done.stderr

    code, out, err = process("create", "v", "--sql", "SELECT 1 AS a", "--json")
    assert (code, err) == (0, "") and json.loads(out)["inserted"] == 1
    code, out, err = process("status")
    assert (code, err) == (0, "") and out.splitlines()[1].startswith("v ")


def test_a_closure_by_its_own_verb(run: Run, keeper: Any) -> None:
    keeper.spark.sql(f"CREATE TABLE cli.links (src INT, dst INT) {FEED}")
    keeper.spark.sql("INSERT INTO cli.links VALUES (1, 2), (2, 3)")
    ends = ("--edges", "cli.links", "--start", "src", "--end", "dst")
    code, made, _ = run("closure", "cli.reach", *ends, "--graph", "acyclic")
    assert code == 0 and made["view"] == "cli.reach"
    keeper.spark.sql("INSERT INTO cli.links VALUES (3, 4)")
    code, (report,), _ = run("refresh", "cli.reach")
    assert (code, report["inserted"], report["lane"]) == (0, 3, "append")
    view = next(v for v in keeper.views() if v == "cli.reach")
    from viewkeeper.cli_verify import compare_view

    assert compare_view(keeper, view.record) == (0, 0)
    keeper.spark.sql("INSERT INTO cli.links VALUES (4, 1)")
    code, answer, _ = run("refresh", "cli.reach")
    assert code == 1 and answer["error"]["code"] == "CYCLE"
    run("drop", "cli.reach")


def test_a_program_by_its_own_verb(run: Run, keeper: Any, tmp_path: Path) -> None:
    shipped = ("--source", "SELECT a FROM cli.u", "--system", "even")
    code, made, _ = run("program", "cli.even", *shipped)
    assert code == 0 and made["view"] == "cli.even"
    bad = tmp_path / "bad.sql"
    bad.write_text("-- SYSTEM x")
    code, answer, _ = run("program", "cli.bad", "--source", "cli.u", "--file", str(bad))
    assert code == 1 and answer["error"]["code"] == "MALFORMED_PROGRAM"
    run("drop", "cli.even")
