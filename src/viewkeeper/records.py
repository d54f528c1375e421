"""What is known of a view, of a refresh, and the errors of the keeper."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.errors import ViewKeeperError

REFRESH_MODES = ("auto", "incremental", "full")
MAINTAIN_MODES = ("deferred", "immediate")
# Settings of a session that the answer of a query depends on: a view keeps those of its creation.
SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss",
)


class InvalidQueryError(ViewKeeperError):
    """SQL that Spark cannot analyse."""

    code = "INVALID_QUERY"


class QueryFailedError(ViewKeeperError):
    """A query that Spark analyses and cannot compute from the rows that there are."""

    code = "QUERY_FAILED"


class InvalidOptionError(ViewKeeperError):
    """An option with a value it does not have."""

    code = "INVALID_OPTION"


def one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises when an option has none of the allowed values.

    >>> one_of("refresh", "auto", REFRESH_MODES)
    >>> one_of("refresh", "never", REFRESH_MODES)
    Traceback (most recent call last):
    viewkeeper.records.InvalidOptionError: [INVALID_OPTION] refresh is 'never'
    Use one of 'auto', 'incremental', 'full'.
    """
    if value not in allowed:
        raise InvalidOptionError(
            f"{what} is {value!r}", hint=f"Use one of {', '.join(map(repr, allowed))}."
        )


class NameTakenError(ViewKeeperError):
    """A table or view of this name is there already."""

    code = "NAME_TAKEN"


class UnknownViewError(ViewKeeperError):
    """No view of this name is kept here."""

    code = "UNKNOWN_VIEW"


class CyclicViewError(ViewKeeperError):
    """A definition that would make a view depend on itself."""

    code = "CYCLIC_DEFINITION"


class ViewInUseError(ViewKeeperError):
    """A view that others are built on."""

    code = "VIEW_IN_USE"


class NotIncrementalError(ViewKeeperError):
    """A view asked to be incremental whose query is not."""

    code = "NOT_INCREMENTAL"


class SourceError(ViewKeeperError):
    """A source that is gone, or no longer what the view's query needs."""

    code = "SOURCE_CHANGED"


class SessionError(ViewKeeperError):
    """A Spark session that cannot be used, or none where one is needed."""

    code = "NO_SESSION"


class RefreshFailedError(ViewKeeperError):
    """Some views could not be refreshed; ``reports`` tells of those that could."""

    code = "REFRESH_FAILED"
    reports: list[RefreshReport]
    causes: dict[str, Exception]


@dataclass(frozen=True)
class Record:
    """A view as the registry knows it."""

    id: str
    name: str  # full name, each part in backquotes
    label: str  # the name as the user gave it, or in full if another view has that
    sql: str
    catalog: str  # the current catalog and schema when the view was defined
    schema: str
    store: str  # full name of the store
    refresh: str = "auto"
    maintain: str = "deferred"
    created: str = ""
    columns: tuple[tuple[str, str], ...] = ()  # name and type
    reads: tuple[str, ...] = ()  # full names of sources
    settings: tuple[tuple[str, str], ...] = ()  # of the session in which it was defined
    reader: str = ""  # what stands behind the view's name: the query's rows, from the store
    comment: str = ""  # for those who see the view in the catalog
    # of a view that is kept by a program; then ``sql`` is the program's input
    program: str = ""  # which one, as JSON
    shown: str = ""  # how the user said it
    inputs: tuple[tuple[str, str], ...] = ()  # the columns of the input, with their types
    others: tuple[tuple[str, str], ...] = ()  # more names, and what stands behind them

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the view in the catalog, its own first."""
        return self.name, *(name for name, _ in self.others)

    def seen_as(self, name: str) -> Record:
        """The view as one of its names shows it.

        >>> others = (("`v_parts`", "SELECT 2"),)
        >>> record = Record("1", "`v`", "v", "", "", "", "store", reader="SELECT 1", others=others)
        >>> seen = record.seen_as("`v_parts`")
        >>> seen.label, seen.reader
        ('v_parts', 'SELECT 2')
        """
        if name == self.name:
            return self
        more = name[len(self.name) - 1 : -1]
        label = f"{self.label[:-1]}{more}`" if self.label.endswith("`") else self.label + more
        reader = dict(self.others)[name]
        return dataclasses.replace(self, name=name, label=label, reader=reader, columns=())

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Record:
        found = json.loads(text)
        found["columns"] = tuple((n, t) for n, t in found["columns"])
        found["reads"] = tuple(found["reads"])
        for key in ("inputs", "others", "settings"):
            found[key] = tuple((n, t) for n, t in found.get(key, ()))
        return Record(**found)


def named(records: Mapping[str, Record], name: str) -> Record | None:
    """The view that has this name in full, be it that of a further output."""
    return records.get(name) or next((r for r in records.values() if name in r.names), None)


class View(str):
    """A view's name, with what is known of it: ``sql``, ``refresh``, ``columns``, ``record``."""

    record: Record

    @staticmethod
    def of(record: Record) -> View:
        """The view of a record."""
        view = View(record.label)
        view.record = record
        return view

    @property
    def name(self) -> str:
        return self.record.label

    @property
    def sql(self) -> str:
        return self.record.shown or self.record.sql

    @property
    def refresh(self) -> str:
        return self.record.refresh

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return self.record.columns

    @property
    def comment(self) -> str:
        return self.record.comment


Sizes = tuple[int, int]


@dataclass
class RefreshReport:
    """What a refresh of one view did.

    Attributes
    ----------
    view : str
        The view's name.
    strategy : str
        "incremental", "full" or "none".
    inserted, deleted : int
        The sizes of ΔQ and ∇Q, the least change. After a full refresh they are found by comparing
        the two states of the view, when first asked for.
    seconds : float
        How long it took.
    reason : str
        Why this strategy, with the numbers behind it.
    lane : str
        How the store was changed: append, native, merge, overwrite, rewrite, touch or none.
    version : int
        The version of the store after the refresh.
    sources : mapping of str to (int, int)
        Each source's version before and after.
    changed_rows, source_rows : int
        How many rows of the sources changed, of how many; of a change too large for the driver, as
        many as the log tells of before what cancels out is taken away.
    lookups : list of str
        What was looked up in the sources and the store, by which values of the change.
    compacted : int
        How many small files of the store were put together after the commit.
    """

    view: str
    strategy: str
    seconds: float
    reason: str
    lane: str = "none"
    version: int = -1
    sources: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sizes: Sizes | Callable[[], Sizes] = (0, 0)
    changed_rows: int = 0
    source_rows: int = 0
    lookups: list[str] = field(default_factory=list)
    compacted: int = 0

    @property
    def inserted(self) -> int:
        return self._sizes()[0]

    @property
    def deleted(self) -> int:
        return self._sizes()[1]

    def _sizes(self) -> Sizes:
        if callable(self.sizes):
            self.sizes = self.sizes()
        return self.sizes

    @property
    def known_sizes(self) -> Sizes | None:
        """The sizes, if they are known without another look."""
        return None if callable(self.sizes) else self.sizes

    def __str__(self) -> str:
        known = self.known_sizes
        rows = f"+{known[0]} -{known[1]} rows" if known else "rows not compared"
        rest = f"; {self.compacted} files put together" if self.compacted else ""
        return f"{self.view}: {self.strategy}, {rows}, {self.seconds:.2f} s ({self.reason}{rest})"

    def __repr__(self) -> str:
        return f"RefreshReport({self})"

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON and for the history."""
        known = self.known_sizes
        return {
            "view": self.view,
            "strategy": self.strategy,
            "inserted": known[0] if known else None,
            "deleted": known[1] if known else None,
            "seconds": round(self.seconds, 4),
            "reason": self.reason,
            "lane": self.lane,
            "changed_rows": self.changed_rows,
            "source_rows": self.source_rows,
            "version": self.version,
            "sources": {k: list(v) for k, v in self.sources.items()},
            "compacted": self.compacted,
        }
