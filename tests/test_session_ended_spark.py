"""After the Spark session has ended: clear errors, and nothing is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

pytestmark = pytest.mark.spark

SCRIPT = """
import sys
from pathlib import Path
import viewkeeper as vk
from crash_worker import connect

keeper = connect(Path(sys.argv[1]))
keeper.sql("CREATE TABLE t (a INT) USING delta")
keeper.sql("INSERT INTO t VALUES (1)")
keeper.create_view("v", "SELECT sum(a) AS s FROM t", maintain="immediate")
begun = keeper.transaction()
begun.insert("t", [(2,)])
keeper.spark.stop()
for act in (
    begun.commit,
    keeper.transaction,
    keeper.refresh,
    keeper.views,
    lambda: keeper.explain("v"),
    lambda: keeper.create_view("w", "SELECT a FROM t"),
    lambda: keeper.add_constraint("c", "SELECT a FROM t WHERE a < 0"),
    keeper.check,
    lambda: keeper.sql("SELECT 1"),
    lambda: keeper.drop_view("v"),
):
    try:
        act()
    except vk.ViewKeeperError as error:
        assert error.code == "NO_SESSION" and error.hint, repr(error)
    else:
        raise AssertionError(act)
"""


def test_a_commit_after_the_session_ended(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(lake)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert DeltaTable(lake / "t").to_pyarrow_table().column("a").to_pylist() == [1]
