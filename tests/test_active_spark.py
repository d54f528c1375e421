"""Active queries, and the commands about them and about constraints."""

from __future__ import annotations

import json
import sys
import threading
import types
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.cli import main
from viewkeeper.errors import ViewKeeperError

FEED = "USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
SUMS = "SELECT c, sum(x) AS s FROM live.t GROUP BY c"


@pytest.fixture(scope="module")
def keeper(spark: Any) -> Iterator[vk.Keeper]:
    spark.sql("CREATE SCHEMA IF NOT EXISTS live")
    made = vk.Keeper(spark, schema="vk_active_tests")
    spark.sql(f"CREATE TABLE live.t (c STRING, x INT) {FEED}")
    spark.sql("INSERT INTO live.t VALUES ('a', 1), ('b', 2)")
    made.create_view("live.sums", SUMS, maintain="immediate")
    made.create_view("live.rows", "SELECT c FROM live.t")
    yield made


class Told:
    """A callback that remembers."""

    def __init__(self) -> None:
        self.changes: list[tuple[bool, Counter[Any], Counter[Any]]] = []

    def __call__(self, change: Any) -> None:
        parts = (Counter(map(tuple, f.collect())) for f in (change.removed, change.added))
        self.changes.append((change.snapshot, *parts))


def test_on_change(keeper: vk.Keeper) -> None:
    sums, rows, named = Told(), Told(), Told()
    keeper.on_change("live.sums", sums)
    keeper.on_change("live.rows", rows)
    first = keeper.on_change("live.sums", named, name="listener")
    assert named.changes == [(True, Counter(), Counter([("a", 1), ("b", 2)]))]
    with keeper.transaction() as t:
        t.insert("live.t", [("a", 5), ("c", 7)])
    change = (False, Counter([("a", 1)]), Counter([("a", 6), ("c", 7)]))
    assert sums.changes == [change] and named.changes[1:] == [change]
    assert rows.changes == [], "this view is deferred"
    keeper.refresh()
    assert rows.changes == [(False, Counter(), Counter([("a",), ("c",)]))]
    keeper.spark.sql("UPDATE live.t SET x = x WHERE c = 'b'")  # around viewkeeper, and no change
    keeper.refresh()
    assert len(sums.changes) == 1 and len(rows.changes) == 1, "no alarm without a net change"
    first.cancel()
    with keeper.transaction() as t:
        t.delete("live.t", "c = 'c'")
    with keeper.transaction() as t:
        t.insert("live.t", [("d", 1)])
    assert len(named.changes) == 2 and len(sums.changes) == 3
    other, again = vk.Keeper(keeper.spark, schema="vk_active_tests"), Told()
    other.on_change("live.sums", again, name="listener")  # goes on where the first one ended
    assert again.changes == sums.changes[1:]
    keeper.refresh()

    def bad(change: Any) -> None:
        raise RuntimeError("no")

    failing, after = keeper.on_change("live.rows", bad), Told()
    keeper.on_change("live.rows", after)
    keeper.spark.sql("INSERT INTO live.t VALUES ('e', 1)")
    with pytest.raises(ViewKeeperError, match="CALLBACK_FAILED"):
        keeper.refresh()
    assert keeper.spark.table("live.rows").where("c = 'e'").count() == 1, "the view has it"
    assert after.changes == [(False, Counter(), Counter([("e",)]))], "others are told"
    failing.callback = again
    assert keeper.poll() == 1 and again.changes[-1] == after.changes[0], "told again"
    with pytest.raises(ViewKeeperError, match="that of a subscription to"):
        keeper.on_change("live.rows", after, name="listener")
    for version in (-1, 99, "x"):
        with pytest.raises(ViewKeeperError, match="INVALID_OPTION"):
            keeper.changes("live.sums", since=version)  # type: ignore[arg-type]
    keeper.on_change("live.sums", bad)
    with pytest.raises(ViewKeeperError, match="CALLBACK_FAILED"), keeper.transaction() as t:
        t.insert("live.t", [("f", 1)])
    assert t.report is not None and t.report.views == {"live.sums": (1, 0)}, "it is committed"
    keeper._subscriptions._all.clear()


def run(keeper: vk.Keeper, capsys: Any, *argv: str, code: int = 0) -> str:
    found = main(["--lake", "unused", *argv], keeper)
    out = capsys.readouterr()
    assert found == code, out.err
    return str(out.out + out.err)


def test_commands(keeper: vk.Keeper, capsys: Any, tmp_path: Path) -> None:
    run(keeper, capsys, "constraint", "add", "small", "--sql", "SELECT * FROM live.t WHERE x > 99")
    run(keeper, capsys, "constraint", "add", "ck", "--key", "live.t(c, x)")
    assert "small" in run(keeper, capsys, "constraint", "list")
    assert "All constraints hold." in run(keeper, capsys, "check")
    assert "free       DELETE FROM" in run(keeper, capsys, "explain", "small")
    keeper.spark.sql("INSERT INTO live.t VALUES ('big', 100)")
    text = run(keeper, capsys, "check", code=1)
    assert "small: violated since version" in text and "('big', 100)" in text
    run(keeper, capsys, "constraint", "drop", "small")
    run(keeper, capsys, "constraint", "drop", "ck")
    assert "No constraints yet." in run(keeper, capsys, "constraint", "list")

    bodies: list[Any] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            bodies.append(json.loads(self.rfile.read(size)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Silence."""

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, log = f"http://127.0.0.1:{server.server_port}/", tmp_path / "changes.jsonl"
    actions = ["--on", f"live.rows=cat >> {log}", "--webhook", f"live.rows={url}"]
    keeper.refresh()
    run(keeper, capsys, "serve", "--rounds", "1", *actions)
    keeper._subscriptions._all.clear()
    keeper.spark.sql("INSERT INTO live.t VALUES ('served', 1)")
    text = run(keeper, capsys, "serve", "--rounds", "1", *actions)
    server.shutdown()
    server.server_close()
    assert "live.rows: incremental, +1 -0 rows" in text
    assert bodies == [json.loads(line) for line in log.read_text().splitlines()]
    assert [b["snapshot"] for b in bodies] == [True, False]
    assert bodies[1]["added"] == [{"c": "served"}] and bodies[1]["removed"] == []
    keeper._subscriptions._all.clear()
    flag = tmp_path / "up"
    actions = ["--on", f"live.rows=test -e {flag} || {{ touch {flag}; false; }}"]
    text = run(keeper, capsys, "serve", "--every", "1ms", "--rounds", "3", *actions)
    assert text.count("CALLBACK_FAILED") == 1, "an action that fails at first is tried again"
    assert [s.told for s in keeper._subscriptions._all] == [1]
    keeper._subscriptions._all.clear()
    actions = ["--call", "live.rows=cli_active_told:take"]
    told = sys.modules["cli_active_told"] = types.ModuleType("cli_active_told")
    told.take = Told()  # type: ignore[attr-defined]
    run(keeper, capsys, "serve", "--rounds", "1", *actions)
    assert [change[0] for change in told.take.changes] == [True]  # type: ignore[attr-defined]
    assert "UNKNOWN_VIEW" in run(keeper, capsys, "serve", "--on", "live.none=cat", code=1)
    keeper._subscriptions._all.clear()
    text = run(keeper, capsys, "--json", "watch", "live.rows", "--name", "w", "--rounds", "1")
    assert json.loads(text)["snapshot"] is True
    keeper._subscriptions._all.clear()
