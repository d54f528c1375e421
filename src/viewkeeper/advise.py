"""What would make the refreshes of a view cheaper, from its plans and the logs of its tables.

For each source: were it alone to change, what would a refresh look up by which columns, and what
would it read whole? ``plan.probe`` tells, ``lake.layout`` says how much of a table that opens. No
rows are read, and no Spark job runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

from viewkeeper.advice import Advice
from viewkeeper.algebra.nodes import Table
from viewkeeper.compiled import Compiled
from viewkeeper.engine.situation import source_names
from viewkeeper.engine.sizes import row_count
from viewkeeper.engine.vector import Pin, Vector
from viewkeeper.intermediates import stored_parts
from viewkeeper.lake import history, jvm, lookup
from viewkeeper.lake.layout import Layout, clustered_bytes, file_size, layout
from viewkeeper.lake.sources import quoted
from viewkeeper.plan.probe import Lookup, Needs, needs
from viewkeeper.plan.steps import STORE
from viewkeeper.records import InvalidOptionError, Record

LEAST = 0.05  # seconds a refresh; less is not worth telling
USUAL_ROWS = 100  # of a change, where no refresh has told
_OPENED = 150e6  # bytes of files that a lookup goes through in a second
_OPEN = 0.002  # seconds to open one
_COMPARED = 20e6  # bytes of two versions' files compared in a second
_SPARK = 0.8  # seconds of a lookup by Spark, whatever its size
_COMMITS = 20  # of a log, looked at for what its changes rewrite
_CLUSTERED = 2.5  # files that one value may be in, of a table that needs no clustering
_MAX_SIZE = "spark.databricks.delta.optimize.maxFileSize"


@dataclass(frozen=True)
class Tables:
    """What is known of a view's sources and its store: the facts that a probe asks for."""

    spark: SparkSession
    pins: dict[str, Pin]  # by the name of the leaf
    ours: Collection[str]  # names of stores

    def pin(self, leaf: str) -> Pin:
        return self.pins[leaf]

    @cached_property
    def _layouts(self) -> dict[str, Layout | None]:
        return {n: layout(pin.source, pin.version) for n, pin in self.pins.items()}

    def layout(self, leaf: str) -> Layout | None:
        return self._layouts[leaf]

    def size(self, leaf: str) -> int:
        """The bytes of a table; 0 if they are not known."""
        found = self.layout(leaf)
        return 0 if found is None else found.bytes

    def is_ours(self, leaf: str) -> bool:
        """Whether a table is the store of a view."""
        return leaf == f"#{STORE}" or self.pins[leaf].source.name in self.ours

    # ── what a probe asks ──

    def rows(self, leaf: Table) -> int:
        found = self.layout(leaf.name)
        return row_count(self.pins[leaf.name]) if found is None else found.rows

    def distinct(self, leaf: Table, column: int) -> int | None:
        found = self.layout(leaf.name)
        return None if found is None else found.distinct(leaf.names[column])

    def can_seek(self, leaf: Table, column: int) -> bool:
        (field,) = self.pins[leaf.name].schema([leaf.names[column]]).fields
        return lookup.can_seek(field)

    def on_driver(self, leaf: Table) -> bool:
        return self.obstacle(leaf.name) is None

    def obstacle(self, leaf: str) -> str | None:
        """Why only Spark can look up rows of a table."""
        pin = self.pins[leaf]
        return lookup.obstacle(pin.source, pin.version)


def advise(
    spark: SparkSession,
    record: Record,
    compiled: Compiled,
    vector: Vector,
    *,
    rows: int = USUAL_ROWS,
    least: float = LEAST,
    ours: Collection[str] = (),
) -> list[Advice]:
    """What would make the refreshes of a view cheaper, the best first.

    Parameters
    ----------
    rows : int
        How many rows of a source change between two refreshes.
    least : float
        The seconds a refresh that are worth telling.
    ours : collection of str
        The stores of views: they are not the user's to change.
    """
    if compiled.blocked:
        what = f"let {record.label} be kept incrementally"
        return [Advice("query", record.label, what, compiled.blocked)]
    pins = {leaf: vector.pin(name) for leaf, name in source_names(compiled).items()}
    known = Tables(spark, {**pins, f"#{STORE}": vector.pin(record.store)}, ours)
    found = [needs(compiled.store, leaf, rows, known) for leaf in compiled.leaves]
    advice = [
        *_clustering(known, found),
        *_feeds(known, compiled, rows),
        *_lanes(known, found),
        *stored_parts(record, compiled, found, known),
    ]
    worth = [a for a in advice if a.seconds >= least and a.seconds > 0]
    return sorted(worth, key=lambda a: -a.seconds)


def apply(spark: SparkSession, advice: Advice) -> None:
    """Runs the statements of an advice that changes no rows.

    Raises
    ------
    InvalidOptionError
        When it is of another kind.
    """
    if not advice.can_apply:
        raise InvalidOptionError(
            f"advice of the kind {advice.kind!r} is not applied by viewkeeper",
            hint="Look at its statements, and run them if they suit you.",
        )
    with jvm.own_session(spark, {}) as own:
        for text in advice.sql:
            own.sql(text)


# ── clustering ───────────────────────────────────────────────────────────────────────────────────


def _clustering(known: Tables, found: Iterable[Needs]) -> Iterable[Advice]:
    """Tables to be clustered by the columns by which they are looked up."""
    uses: dict[str, list[tuple[str, Lookup]]] = {}
    for one in found:
        for sought in one.lookups:
            uses.setdefault(sought.leaf.name, []).append((one.changed, sought))
    for leaf, of_table in uses.items():
        held = known.layout(leaf)
        if held is not None and held.files and not known.is_ours(leaf):
            partitions = known.pin(leaf).metadata.get("partitionColumns") or []
            plain = [u for u in of_table if not set(u[1].columns) & set(partitions)]
            advice = _clustered(known.pin(leaf), held, plain)
            if advice is not None:
                yield advice


def _clustered(pin: Pin, held: Layout, uses: list[tuple[str, Lookup]]) -> Advice | None:
    """The one or two columns that save the most, over all changes that ask for the table."""
    names = dict.fromkeys(c for _, u in uses for c in u.columns if held.has_statistics(c))
    size = file_size(held.bytes)
    best: Advice | None = None
    for by in [*itertools.combinations(names, 1), *itertools.combinations(names, 2)]:
        saved, before, after = 0.0, 0.0, 0.0
        gaining: dict[str, None] = {}
        for changed, use in uses:
            counts = {use.leaf.names[i]: n for i, n in use.values.items()}
            now = min(held.bytes_for(c, n) for c, n in counts.items())
            opened = min(held.files_for(c, n) for c, n in counts.items())
            then = min(
                clustered_bytes(held.bytes, n, len(by), size) if c in by else float(held.bytes)
                for c, n in counts.items()
            )
            fewer = max(1.0, then / size)
            if min(held.files_for(c, 1) for c in counts) <= _CLUSTERED:
                then, fewer = max(now, then), max(opened, fewer)
            seconds = (now - then) / _OPENED + (opened - fewer) * _OPEN
            saved, before, after = saved + seconds, before + now, after + then
            if seconds > 0:
                gaining[changed] = None
        if gaining and saved > (best.seconds if best else 0.0):
            best = _cluster_advice(pin, held, by, saved, before, after, tuple(gaining))
    return best


def _cluster_advice(
    pin: Pin,
    held: Layout,
    by: tuple[str, ...],
    saved: float,
    before: float,
    after: float,
    changed: tuple[str, ...],
) -> Advice:
    name, columns = pin.source.name, ", ".join(quoted(c) for c in by)
    share = max(held.files_for(c, 1) for c in by) / held.files
    return Advice(
        "clustering",
        name,
        f"cluster {name} by {', '.join(by)}",
        f"its rows are looked up by it, and one value may be in {share:.0%} of {held.files} files",
        (
            f"SET {_MAX_SIZE} = {file_size(held.bytes)}",
            f"OPTIMIZE {name} ZORDER BY ({columns})",
            f"RESET {_MAX_SIZE}",
        ),
        saved,
        int(before),
        int(after),
        held.bytes,
        changed,
    )


# ── change feeds ─────────────────────────────────────────────────────────────────────────────────


def _feeds(known: Tables, compiled: Compiled, rows: int) -> Iterable[Advice]:
    """Sources whose feed is off and whose commits rewrite files."""
    for leaf in compiled.leaves:
        pin = known.pin(leaf)
        config = pin.metadata.get("configuration") or {}
        if config.get("delta.enableChangeDataFeed", "false") == "true" or known.is_ours(leaf):
            continue
        before = _compared(known, pin)
        total = known.rows(compiled.leaves[leaf])
        after = min(before, 2.0 * rows * known.size(leaf) / max(total, 1))
        if before:
            yield Advice(
                "feed",
                pin.source.name,
                f"turn on the change feed of {pin.source.name}",
                "without it a refresh compares the files that updates and deletes rewrote",
                (
                    f"ALTER TABLE {pin.source.name}"
                    " SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
                ),
                (before - after) / _COMPARED,
                int(before),
                int(after),
                int(after),
                (leaf,),
            )


def _compared(known: Tables, pin: Pin) -> float:
    """The bytes of files that an average commit rewrites; 0 where rows are only added."""
    sizes = []
    commits = history.backwards(known.spark, pin.source, pin.version)
    for one in itertools.islice(commits, _COMMITS):
        signed = [a for _, a in history.signed_files([one])]
        if one.removes and any(a in signed for a in one.removes):
            sizes.append(sum(a.get("size") or 0 for a in signed))
        elif signed:
            sizes.append(0)
    return sum(sizes) / len(sizes) if any(sizes) else 0.0


# ── tables that only Spark can read ──────────────────────────────────────────────────────────────


_CURES = {
    "deletion vectors": (
        "ALTER TABLE {0} SET TBLPROPERTIES (delta.enableDeletionVectors = false)",
        "REORG TABLE {0} APPLY (PURGE)",
        "ALTER TABLE {0} DROP FEATURE deletionVectors",
    ),
    "column mapping": (
        "SET spark.databricks.delta.columnMapping.allowRemoval = true",
        "ALTER TABLE {0} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
        "ALTER TABLE {0} DROP FEATURE columnMapping",
        "RESET spark.databricks.delta.columnMapping.allowRemoval",
    ),
}


def _cure(obstacle: str) -> tuple[str, ...]:
    return next((cure for kind, cure in _CURES.items() if obstacle.startswith(kind)), ())


def _lanes(known: Tables, found: Iterable[Needs]) -> Iterable[Advice]:
    """Tables whose lookups need Spark, because of how they are written."""
    asked: dict[str, list[tuple[str, Lookup]]] = {}
    for one in found:
        for use in one.lookups:
            asked.setdefault(use.leaf.name, []).append((one.changed, use))
    for leaf, uses in asked.items():
        obstacle = known.obstacle(leaf)
        pin = known.pin(leaf)
        if obstacle is None or obstacle == "remote files" or known.is_ours(leaf):
            continue
        name = pin.source.name
        yield Advice(
            "driver",
            name,
            f"let {name} be read without Spark",
            f"its lookups need a Spark job each: {obstacle}",
            tuple(text.format(name) for text in _cure(obstacle)),
            _SPARK * len(uses),
            cost=known.size(leaf) if obstacle == "column mapping" else 0,
            changed=tuple(dict.fromkeys(changed for changed, _ in uses)),
        )


def text(advice: list[Advice]) -> str:
    """The advice for people."""
    return "\n\n".join(map(str, advice)) or "Nothing to advise: refreshes read little as it is."
