"""Two processes on one lake at the same moment: each change is applied once, a name is given once.

Run as a script, this file is one of the two: it reads a line of JSON per command and answers with
one. A race is forced: both processes stop before the call named in the command until the other one
is there too, so both have seen the same state when they commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crash_worker import FEED, connect, orphans, right

LONG = pytest.mark.slow
TOTALS = "SELECT c, sum(x) AS s, count(*) AS n FROM t GROUP BY c"
PLAIN = "SELECT c, x FROM t WHERE x > 0"
MEETINGS = {
    "apply": "viewkeeper.lake.stores:apply",
    "rewrite": "viewkeeper.lake.stores:rewrite",
    "save": "viewkeeper.home:Home.save",
}


# ── one of the two processes ──


def meet(place: Path, number: int) -> None:
    """Returns when both processes are here, or after half a minute."""
    (place / str(number)).touch()
    end = time.monotonic() + 30
    while not (place / str(1 - number)).exists() and time.monotonic() < end:
        time.sleep(0.001)


def with_meeting(target: str, place: Path, number: int) -> Any:
    """Makes the next call of a function wait for the other process; gives what undoes it."""
    import importlib

    module, path = target.split(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    function = getattr(owner, name)

    def waiting(*args: Any, **options: Any) -> Any:
        setattr(owner, name, function)
        meet(place, number)
        return function(*args, **options)

    setattr(owner, name, waiting)
    return lambda: setattr(owner, name, function)


def work(keeper: Any, command: dict[str, Any], number: int) -> Any:
    place = Path(command["place"]) if "place" in command else None
    undo = None
    if place is not None:
        meet(place, number)
        if "at" in command:
            (place / "at").mkdir(exist_ok=True)
            undo = with_meeting(MEETINGS[command["at"]], place / "at", number)
    try:
        match command["do"]:
            case "sql":
                return [list(row) for row in keeper.sql(command["text"]).collect()]
            case "refresh":
                reports = keeper.refresh(command["view"], strategy=command.get("strategy"))
                return [r.as_dict() for r in reports]
            case "create":
                made = keeper.create_view(command["view"], command["text"], **command["options"])
                return [made.as_dict()]
            case "drop":
                return keeper.drop_view(command["view"])
            case "views":
                return [str(v) for v in keeper.views()]
            case "right":
                return right(keeper, command["view"], command["text"])
            case "orphans":
                return orphans(keeper)
    finally:
        if undo is not None:
            undo()


def main(lake: Path, number: int) -> None:
    from viewkeeper.errors import ViewKeeperError

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer
    keeper = None
    for line in sys.stdin:
        keeper = keeper or connect(lake)
        try:
            answer = {"done": work(keeper, json.loads(line), number)}
        except ViewKeeperError as e:
            answer = {"code": e.code, "text": str(e)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer, default=str), file=answers, flush=True)


# ── the test ──


class Two:
    def __init__(self, folder: Path) -> None:
        self.folder, self.races = folder, 0
        self.lake = folder / "lake"
        self.processes = []
        for number in (0, 1):
            command = [sys.executable, __file__, str(self.lake), str(number)]
            with (folder / f"log{number}").open("w") as log:
                pipe = subprocess.PIPE
                process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True)
            self.processes.append(process)

    def send(self, number: int, do: str, **rest: Any) -> None:
        print(json.dumps({"do": do, **rest}), file=self.processes[number].stdin, flush=True)

    def answer(self, number: int) -> dict[str, Any]:
        out = self.processes[number].stdout
        assert out is not None
        line = out.readline()
        assert line, (self.folder / f"log{number}").read_text()[-4000:]
        found: dict[str, Any] = json.loads(line)
        assert "error" not in found, found["error"]
        return found

    def ask(self, number: int, do: str, **rest: Any) -> Any:
        self.send(number, do, **rest)
        found = self.answer(number)
        assert "done" in found, found
        return found["done"]

    def race(self, do: str, *both: dict[str, Any], **rest: Any) -> list[dict[str, Any]]:
        """The same command, or two, in both processes at once."""
        self.races += 1
        place = self.folder / f"race{self.races}"
        place.mkdir()
        for number in (0, 1):
            more = both[number] if both else {}
            self.send(number, **{"do": do, **rest, **more}, place=str(place))
        return [self.answer(0), self.answer(1)]

    def commits(self, view: str) -> int:
        """How many commits the view's store has."""
        record = next(
            r
            for r in self.ask(0, "sql", text="SELECT record FROM viewkeeper.views")
            if json.loads(r[0])["label"] == view
        )
        store = json.loads(record[0])["store"].split("`")[-2]
        return len(list((self.lake / "viewkeeper.db" / store / "_delta_log").glob("*0*.json")))

    def close(self) -> None:
        for process in self.processes:
            process.communicate()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    made = Two(tmp_path_factory.mktemp("two"))
    made.ask(0, "sql", text=f"CREATE TABLE t (c STRING, x INT) {FEED}")
    made.ask(0, "sql", text="INSERT INTO t VALUES ('a', 1), ('a', 2), ('b', 3)")
    made.ask(0, "create", view="totals", text=TOTALS, options={})
    made.ask(0, "create", view="plain", text=PLAIN, options={})
    yield made
    made.close()


pytestmark = pytest.mark.spark


def applied_once(
    two: Two, view: str, text: str, answers: list[dict[str, Any]], before: int
) -> None:
    did = [r for a in answers for r in a.get("done", []) if r["strategy"] != "none"]
    said = [a["code"] for a in answers if "code" in a]
    assert len(did) == 1, answers
    assert set(said) <= {"CONFLICT"}, answers
    assert two.commits(view) == before + 1
    for number in (0, 1):
        two.ask(number, "right", view=view, text=text)


def test_what_only_sparks_catalog_holds_is_seen_by_both(two: Two) -> None:
    """Plain views, SQL functions, tables of other formats: made, changed and dropped."""

    def sql(number: int, text: str) -> list[Any]:
        return list(two.ask(number, "sql", text=text))

    sql(0, "CREATE SCHEMA side")
    sql(0, "CREATE VIEW side.small (n COMMENT 'a number') AS SELECT x FROM t WHERE x < 99")
    sql(0, "CREATE FUNCTION twice(n INT) RETURNS INT RETURN n * 2")
    sql(0, "CREATE TABLE words (w STRING, p INT) USING csv PARTITIONED BY (p)")
    sql(0, "INSERT INTO words VALUES ('one', 1), ('two', 2)")
    text = "SELECT count(*) AS n, sum(twice(n)) AS s FROM side.small"
    assert sql(1, text) == sql(0, text)
    assert sorted(sql(1, "SELECT p, w FROM words WHERE p > 0")) == [[1, "one"], [2, "two"]]
    two.ask(1, "create", view="over", text=text, options={"refresh": "incremental"})
    sql(0, "INSERT INTO t VALUES ('z', 50)")
    assert [r["strategy"] for r in two.ask(0, "refresh", view="over")] == ["incremental"]
    two.ask(0, "right", view="over", text=text)

    sql(1, "CREATE OR REPLACE VIEW side.small AS SELECT x + 1 AS n FROM t")
    sql(1, "CREATE OR REPLACE FUNCTION twice(n INT) RETURNS INT RETURN n * 2 + 1")
    plain = "SELECT count(*), sum((x + 1) * 2 + 1) FROM t"
    assert sql(0, text) == sql(1, text) == sql(0, plain)

    two.ask(0, "drop", view="over")
    code = f"""if True:
        import viewkeeper as vk
        spark = vk.connect({str(two.lake)!r}).spark
        spark.sql("CREATE VIEW late AS SELECT 1 AS a")  # not by the keeper, which is not stopped
    """
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert sql(0, "SELECT * FROM late") == sql(1, "SELECT * FROM late") == [[1]]
    (two.lake / "_catalog" / "default.odd.table").write_text("{")  # a warning, no more
    assert sql(0, "SELECT * FROM late") == [[1]]
    (two.lake / "_catalog" / "default.odd.table").unlink()
    sql(0, "DROP VIEW late")
    for what in ("VIEW side.small", "FUNCTION twice", "TABLE words"):
        sql(0, f"DROP {what}")
    assert sql(1, "SHOW VIEWS IN side") == []
    assert not [row for row in sql(1, "SHOW USER FUNCTIONS IN default") if "twice" in row[0]]
    assert not {"words", "late"} & {row[1] for row in sql(1, "SHOW TABLES IN default")}
    sql(1, "DROP SCHEMA side")
    sql(1, "DELETE FROM t WHERE c = 'z'")
    two.ask(1, "refresh", view=None)


@pytest.mark.parametrize(
    ("view", "text", "change", "options"),
    [
        pytest.param("totals", TOTALS, "INSERT INTO t VALUES ('a', 10)", {}, marks=LONG),
        pytest.param("plain", PLAIN, "INSERT INTO t VALUES ('d', 5), ('d', 5)", {}, marks=LONG),
        pytest.param(
            "totals", TOTALS, "UPDATE t SET x = x + 1 WHERE c = 'a'", {"at": "apply"}, marks=LONG
        ),
        ("plain", PLAIN, "INSERT INTO t VALUES ('e', 6)", {"at": "apply"}),
        ("totals", TOTALS, "DELETE FROM t WHERE c = 'b'", {"at": "rewrite", "strategy": "full"}),
        pytest.param("plain", PLAIN, "INSERT INTO t VALUES ('f', -1)", {"at": "apply"}, marks=LONG),
    ],
)
def test_refreshed_at_once_is_applied_once(
    two: Two, view: str, text: str, change: str, options: dict[str, str]
) -> None:
    two.ask(0, "refresh", view=view)
    two.ask(0, "sql", text=change)
    before = two.commits(view)
    options = {"strategy": "incremental", **options}
    answers = two.race("refresh", view=view, **options)
    applied_once(two, view, text, answers, before)


@pytest.mark.parametrize("at", [pytest.param({}, marks=pytest.mark.slow), {"at": "save"}])
def test_one_name_is_given_once(two: Two, at: dict[str, str]) -> None:
    texts = ["SELECT c FROM t", "SELECT x FROM t"]
    both = [{"text": text} for text in texts]
    answers = two.race("create", *both, view="same", options={}, **at)
    winners = [i for i, a in enumerate(answers) if "done" in a]
    assert len(winners) == 1, answers
    assert answers[1 - winners[0]]["code"] in ("NAME_TAKEN", "CONFLICT"), answers
    for number in (0, 1):
        assert two.ask(number, "views").count("same") == 1
        two.ask(number, "right", view="same", text=texts[winners[0]])
        assert two.ask(number, "orphans") == 0
    two.ask(1, "drop", view="same")
    assert "same" not in two.ask(0, "views")


def test_other_names_at_once_are_all_given(two: Two) -> None:
    both = [{"view": f"mine{i}", "text": "SELECT c FROM t"} for i in (0, 1)]
    answers = two.race("create", *both, options={}, at="save")
    assert all("done" in a for a in answers), answers
    for number in (0, 1):
        assert {"mine0", "mine1"} <= set(two.ask(number, "views"))
        two.ask(number, "right", view=f"mine{1 - number}", text="SELECT c FROM t")
    answers = two.race("drop", {"view": "mine0"}, {"view": "mine1"})
    assert all("done" in a for a in answers), answers
    assert not {"mine0", "mine1"} & set(two.ask(0, "views"))


def test_replaced_at_once_is_one_of_the_two(two: Two) -> None:
    two.ask(0, "create", view="turn", text="SELECT c FROM t", options={})
    texts = ["SELECT x FROM t", "SELECT c, x FROM t"]
    both = [{"text": text} for text in texts]
    answers = two.race("create", *both, view="turn", options={"replace": True}, at="save")
    winners = [i for i, a in enumerate(answers) if "done" in a]
    assert len(winners) == 1, answers
    assert answers[1 - winners[0]]["code"] in ("NAME_TAKEN", "CONFLICT"), answers
    two.ask(0, "right", view="turn", text=texts[winners[0]])
    assert two.ask(0, "orphans") == 0
    two.ask(0, "drop", view="turn")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
