"""The scenarios on Spark and Delta Lake, and the same once more on the reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenario import ScenarioError, parse, read_scenario, scenarios
from scenario_reference import check_trace
from scenario_run import Run

FILES = [
    pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if read_scenario(p).slow else [])
    for p in scenarios()
]


@pytest.mark.parametrize("path", FILES)
def test_scenario_spark_agrees(spark: Any, path: Path) -> None:
    """Every view equals its query after each refresh, by the least change. The reference gives
    Spark's rows, and the plan's steps on the reference give the same store."""
    trace = Run(spark, read_scenario(path)).run()
    assert trace.definitions
    found = check_trace(trace)
    print(f"{path.stem}: {trace.refreshes} refreshes, {dict(found)}")
    assert sum(found.values()) or not trace.refreshes


def test_reader_tells_the_line() -> None:
    """A line that is no step is an error with its number."""
    with pytest.raises(ScenarioError, match="line 2"):
        parse("x", "refresh\nrefreesh")
