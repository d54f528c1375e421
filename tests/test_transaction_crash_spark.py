"""Killed with SIGKILL in a transaction or in recovery: then all of it is there, or nothing."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transaction_worker import POINTS, RECOVERY

WORKER = str(Path(__file__).parent / "transaction_worker.py")
# long runs; the journal alone is killed without Spark in test_journal_crash.py
pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Examiner:
    """A process that makes a lake once, and looks at the lakes that killed processes left."""

    def __init__(self, folder: Path) -> None:
        self.template = folder / "template"
        self.log = (folder / "log").open("w+")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, WORKER, "serve", str(self.template)],
            stdin=pipe, stdout=pipe, stderr=self.log, text=True,
        )  # fmt: skip
        assert self.answer() == {"ready": True}

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise AssertionError(self.log.read()[-5000:])
        found: dict[str, Any] = json.loads(line)
        assert "error" not in found, found["error"]
        return found

    def look(self, lake: Path, left: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps({"lake": str(lake), "left": left}), file=self.process.stdin, flush=True)
        return self.answer()

    def close(self) -> None:
        self.process.communicate()
        self.log.close()


@pytest.fixture(scope="module")
def examiner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examiner]:
    made = Examiner(tmp_path_factory.mktemp("transaction_crash"))
    yield made
    made.close()


def killed(lake: Path, point: str) -> None:
    done = subprocess.run(
        [sys.executable, WORKER, "die", str(lake), point],
        capture_output=True,
        text=True,
        timeout=300,
        start_new_session=True,  # the JVM dies with it
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]


@pytest.mark.parametrize("point", POINTS)
def test_killed_in_a_transaction(examiner: Examiner, tmp_path: Path, point: str) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(examiner.template, lake)
    killed(lake, point)
    examiner.look(lake, POINTS[point].left)


@pytest.mark.parametrize("point", RECOVERY)
def test_killed_in_recovery(examiner: Examiner, tmp_path: Path, point: str) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(examiner.template, lake)
    killed(lake, "after_entry")
    killed(lake, f"recovery_{point}")
    examiner.look(lake, "new")


def test_killed_at_random_moments(examiner: Examiner, tmp_path: Path) -> None:
    """One lake, one process after the other; VIEWKEEPER_KILLS says how many."""
    lake = tmp_path / "lake"
    shutil.copytree(examiner.template, lake)
    chance = random.Random(6)
    for _ in range(int(os.environ.get("VIEWKEEPER_KILLS", "4"))):
        process = subprocess.Popen(
            [sys.executable, WORKER, "loop", str(lake)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.2, 8.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        examiner.look(lake, "any")
