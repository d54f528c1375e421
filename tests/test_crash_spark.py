"""A process that is killed by SIGKILL leaves each view as it was or as it was to be, never between.

The killed processes and what is looked for afterwards are in ``crash_worker.py``. One process makes
a lake; each killed one works on a copy of it; the first one then looks at the copy.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crash_worker import POINTS

WORKER = str(Path(__file__).with_name("crash_worker.py"))
DEFAULT = {"refresh_after_commit", "create_while_writing", "replace_before_drop"}
pytestmark = pytest.mark.spark


class Examiner:
    """The process that makes the lake and looks at what the killed ones left."""

    def __init__(self, folder: Path) -> None:
        self.template = folder / "template"
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, WORKER, "serve", str(self.template)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
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

    def look(self, lake: Path, point: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps({"lake": str(lake), "point": point}), file=self.process.stdin, flush=True)
        return self.answer()

    def close(self) -> None:
        self.process.communicate()
        self.log.close()


@pytest.fixture(scope="module")
def examiner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examiner]:
    made = Examiner(tmp_path_factory.mktemp("crash"))
    yield made
    made.close()


@pytest.mark.parametrize(
    "point",
    [pytest.param(p, marks=[] if p in DEFAULT else pytest.mark.slow) for p in POINTS],
)
def test_killed_crash(examiner: Examiner, tmp_path: Path, point: str) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(examiner.template, lake)
    killed = subprocess.run(
        [sys.executable, WORKER, "die", str(lake), point],
        capture_output=True,
        text=True,
        timeout=300,
        start_new_session=True,  # the JVM dies with it
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    found = examiner.look(lake, point)
    assert found["point"] == point and POINTS[point].left in (found["left"], "any")
