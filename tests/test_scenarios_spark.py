"""The scenarios on Spark and Delta Lake, and the same once more on the reference evaluator."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scenario import ScenarioError, parse, read_scenario, scenarios
from scenario_reference import check_trace
from scenario_run import Run, Trace, quick

pytestmark = pytest.mark.slow  # minutes on Spark: `make scenarios`, `make fuzz-spark`

TRACES: dict[str, Trace] = {}
FILES = [
    pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if read_scenario(p).slow else [])
    for p in scenarios()
]


def trace_of(spark: Any, path: Path) -> Trace:
    """What a run on Spark saw; the run is made once."""
    if path.stem not in TRACES:
        with quick(spark):
            TRACES[path.stem] = Run(spark, read_scenario(path)).run()
    return TRACES[path.stem]


@pytest.mark.parametrize("path", FILES)
def test_scenario_spark(spark: Any, path: Path) -> None:
    """Every view equals its query after each refresh, by the least change."""
    assert trace_of(spark, path).definitions


@pytest.mark.parametrize("path", FILES)
def test_scenario_agrees(spark: Any, path: Path) -> None:
    """The reference gives Spark's rows, and the plan's steps on the reference the same store."""
    if path.stem not in TRACES:
        pytest.skip("the run on Spark did not end")
    found = check_trace(TRACES[path.stem])
    print(f"{path.stem}: {dict(found)}")
    assert sum(found.values()) or not TRACES[path.stem].refreshes


def test_reference_covers_most() -> None:
    """A fair part of the refreshes can be run without an engine."""
    if len(TRACES) < len(FILES):
        pytest.skip("only a part of the scenarios was run")
    found: Counter[str] = Counter()
    for trace in TRACES.values():
        found += check_trace(trace)
    print("\n".join(f"{n:4} {why}" for why, n in found.most_common()))
    assert found["checked"] >= 100


def test_reader_tells_the_line() -> None:
    """A line that is no step is an error with its number."""
    with pytest.raises(ScenarioError, match="line 2"):
        parse("x", "refresh\nrefreesh")
