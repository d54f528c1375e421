"""A process that makes a lake and looks at what killed ones left of copies of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO


class Examiner:
    """The process, seen from the tests: it runs a worker's ``serve``."""

    def __init__(self, worker: str, folder: Path) -> None:
        self.template = folder / "template"
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, worker, "serve", str(self.template)],
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

    def look(self, lake: Path, what: str) -> dict[str, Any]:
        """What is found in a lake; ``what`` is for the worker's check."""
        assert self.process.stdin is not None
        print(json.dumps({"lake": str(lake), "what": what}), file=self.process.stdin, flush=True)
        return self.answer()

    def close(self) -> None:
        self.process.communicate()
        self.log.close()


def killed(worker: str, lake: Path, point: str) -> None:
    """A process that kills itself at a point of its work on a lake."""
    done = subprocess.run(
        [sys.executable, worker, "die", str(lake), point],
        capture_output=True,
        text=True,
        timeout=300,
        start_new_session=True,  # the JVM dies with it
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]


def serve(
    template: Path, prepare: Callable[[Path], None], check: Callable[[Path, str], dict[str, Any]]
) -> None:
    """The process itself: makes the lake, then answers until its input ends."""
    answers: TextIO = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer

    def answer(value: dict[str, Any]) -> None:
        print(json.dumps(value), file=answers, flush=True)

    prepare(template)
    answer({"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer(check(Path(asked["lake"]), asked["what"]))
        except BaseException:
            answer({"error": traceback.format_exc()})
