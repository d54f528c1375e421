"""Incremental or full: which is predicted to be faster, and why.

The prediction starts from priors and is corrected by what this view's own refreshes took. The
papers' condition stands behind it: where the change is small, computing it is cheaper (Theorem 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

FULL_START, FULL_ROW = 1.2, 1.2e-6  # seconds: to begin, and per row of the sources
# seconds: to begin, per changed row, per row looked through
CHANGE_START, CHANGE_ROW, LOOKUP_ROW = 0.3, 1.8e-6, 0.05e-6
SPARK_START, SPARK_ROW = 6.0, 15e-6  # seconds if the change is too large for the driver
_TIE = 1.15  # a full refresh must be clearly cheaper
_LITTLE, _SHORT = 0.3, 1.0  # seconds: so little is not worth it, if it is short anyway
_FORGOTTEN = 0.9  # of what an incremental refresh took too long, after each full one
# how many times as slow one more refresh may make a strategy look
_SLOWER = {"full": 2.0, "incremental": 6.0}


@dataclass(frozen=True)
class Timing:
    """What earlier refreshes took, against what was predicted: 1 is as predicted."""

    full: float = 1.0
    incremental: float = 1.0

    def learned(self, strategy: str, seconds: float, predicted: float) -> Timing:
        """The timing after one more refresh: halfway to it, and not too far at once, since the
        first refresh of a session is slow for other reasons. An incremental one that takes many
        times as long as predicted is another thing: something is read that should not be."""
        before = self.full if strategy == "full" else self.incremental
        ratio = before * seconds / max(predicted, 0.05)
        most = before * _SLOWER[strategy]
        new = min(max((before + ratio) / 2, before / 2, 0.1), most, 50.0)
        if strategy == "full":  # what is not tried is not known for ever
            slower = max(self.incremental - 1, 0.0)
            return Timing(new, min(self.incremental, 1 + slower * _FORGOTTEN))
        return Timing(self.full, new)

    def as_dict(self) -> dict[str, float]:
        return {k: round(v, 4) for k, v in asdict(self).items()}

    @staticmethod
    def built(seconds: float, rows: int) -> Timing:
        """The timing of a view that has just been filled, which is what a full refresh does."""
        predicted = FULL_START + rows * FULL_ROW
        return Timing(full=min(max(seconds / predicted, 0.2), 3.0))

    @staticmethod
    def of(found: Mapping[str, Any] | None) -> Timing:
        return Timing(found.get("full", 1.0), found.get("incremental", 1.0)) if found else Timing()


@dataclass(frozen=True)
class Choice:
    """A strategy, the seconds predicted for both, and the reason in words."""

    strategy: str
    full: float
    incremental: float
    reason: str
    changed: int = 0
    rows: int = 0

    @property
    def predicted(self) -> float:
        return self.full if self.strategy == "full" else self.incremental


def on_spark(rows: int) -> float:
    """The seconds for a change of so many rows whose queries only Spark can run."""
    return SPARK_START + rows * SPARK_ROW


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
    taken = CHANGE_START + changed * CHANGE_ROW if driver else on_spark(changed)
    incremental = (taken + looked) * timing.incremental
    little = incremental - full < _LITTLE and incremental < _SHORT
    close = incremental <= full * _TIE or little
    strategy = "incremental" if close else "full"
    share = changed / max(rows, 1)
    reason = (
        f"{changed:,} changed of {rows:,} source rows ({share:.2%}):"
        f" incremental predicted {incremental:.2f} s, full {full:.2f} s"
    )
    return Choice(strategy, full, incremental, reason, changed, rows)
