"""Carries out an entry of the journal: each table and view once, whoever does it and how often."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from viewkeeper.engine.failures import reason
from viewkeeper.engine.keyed import rows_with
from viewkeeper.engine.overlay import COME, GONE, Overlay
from viewkeeper.engine.vector import Pin, pinned
from viewkeeper.errors import ViewKeeperError
from viewkeeper.lake import history, jvm, stamps, stores
from viewkeeper.lake.arrow import repeated, summed
from viewkeeper.lake.errors import ConflictError
from viewkeeper.lake.lanes import OP, Patch
from viewkeeper.lake.sources import Source, tip, version
from viewkeeper.transactions.errors import TransactionError
from viewkeeper.transactions.journal import Entry, Journal, Part

_TRIES = 50
_NATIVE_ROWS = 50_000  # fewer than for views: the table may have any layout
Register = Callable[[dict[str, Any]], None]


def table_part(overlay: Overlay) -> Part:
    """What is done to a table."""
    pin = overlay.pin
    head = {
        "name": pin.source.name,
        "id": pin.source.table_id,
        "location": pin.source.location,
        "base": pin.version,
        "inserted": overlay.sizes[0],
        "deleted": overlay.sizes[1],
    }
    return Part("table", head, overlay.rows)


def source_of(head: dict[str, Any]) -> Source:
    """The table of a part."""
    return Source(head["name"], head["id"], head["location"])


def carry_out(spark: SparkSession, journal: Journal, entry: Entry, register: Register) -> None:
    """Does what an entry says, as far as it is not done yet, and says that it is done.

    ``register`` writes what is not rows: a constraint that is added or dropped.
    """
    made: dict[str, int | None] = {}
    for part in entry.parts:
        if part.kind == "table":
            with _carrying(entry, part.head["name"]):
                made[part.head["name"]] = apply_table(spark, journal, entry, part)
    for part in entry.parts:
        if part.kind == "view":
            with _carrying(entry, part.head["view"]):
                made[part.head["name"]] = apply_view(spark, entry, part, made)
        elif part.kind == "constraint":
            register(part.head)
    journal.finish(entry.number)
    journal.tidy(entry.number)


@contextlib.contextmanager
def _carrying(entry: Entry, name: str) -> Iterator[None]:
    """What a table says no to is told with the entry; it stays in the journal, as it happened."""
    try:
        yield
    except (ViewKeeperError, Py4JNetworkError, ConnectionError):
        raise
    except Exception as error:
        raise TransactionError(
            f"transaction {entry.number} is in the journal and cannot be carried out:"
            f" {name} does not take its change: {reason(error)}",
            hint="Make the table take it, for example drop a CHECK constraint that came meanwhile;"
            " then keeper.recover(). Until then other transactions wait.",
        ) from error


def apply_table(spark: SparkSession, journal: Journal, entry: Entry, part: Part) -> int | None:
    """Changes a table, once; the version that holds the change. None if the table is gone."""
    head, source = part.head, source_of(part.head)
    for _ in range(_TRIES):
        if not _there(spark, source):
            return None
        done = _done_at(spark, source, journal.app_id, entry.number, head["base"])
        if done is not None:
            return done
        now = pinned(spark, source)
        patch = _patch(spark, now, part)
        if not patch.rows.num_rows:
            lane = "touch"
        elif patch.only_inserts:
            lane = "append"
        else:
            lane = "native" if patch.rows.num_rows <= _NATIVE_ROWS else "merge"
        with contextlib.suppress(ConflictError):
            stores.apply(
                spark,
                source,
                patch,
                lane=lane,  # type: ignore[arg-type]
                app_id=journal.app_id,
                txn=entry.number,
                metadata={"transaction": entry.id, "entry": entry.number},
                expected=None if patch.only_inserts else now.version,
            )
    raise ConflictError(
        f"other writers of {head['name']} always came first",
        hint="The transaction is in the journal; keeper.recover() goes on with it.",
    )


def _done_at(
    spark: SparkSession, source: Source, app_id: str, number: int, base: int
) -> int | None:
    """The version of the commit that has the entry; it comes after the one the entry began on."""
    for one in history.backwards(spark, source, version(spark, source)):
        if one.version <= base:
            return None
        if one.transaction(app_id) == number:
            return one.version
    if stamps.last_transaction(spark, source, app_id) >= number:  # the log was cleaned meanwhile
        return base + 1
    return None


def _patch(spark: SparkSession, now: Pin, part: Part) -> Patch:
    """The change as a patch of the table as it is. Other writers may have come between: rows that
    they took away are not taken twice, rows that they put in stay."""
    assert part.rows is not None
    fields = tuple(f for f in now.columns if f.name in part.rows.schema.names)
    overlay = Overlay(now, fields, part.rows)
    if now.version == part.head["base"]:
        patch = overlay.patch()
    else:
        patch = _rebased(spark, overlay)
    rows = patch.rows
    missing = [f for f in now.columns if f.name not in rows.schema.names]
    for f in missing:  # a column that came meanwhile
        rows = rows.append_column(f.name, pa.nulls(rows.num_rows))
    return Patch(rows, patch.keys, patch.only_inserts, now.version)


def _rebased(spark: SparkSession, overlay: Overlay) -> Patch:
    """The patch for a table that is no longer as the transaction saw it."""
    rows, names = overlay.rows, overlay.names
    fewer = rows.filter(pc.less(rows.column(COME), rows.column(GONE)))
    more = rows.filter(pc.greater(rows.column(COME), rows.column(GONE)))
    add = repeated(more.select(names), pc.subtract(more.column(COME), more.column(GONE)))
    parts = [(add, "I")]
    if fewer.num_rows:
        gone = fewer.select(names)
        there = rows_with(spark, overlay.pin, gone, names).select(names).cast(gone.schema)
        less = pc.subtract(fewer.column(GONE), fewer.column(COME))
        # numbers of copies: there now, to be taken away
        counts = [(there, 1, 0), (gone, 0, 0)]
        pieces = [
            t.append_column("__n", _constant(t, n)).append_column("__less", _constant(t, m))
            for t, n, m in counts
        ]
        pieces[1] = pieces[1].set_column(len(names) + 1, "__less", less)
        both = summed(pa.concat_tables(p.cast(pieces[0].schema) for p in pieces), 2)
        left = pc.max_element_wise(pc.subtract(both.column("__n"), both.column("__less")), 0)
        parts.append((both.select(names), "D"))
        parts.append((repeated(both.select(names), left), "I"))
    texts = [p.append_column(OP, pa.repeat(pa.scalar(op), p.num_rows)) for p, op in parts]
    return Patch(pa.concat_tables(texts), names, only_inserts=len(parts) == 1)


def _constant(rows: pa.Table, value: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64()), rows.num_rows)


def view_part(
    name: str, store: Source, record_id: str, txn: int, patch: Patch, lane: str,
    metadata: dict[str, Any], expects: dict[str, int],
) -> Part:  # fmt: skip
    """What is done to a view's store; ``expects`` are the versions that its changed sources have
    after the transaction."""
    head = {
        "name": store.name,
        "view": name,
        "id": store.table_id,
        "location": store.location,
        "record": record_id,
        "txn": txn,
        "keys": patch.keys,
        "only_inserts": patch.only_inserts,
        "lane": lane,
        "metadata": metadata,
        "expects": expects,
    }
    return Part("view", head, patch.rows)


def apply_view(
    spark: SparkSession, entry: Entry, part: Part, made: dict[str, int | None]
) -> int | None:
    """Changes a view's store, once. None if another writer came between the transaction and its
    tables: then the view waits for its next refresh, which sees what both did."""
    head, source = part.head, source_of(part.head)
    assert part.rows is not None
    if not _there(spark, source):
        return None
    if any(made.get(name) != wanted for name, wanted in head["expects"].items()):
        return None
    patch = Patch(part.rows, head["keys"], head["only_inserts"])
    for _ in range(_TRIES):
        try:
            return stores.apply(
                spark,
                source,
                patch,
                lane=head["lane"],
                app_id=head["record"],
                txn=head["txn"],
                metadata={**head["metadata"], "transaction": entry.id},
            )
        except ConflictError:
            continue
    return None


def _there(spark: SparkSession, source: Source) -> bool:
    """Whether the table is still the one that the transaction saw. Only a log that is not there
    says that it is gone: one that cannot be read just now is another matter, and raises."""
    try:
        return tip(spark, source).table_id == source.table_id
    except Exception:
        folder = source.local_path
        log = f"{folder or source.location}/_delta_log"
        if os.path.isdir(log) if folder is not None else jvm.exists(spark, log):
            raise
        return False
