"""A process that is killed by SIGKILL leaves each view as it was or as it was to be, never between.

The killed processes and what is looked for afterwards are in ``crash_worker.py``. One process makes
a lake; each killed one works on a copy of it; the first one then looks at the copy.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash_worker import POINTS
from examiner import Examiner, killed

WORKER = str(Path(__file__).with_name("crash_worker.py"))
DEFAULT = {"refresh_after_commit", "replace_before_drop"}
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def examiner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examiner]:
    made = Examiner(WORKER, tmp_path_factory.mktemp("crash"))
    yield made
    made.close()


@pytest.mark.parametrize(
    "point",
    [pytest.param(p, marks=[] if p in DEFAULT else pytest.mark.slow) for p in POINTS],
)
def test_killed_crash(examiner: Examiner, tmp_path: Path, point: str) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(examiner.template, lake)
    killed(WORKER, lake, point)
    found = examiner.look(lake, point)
    assert found["point"] == point and POINTS[point].left in (found["left"], "any")
