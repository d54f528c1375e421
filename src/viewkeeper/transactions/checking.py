"""Finds violations that writers outside brought in, and the commit that did it."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from viewkeeper.compiled import Compiled
from viewkeeper.engine.failures import computing
from viewkeeper.engine.situation import source_names
from viewkeeper.engine.vector import Pin
from viewkeeper.errors import ViewKeeperError
from viewkeeper.lake import history, jvm, stamps
from viewkeeper.lake.errors import LostHistoryError
from viewkeeper.lake.feeds import net_change
from viewkeeper.lake.sources import Source, find
from viewkeeper.records import SessionError, SourceError
from viewkeeper.transactions.constraints import Constraint, check_incremental
from viewkeeper.transactions.errors import TransactionError
from viewkeeper.transactions.guarding import present_violations, version_of
from viewkeeper.transactions.impact import violations_by
from viewkeeper.transactions.manager import Transactions
from viewkeeper.transactions.state import State, moved

_OF_SPARK = (PySparkException, Py4JJavaError)


@dataclass(frozen=True)
class Violation:
    """A constraint that does not hold, and since which commit.

    Attributes
    ----------
    constraint : str
    rows : list of Row
        The offending rows.
    table, version : str, int, optional
        The commit that brought them in; None where the logs no longer tell.
    operation : str, optional
        What the commit says it was.
    at : datetime, optional
        When it was made.
    others : int
        How many other commits a view that the constraint reads took in together with this one;
        each of them may have done it.
    error : Exception, optional
        Why the constraint could not be checked; then there are no rows.
    """

    constraint: str
    rows: list[Row]
    table: str | None = None
    version: int | None = None
    operation: str | None = None
    at: datetime.datetime | None = None
    others: int = 0
    error: Exception | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.constraint}: cannot be checked: {str(self.error).splitlines()[0]}"
        by = "a commit that the logs no longer hold"
        if self.table is not None:
            by = f"version {self.version} of {self.table} ({self.operation}, {self.at})"
            by += f" or one of {self.others} commits shortly before it" if self.others else ""
        rows = ", ".join(str(tuple(r)) for r in self.rows[:5])
        return f"{self.constraint}: violated since {by}: {rows}"


@dataclass(frozen=True)
class _Commit:
    """Commits that count as one: those of one transaction of ours, or one of another writer."""

    time: int
    versions: dict[str, int]  # by leaf


def check(
    manager: Transactions, name: str | None = None, broken: Mapping[str, Exception] | None = None
) -> list[Violation]:
    """All violations of one constraint or of all; where there is none, that is remembered.

    A constraint that cannot be checked is told as such, and the others are looked at; if it is the
    one that is asked for, its error is raised. ``broken`` are stores of views that could not be
    refreshed, and why.
    """
    found = []
    for constraint in manager.constraints().values():
        if name is None or constraint.name == name:
            try:
                _check_stores(constraint, broken or {})
                violation = _check_one(manager, constraint)
            except (ViewKeeperError, *_OF_SPARK) as error:
                if name is not None or not _of_one(error):
                    raise
                violation = Violation(constraint.name, [], error=error)
            if violation is not None:
                found.append(violation)
    return found


def _check_stores(constraint: Constraint, broken: Mapping[str, Exception]) -> None:
    """Raises if a view that a constraint reads could not be refreshed."""
    for store in constraint.reads:
        if store in broken:
            raise broken[store]


def _of_one(error: Exception) -> bool:
    """Whether an error is about one constraint. While a transaction cannot be carried out, or the
    session has ended, none can be checked."""
    return not isinstance(error, TransactionError | SessionError)


def stores_read(manager: Transactions, name: str | None = None) -> set[str]:
    """The tables that one constraint or all of them read now, as far as that can be found."""
    found: set[str] = set()
    for constraint in manager.constraints().values():
        if name is None or constraint.name == name:
            with contextlib.suppress(SourceError):  # told when it is checked
                found |= set(manager.fresh(constraint).reads)
    return found


def _check_one(manager: Transactions, constraint: Constraint) -> Violation | None:
    constraint = manager.fresh(constraint)
    compiled = manager.host.compiled(constraint.record)
    check_incremental(constraint.name, compiled)
    names = source_names(compiled)
    _, by_name, _ = manager.steady([names[leaf] for leaf in compiled.leaves])
    pins = {leaf: by_name[names[leaf]] for leaf in compiled.leaves}
    then = constraint.holds_at
    replaced = any(
        then.get(leaf, {}).get("id") != pin.source.table_id for leaf, pin in pins.items()
    )
    since = {leaf: int(then.get(leaf, {}).get("version", -1)) for leaf in pins}
    if not replaced and all(since[leaf] == pin.version for leaf, pin in pins.items()):
        return None
    try:
        if replaced:
            raise LostHistoryError(constraint.name, "a table was replaced")
        with (
            jvm.with_settings(manager.spark, constraint.settings) as spark,
            computing(f"the constraint {constraint.name}", "It is not known whether it holds."),
        ):
            span = _Span(spark, compiled, pins, since)
            rows = span.added({leaf: pin.version for leaf, pin in pins.items()})
            if rows:
                return _blamed(manager, constraint, span, rows)
    except LostHistoryError:
        state = State(manager.spark, manager.known, by_name)
        rows = present_violations(state, compiled, constraint)
        if rows:
            return Violation(constraint.name, rows)
    holds = {leaf: version_of(pin) for leaf, pin in pins.items()}
    manager.note(dataclasses.replace(constraint, holds_at=holds))
    return None


@dataclass(frozen=True)
class _Span:
    """What happened to the tables of a query since it had no rows."""

    spark: SparkSession  # with the settings of the constraint
    compiled: Compiled
    pins: dict[str, Pin]
    since: dict[str, int]

    def added(self, until: dict[str, int]) -> list[Row]:
        """The rows that the changes up to a vector of versions add to the query."""
        feeds = {}
        for leaf, table in self.compiled.leaves.items():
            old, new = self.since[leaf], until[leaf]
            if old != new:
                source = self.pins[leaf].source
                feed = net_change(self.spark, source, old, new, list(table.names))
                if not feed.empty:
                    feeds[leaf] = feed
        there = {leaf: moved(pin, until[leaf]) for leaf, pin in self.pins.items()}
        return violations_by(self.spark, self.compiled, there, feeds, {})[0]


def _blamed(
    manager: Transactions, constraint: Constraint, span: _Span, rows: list[Row]
) -> Violation:
    """A commit after which some of the present rows are there, where none was before it: found by
    halving, with the commits of all tables in the order of their times. Rows that others took away
    again do not count."""
    pins = span.pins
    commits = _commits(manager, pins, span.since)
    present = {_known_by(constraint, row) for row in rows}

    def after(n: int) -> dict[str, int]:
        reached = dict(span.since)
        for one in commits[:n]:
            for leaf, version in one.versions.items():
                reached[leaf] = max(reached[leaf], version)
        return reached

    low, high = 0, len(commits)  # none of them after `low` commits, some after `high`
    while high - low > 1:
        middle = (low + high) // 2
        there = {_known_by(constraint, row) for row in span.added(after(middle))}
        low, high = (low, middle) if there & present else (middle, high)
    guilty = commits[high - 1]
    leaf = next(iter(guilty.versions))
    causes = _causes(manager, pins[leaf].source, guilty.versions[leaf])
    source, commit = max(causes, key=lambda cause: _time(cause[1]))
    at = datetime.datetime.fromtimestamp(_time(commit) / 1000, datetime.timezone.utc)
    return Violation(
        constraint.name,
        rows,
        source.name,
        commit.version,
        _operation(commit),
        at,
        len(causes) - 1,
    )


def _known_by(constraint: Constraint, row: Row) -> str:
    """What tells an offending row from others; of a key not how often it is there, its last
    column."""
    return repr(tuple(row)[:-1] if constraint.insertions_only else tuple(row))


def _causes(
    manager: Transactions, source: Source, version: int
) -> list[tuple[Source, history.Commit]]:
    """The commit itself; if it is the refresh of a view, the commits that the view took in by it,
    without those of transactions, which were checked."""
    (commit,) = history.between(manager.spark, source, version - 1, version)
    now = _sources(commit)
    if now is None:
        return [(source, commit)]
    older = map(_sources, history.backwards(manager.spark, source, version - 1))
    then = next((sources for sources in older if sources is not None), {})
    found: dict[tuple[str, int], tuple[Source, history.Commit]] = {}
    for leaf, reached in now.items():
        since = then.get(leaf, reached)
        if since["id"] == reached["id"]:
            origin = find(manager.spark, reached["name"])
            for number in range(since["version"] + 1, reached["version"] + 1):
                for cause in _causes(manager, origin, number):
                    found[cause[0].name, cause[1].version] = cause
    outside = [c for c in found.values() if not _stamp(c[1]).get("transaction")]
    return outside or list(found.values()) or [(source, commit)]


def _sources(commit: history.Commit) -> dict[str, dict[str, Any]] | None:
    """The versions that a view has from this commit on; None if it is no refresh."""
    return _stamp(commit).get("sources")


def _stamp(commit: history.Commit) -> dict[str, Any]:
    return stamps.read_stamp(commit.user_metadata) or {}


def _time(commit: history.Commit) -> int:
    """When a commit was made, in milliseconds."""
    return int((commit.of("commitInfo") or [{}])[0].get("timestamp") or 0)


def _operation(commit: history.Commit) -> str:
    """What a commit says it was."""
    if _stamp(commit).get("transaction"):
        return "a transaction"
    return str((commit.of("commitInfo") or [{}])[0].get("operation"))


def _commits(manager: Transactions, pins: dict[str, Pin], since: dict[str, int]) -> list[_Commit]:
    found: list[_Commit] = []
    entries: dict[str, _Commit] = {}
    for leaf, pin in pins.items():
        latest = 0
        for one in history.between(manager.spark, pin.source, since[leaf], pin.version):
            latest = max(latest, _time(one))  # clocks may go back
            entry = _stamp(one).get("transaction")
            if entry in entries:
                entries[entry].versions[leaf] = one.version
                continue
            made = _Commit(latest, {leaf: one.version})
            found.append(made)
            if entry:
                entries[entry] = made
    return sorted(found, key=lambda c: c.time)
