"""A few dozen random views and changes on Spark; ``make fuzz-spark`` runs thousands."""

from __future__ import annotations

from typing import Any

import pytest

from fuzz_worlds import Tally, run_world
from spark_corners import Corners


@pytest.mark.parametrize("seed", [11, 12])
def test_random_views_oracle(spark: Any, seed: int) -> None:
    """After each refresh a random view equals its query, by the least change."""
    tally = Tally()
    run_world(spark, seed, tally, views=4, rounds=3, depth=2)
    assert not tally.failures, "\n\n".join(tally.failures)
    assert tally.passed >= 8


def test_generator_is_repeatable() -> None:
    """The same seed gives the same world."""

    def world(seed: int) -> list[str]:
        g = Corners(seed)
        tables = g.tables()
        return [g.view("v") for _ in range(5)] + [g.change(t) for t in tables]

    assert world(7) == world(7)
    assert world(7) != world(8)
