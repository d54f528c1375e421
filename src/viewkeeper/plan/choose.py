"""Incremental or full: which is predicted to be faster, and why.

The prediction starts from priors and is corrected by what this view's own refreshes took. The
papers' condition stands behind it: where the change is small, computing it is cheaper (Theorem 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

FULL_START, FULL_ROW = 1.2, 1.2e-6  # seconds: to begin, and per row of the sources
# seconds: to begin, per changed row, per row looked through
CHANGE_START, CHANGE_ROW, LOOKUP_ROW = 0.3, 1.8e-6, 0.05e-6
SPARK_START, SPARK_ROW = 6.0, 8e-6  # seconds if the change is too large for the driver
GIVEN = 7.0  # seconds that Spark takes when it is given as many rows of the driver as it should be
_TIE = 1.15  # a full refresh must be clearly cheaper
_LITTLE, _SHORT = 0.3, 1.0  # seconds: so little is not worth it, if it is short anyway
_FORGOTTEN = 0.9  # of what an incremental refresh took too long, after each full one
# how many times as slow one more refresh may make a strategy look
_SLOWER = {"full": 2.0, "incremental": 6.0, "spark": 6.0}


@dataclass(frozen=True)
class Timing:
    """What earlier refreshes took, against what was predicted: 1 is as predicted.

    A change that the driver holds and one that Spark computes are two ways with little in common:
    that the first is fast on a machine does not say that the second is.
    """

    full: float = 1.0
    incremental: float = 1.0
    spark: float = 1.0  # an incremental refresh whose change is too large for the driver

    def learned(self, way: str, seconds: float, predicted: float) -> Timing:
        """The timing after one more refresh: halfway to it, and not too far at once, since the
        first refresh of a session is slow for other reasons. An incremental one that takes many
        times as long as predicted is another thing: something is read that should not be."""
        before = float(getattr(self, way))
        ratio = before * seconds / max(predicted, 0.05)
        most = before * _SLOWER[way]
        new = min(max((before + ratio) / 2, before / 2, 0.1), most, 50.0)
        if way != "full":
            return replace(self, **{way: new})
        # what is not tried is not known for ever
        return Timing(new, _nearer(self.incremental), _nearer(self.spark))

    def as_dict(self) -> dict[str, float]:
        return {k: round(v, 4) for k, v in asdict(self).items()}

    @staticmethod
    def built(seconds: float, rows: int) -> Timing:
        """The timing of a view that has just been filled, which is what a full refresh does, and
        which tells how fast Spark is here."""
        predicted = FULL_START + rows * FULL_ROW
        found = min(max(seconds / predicted, 0.2), 3.0)
        return Timing(full=found, spark=found)

    @staticmethod
    def of(found: Mapping[str, Any] | None) -> Timing:
        known = found or {}
        return Timing(**{f.name: float(known.get(f.name, 1.0)) for f in fields(Timing)})


def _nearer(slow: float) -> float:
    """How slow something was, a while later."""
    return min(slow, 1 + max(slow - 1, 0.0) * _FORGOTTEN)


@dataclass(frozen=True)
class Choice:
    """A strategy, the seconds predicted for both, and the reason in words."""

    strategy: str
    full: float
    incremental: float
    reason: str
    changed: int = 0
    rows: int = 0
    driver: bool = True  # whether the driver holds the change

    @property
    def way(self) -> str:
        """What is learned of, when this is done."""
        return "spark" if self.strategy == "incremental" and not self.driver else self.strategy

    @property
    def predicted(self) -> float:
        return self.full if self.strategy == "full" else self.incremental


def choose(
    changed: int, rows: int, timing: Timing, *, lookups: bool = True, driver: bool = True
) -> Choice:
    """The strategy for a change of so many rows in sources of so many rows.

    >>> choose(100, 10_000_000, Timing()).strategy
    'incremental'
    >>> choose(8_000_000, 10_000_000, Timing()).strategy
    'full'
    """
    full = (FULL_START + rows * FULL_ROW) * timing.full
    looked = rows * LOOKUP_ROW if lookups else 0.0
    if driver:
        incremental = (CHANGE_START + changed * CHANGE_ROW + looked) * timing.incremental
    else:
        incremental = (SPARK_START + changed * SPARK_ROW + looked) * timing.spark
    little = incremental - full < _LITTLE and incremental < _SHORT
    close = incremental <= full * _TIE or little
    strategy = "incremental" if close else "full"
    share = changed / max(rows, 1)
    reason = (
        f"{changed:,} changed of {rows:,} source rows ({share:.2%}):"
        f" incremental predicted {incremental:.2f} s, full {full:.2f} s"
    )
    return Choice(strategy, full, incremental, reason, changed, rows, driver)
