"""Finds violations that writers outside brought in, and the commit that did it."""

from __future__ import annotations

import dataclasses
import datetime
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row

from viewkeeper.compiled import Compiled
from viewkeeper.engine.refresh import source_names
from viewkeeper.engine.vector import Pin
from viewkeeper.lake import history, lanes
from viewkeeper.lake.errors import LostHistoryError
from viewkeeper.lake.feeds import net_change
from viewkeeper.lake.sources import Source, find
from viewkeeper.transactions.constraints import Constraint
from viewkeeper.transactions.guarding import plain, present_violations, version_of
from viewkeeper.transactions.impact import violations_by
from viewkeeper.transactions.manager import Transactions
from viewkeeper.transactions.state import State, moved


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
    """

    constraint: str
    rows: list[Row]
    table: str | None = None
    version: int | None = None
    operation: str | None = None
    at: datetime.datetime | None = None
    others: int = 0

    def __str__(self) -> str:
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


def check(manager: Transactions, name: str | None = None) -> list[Violation]:
    """All violations of one constraint or of all; where there is none, that is remembered."""
    found = []
    for constraint in manager.constraints().values():
        if name is None or constraint.name == name:
            violation = _check_one(manager, constraint)
            if violation is not None:
                found.append(violation)
    return found


def _check_one(manager: Transactions, constraint: Constraint) -> Violation | None:
    compiled = manager.host.compiled(constraint.record)
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
        rows = _added(manager, compiled, pins, since, {n: p.version for n, p in pins.items()})
        if rows:
            return _blamed(manager, constraint, compiled, pins, since, rows)
    except LostHistoryError:
        rows = present_violations(State(manager.spark, manager.known, by_name), compiled)
        if rows:
            return Violation(constraint.name, rows)
    _remember(manager, constraint, pins)
    return None


def _added(
    manager: Transactions,
    compiled: Compiled,
    pins: dict[str, Pin],
    since: dict[str, int],
    until: dict[str, int],
) -> list[Row]:
    """The rows that the changes between two vectors of versions add to the query."""
    feeds = {}
    for leaf, table in compiled.leaves.items():
        if since[leaf] != until[leaf]:
            feed = net_change(
                manager.spark, pins[leaf].source, since[leaf], until[leaf], list(table.names)
            )
            if not feed.empty:
                feeds[leaf] = feed
    there = {leaf: moved(pin, until[leaf]) for leaf, pin in pins.items()}
    return violations_by(manager.spark, compiled, there, feeds, {})[0]


def _blamed(
    manager: Transactions,
    constraint: Constraint,
    compiled: Compiled,
    pins: dict[str, Pin],
    since: dict[str, int],
    rows: list[Row],
) -> Violation:
    """The first commit after which there are violations, where there were none before it: found by
    halving, with the commits of all tables in the order of their times."""
    commits = _commits(manager, pins, since)

    def after(n: int) -> dict[str, int]:
        reached = dict(since)
        for one in commits[:n]:
            for leaf, version in one.versions.items():
                reached[leaf] = max(reached[leaf], version)
        return reached

    low, high = 0, len(commits)  # no violation after `low` commits, some after `high`
    while high - low > 1:
        middle = (low + high) // 2
        there = _added(manager, compiled, pins, since, after(middle))
        low, high = (low, middle) if there else (middle, high)
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
    return lanes.read_stamp(commit.user_metadata) or {}


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


def _remember(manager: Transactions, constraint: Constraint, pins: dict[str, Pin]) -> None:
    holds = {leaf: version_of(pin) for leaf, pin in pins.items()}
    with manager.journal.turn():
        there = manager.constraints().get(constraint.name)
        if there is not None and there.id == constraint.id:
            manager.shelf.put(
                constraint.name, plain(dataclasses.replace(constraint, holds_at=holds))
            )
