"""What a transaction does to immediate views and constraints, found before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row, SparkSession

from viewkeeper.algebra.changes.signed import plus
from viewkeeper.algebra.nodes import ADDED, NEW, REMOVED, Query, Select, Table
from viewkeeper.algebra.scalars import Col, Const, call
from viewkeeper.algebra.walk import tables
from viewkeeper.compiled import Compiled, compile_view
from viewkeeper.engine import programs
from viewkeeper.engine.incremental import StoreDiffersError, bind_change, bind_leaf, planned
from viewkeeper.engine.keyed import rows_with
from viewkeeper.engine.lookups import Lookups, Place
from viewkeeper.engine.overlay import COME, GONE, Overlay, writable
from viewkeeper.engine.runner import Result, Runner
from viewkeeper.engine.situation import Situation, metadata_of, source_names
from viewkeeper.engine.vector import Pin
from viewkeeper.errors import UnknownTableError
from viewkeeper.lake import jvm, stores
from viewkeeper.lake.arrow import WEIGHT, arrow_schema, repeated, summed
from viewkeeper.lake.errors import NotDeltaError
from viewkeeper.lake.feeds import Feed
from viewkeeper.lake.lanes import OP, Patch
from viewkeeper.lake.sources import Source, find, is_same
from viewkeeper.plan.groups import net_rows
from viewkeeper.plan.present import signed_change
from viewkeeper.records import Record
from viewkeeper.transactions.applying import view_part
from viewkeeper.transactions.errors import UnsupportedTableError
from viewkeeper.transactions.journal import Part
from viewkeeper.transactions.state import MOST_ROWS, State, too_large


@dataclass(frozen=True)
class ViewImpact:
    """What becomes of an immediate view."""

    record: Record
    part: Part
    patch: Patch
    change: pa.Table | None  # its columns and a weight, if asked for
    sizes: tuple[int, int]


class StaleError(Exception):
    """An immediate view that lacks what writers outside did; it is to be refreshed first."""

    def __init__(self, record: Record) -> None:
        self.record = record
        super().__init__(record.label)


def may_touch(state: State, reads: Sequence[str]) -> bool:
    """Whether a table of these names is changed; yes, if that is not known. One that is gone is
    not."""
    places = {overlay.pin.source.location for overlay in state.changed.values()}
    if not places:
        return False
    for name in reads:
        try:
            if _source(state, name).location in places:
                return True
        except UnknownTableError:
            continue
        except NotDeltaError:  # a view of this name by now
            return True
    return False


def _source(state: State, name: str) -> Source:
    """A table, looked up once; it is not pinned, as nothing is read of it."""
    if name in state.pins:
        return state.pins[name].source
    known = state.vector.known
    if name not in known or not is_same(state.spark, known[name]):
        known[name] = find(state.spark, name)
    return known[name]


def touched(state: State, compiled: Compiled) -> dict[str, Overlay]:
    """The changed tables that a query reads, by leaf."""
    names = source_names(compiled)
    found = {leaf: state.pin(names[leaf]).source.name for leaf in compiled.leaves if leaf in names}
    changed = state.changed
    return {leaf: changed[name] for leaf, name in found.items() if name in changed}


def view_impact(
    state: State, record: Record, compiled: Compiled, *, show: bool = False
) -> ViewImpact | None:
    """What becomes of a view; None if it reads nothing that changes.

    Raises
    ------
    StaleError
        When the view is not up to the state before the transaction.
    """
    overlays = touched(state, compiled)
    if not overlays:
        return None
    store = state.pin(record.store)
    found = situation(state, record, compiled, overlays, store)
    if found is None:
        raise StaleError(record)
    shown = None
    if found.changed:
        with (
            jvm.with_settings(state.spark, record.settings) as spark,
            Runner(spark) as runner,
        ):
            try:
                made = programs.planned(runner, found) if record.program else planned(runner, found)
            except StoreDiffersError:
                raise StaleError(record) from None
            if not isinstance(made.patch.rows, pa.Table):
                raise too_large(f"too much of the view {record.label}")
            patch, lane, sizes = made.patch, made.lane, made.sizes
            if show and made.change is not None:
                shown = runner.compute(net_rows(made.change)).rows
    else:
        empty = pa.table({OP: pa.array([], pa.string())})
        patch, lane, sizes = Patch(empty, [], only_inserts=True), "touch", (0, 0)
    expects = {o.pin.source.name: o.pin.version + 1 for o in overlays.values()}
    part = view_part(
        record.label,
        store.source,
        record.id,
        found.meta.get("refresh", 0) + 1,
        patch,
        lane,
        metadata_of(found, found.timing, "incremental"),
        expects,
    )
    impact = ViewImpact(record, part, patch, shown, sizes or (0, 0))
    if record.program and (show or sizes is None):
        change = _seen(state, impact)
        return replace(impact, change=change, sizes=sizes or _sizes(change))
    return impact


def _sizes(change: pa.Table | None) -> tuple[int, int]:
    """How many rows come and go."""
    weight = [] if change is None else change.column(change.num_columns - 1).to_pylist()
    return sum(w for w in weight if w > 0), -sum(w for w in weight if w < 0)


def _seen(state: State, impact: ViewImpact) -> pa.Table | None:
    """The change of what readers see of a program's stored tables."""
    stored = store_overlay(state, impact)
    if stored is None:
        return None
    compiled = compile_view(state.spark, impact.record.reader)
    ((leaf, table),) = compiled.leaves.items()
    feeds = {leaf: Feed("feed", local=stored.of_columns(list(table.names)))}
    signed = net_rows(signed_change(compiled.query, [leaf]))
    overlays, pins = {leaf: stored}, {leaf: stored.pin}
    found, _ = _evaluated(state.spark, compiled, pins, feeds, overlays, signed, MOST_ROWS + 1)
    if found.num_rows > MOST_ROWS:
        raise too_large(f"too much of the view {impact.record.label}")
    return found


def situation(
    state: State, record: Record, compiled: Compiled, overlays: dict[str, Overlay], store: Pin
) -> Situation | None:
    """What a refresh would find after the transaction; None if the view is behind before it."""
    _, meta = stores.last_metadata(state.spark, store.source)
    pins = {leaf: state.pin(name) for leaf, name in source_names(compiled).items()}
    then = meta.get("sources", {})
    for leaf in compiled.leaves:
        old = then.get(leaf)
        pin = pins[leaf]
        if old is None or (old["id"], old["version"]) != (pin.source.table_id, pin.version):
            return None
    feeds = {
        leaf: Feed("feed", local=overlay.of_columns(list(compiled.leaves[leaf].names)))
        for leaf, overlay in overlays.items()
    }
    return Situation(record, compiled, store, meta, pins, feeds, overlays=overlays)


def store_overlay(state: State, impact: ViewImpact) -> Overlay | None:
    """The store of a view as the transaction leaves it; None if it stays as it is."""
    rows = impact.patch.rows
    pin = state.pin(impact.record.store)
    if not rows.num_rows:
        return None
    fields = tuple(pin.columns)
    if writable(fields) is not None:
        raise UnsupportedTableError(
            f"views and constraints cannot follow {impact.record.label} within a transaction:"
            f" its column {writable(fields)} is of a type that the driver cannot compare",
            hint="Make what reads it deferred.",
        )
    names = [f.name for f in fields]
    schema = arrow_schema(list(fields))
    op = rows.column(OP)
    sought = rows.filter(pc.not_equal(op, "I"))
    old = rows_with(state.spark, pin, sought, impact.patch.keys) if sought.num_rows else None
    new = rows.filter(pc.not_equal(op, "D")).select(names).cast(schema)
    pieces = []
    for piece, gone, come in ((old, 1, 0), (new, 0, 1)):
        if piece is not None:
            n = piece.num_rows
            piece = piece.select(names).cast(schema)
            piece = piece.append_column(GONE, pa.repeat(pa.scalar(gone, pa.int64()), n))
            pieces.append(piece.append_column(COME, pa.repeat(pa.scalar(come, pa.int64()), n)))
    whole = summed(pa.concat_tables(pieces), 2)
    whole = whole.filter(pc.not_equal(whole.column(GONE), whole.column(COME)))
    made = Overlay(pin, fields, whole)
    return None if made.empty else made


# ── constraints ──


Changes = dict[str, pa.Table]  # by leaf, the netted change of the columns that a query uses


def changes_of(compiled: Compiled, overlays: dict[str, Overlay]) -> Changes:
    """What happens to the columns that a query uses."""
    found = {
        leaf: overlay.of_columns(list(compiled.leaves[leaf].names))
        for leaf, overlay in overlays.items()
    }
    return {leaf: change for leaf, change in found.items() if change.num_rows}


def kinds_of(changes: Changes) -> dict[str, str]:
    """What happens to each table: "insert", "delete" or "both"."""
    found = {}
    for leaf, change in changes.items():
        weights = change.column(WEIGHT)
        come, go = pc.max(weights).as_py() > 0, pc.min(weights).as_py() < 0
        found[leaf] = "both" if come and go else "insert" if come else "delete"
    return found


def new_violations(
    spark: SparkSession,
    state: State,
    compiled: Compiled,
    overlays: dict[str, Overlay],
    changes: Changes,
    added: Query | None,
) -> tuple[list[Row], list[str]]:
    """The rows that the transaction adds to a query that must stay empty, and what was looked up.

    Only the change of the query is evaluated, on the state before with the transaction laid over:
    by ``added``, the papers' ΔQ, where it reads fewer tables than the signed change does.
    """
    names = source_names(compiled)
    pins = {leaf: state.pin(names[leaf]) for leaf in compiled.leaves}
    if added is not None and _base(added) < _base(signed_change(compiled.query, list(changes))):
        return _violations_by_pair(spark, compiled, pins, changes, added)
    feeds = {leaf: Feed("feed", local=change) for leaf, change in changes.items()}
    return violations_by(spark, compiled, pins, feeds, overlays)


def _base(query: Query) -> set[str]:
    """The tables that a query reads, other than their changes."""
    return {leaf.name for leaf in tables(query) if leaf.state in ("", NEW)}


def _violations_by_pair(
    spark: SparkSession,
    compiled: Compiled,
    pins: dict[str, Pin],
    changes: Changes,
    added: Query,
) -> tuple[list[Row], list[str]]:
    """By the papers' ΔQ, over the tables before, ∇R and ΔR."""
    with Runner(spark) as runner:
        places: dict[Table, Place] = {}
        for leaf, table in compiled.leaves.items():
            places.update(bind_leaf(runner, table, pins[leaf]))
            if leaf in changes:
                rows = changes[leaf]
                columns = list(table.names)
                for state, sign in ((REMOVED, -1), (ADDED, 1)):
                    times = pc.max_element_wise(pc.multiply(rows.column(WEIGHT), sign), 0)
                    part = repeated(rows.select(columns), times)
                    change = Table(table.name, table.names, state)
                    runner.bind_rows(change, part, pins[leaf].schema(columns))
        lookups = Lookups(runner, places)
        counted = net_rows(plus(added))
        found = _few(runner.compute(lookups.reduced(counted)))
    return rows_of(found, compiled.definition.schema.names), lookups.reads


def violations_by(
    spark: SparkSession,
    compiled: Compiled,
    pins: dict[str, Pin],
    feeds: dict[str, Feed],
    overlays: dict[str, Overlay],
) -> tuple[list[Row], list[str]]:
    """The rows that changes of some tables add to a query, each as often as it is added."""
    if not feeds:
        return [], []
    signed = signed_change(compiled.query, list(feeds))
    added = Select(net_rows(signed), call(">", Col(signed.arity - 1), Const(0)))
    found, lookups = _evaluated(spark, compiled, pins, feeds, overlays, added)
    return rows_of(found, compiled.definition.schema.names), lookups


def _evaluated(
    spark: SparkSession,
    compiled: Compiled,
    pins: dict[str, Pin],
    feeds: dict[str, Feed],
    overlays: dict[str, Overlay],
    query: Query,
    most: int = 1000,
) -> tuple[pa.Table, list[str]]:
    """The rows of a query over the tables after changes and over the changes, and what was looked
    up for them."""
    with Runner(spark) as runner:
        places: dict[Table, Place] = {}
        for leaf, table in compiled.leaves.items():
            if leaf in feeds:
                bind_change(runner, table, pins[leaf], feeds[leaf])
            now = Table(table.name, table.names, NEW)
            places.update(bind_leaf(runner, now, pins[leaf], overlays.get(leaf)))
        lookups = Lookups(runner, places)
        return _few(runner.compute(lookups.reduced(query)), most), lookups.reads


def _few(result: Result, most: int = 1000) -> pa.Table:
    """The rows, or as many as somebody would look at."""
    if result.rows is not None:
        return result.rows
    assert result.frame is not None
    return result.frame.limit(most).toArrow()


def rows_of(rows: pa.Table, names: Sequence[str]) -> list[Row]:
    """Weighted rows as Spark's rows, each as often as its weight says."""
    made = Row(*names)
    held = [c.to_pylist() for c in rows.columns]
    found = []
    for *values, weight in zip(*held, strict=True):
        found += [made(*values)] * max(1, int(weight))
    return found
