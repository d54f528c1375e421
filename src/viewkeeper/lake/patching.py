"""A patch by hiding rows: work on the change, whatever the size of the table.

The rows of the patch's keys are found by DuckDB over the files' key columns, hidden by deletion
vectors, and the new ones written to a file of their own. A small file, or one of which much is
hidden, is written again without its hidden rows. All of it is one commit, with its change file.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from viewkeeper.lake import arrow, history, log, lookup, vectors, written
from viewkeeper.lake.arrow import UnusualError
from viewkeeper.lake.history import Action
from viewkeeper.lake.lookup import Files
from viewkeeper.lake.sources import GENERATED, IDENTITY
from viewkeeper.lake.vectors import FILE, ROW

_SMALL = 512 * 1024  # bytes of a file that is rather written again
_MUCH = 0.3  # of a file's rows: so many hidden ones make it worth writing again
_LARGE = 64 * 2**20  # bytes of a file that is not written again here, whatever is hidden
_CHECKPOINT = 50  # commits
_LOG = logging.getLogger(__name__)
# Features of tables that a patch need not heed, or does.
_KNOWN = {"deletionVectors", "changeDataFeed", "appendOnly", "invariants", "timestampNtz"}


@dataclass(frozen=True)
class Found:
    """Rows of the keys of a patch: where they are, and what they are."""

    files: pa.ChunkedArray
    places: pa.ChunkedArray
    rows: pa.Table


def can_patch(table: DeltaTable) -> bool:
    """Whether a table has no partitions, and nothing that we would have to heed."""
    return can_commit(table) and not table.metadata().partition_columns


def hides_rows(table: DeltaTable) -> bool:
    """Whether a table may have deletion vectors."""
    return bool(table.metadata().configuration.get("delta.enableDeletionVectors") == "true")


def can_commit(table: DeltaTable) -> bool:
    """Whether a table has no feature that a commit of our own would have to heed. Tables of old
    protocols do not name theirs: what they ask for stands in their properties and columns."""
    protocol, metadata = table.protocol(), table.metadata()
    if not {*(protocol.writer_features or ()), *(protocol.reader_features or ())} <= _KNOWN:
        return False
    asked = any(key.startswith("delta.constraints.") for key in metadata.configuration)
    columns = json.loads(table.schema().to_json())["fields"]
    heeded = (GENERATED, IDENTITY, "delta.invariants")
    return not asked and not any(m.startswith(heeded) for c in columns for m in c["metadata"])


def patched(
    found: Files,
    version: int,
    gone_or_set: pa.Table,
    keys: list[str],
    come: pa.Table,
    txn: Action,
    said: str,
    feed: bool,
    hide: bool = True,
) -> None:
    """Takes the rows of some keys away and adds others, in one commit.

    Parameters
    ----------
    found : Files
        The table at a version.
    version : int
        That version.
    gone_or_set : pyarrow.Table
        The keys, each once.
    keys : list of str
        The columns that make the key; none: every row is meant.
    come : pyarrow.Table
        New rows, in the table's types.
    txn, said : dict, str
        The transaction and the text of the commit.
    feed : bool
        Whether the table has a change feed.
    hide : bool
        Whether it may have deletion vectors; else files are written again.

    Raises
    ------
    UnusualError
        When only Spark can do it; nothing was done.
    TakenError
        When another commit came first; nothing was done.
    """
    folder = found.folder
    taken = _sought(found, gone_or_set, keys, come.schema)
    adds = log.files(folder, version)
    by_path = {history.file_path(folder, add): add for add in adds.values()}
    if len(by_path) != found.actions.num_rows:
        raise UnusualError("the log has other files")
    actions: list[Action] = [{"txn": txn}]
    pieces = [come]
    for path in pc.unique(taken.files).to_pylist():
        add = by_path[path]
        here = pc.equal(taken.files, path)
        places = taken.places.filter(here).to_numpy()
        hidden = np.union1d(places, hidden_rows(found, path))
        rows = int(pq.read_metadata(path).num_rows)
        actions.append(written.removed(add))
        if len(hidden) == rows:
            continue
        if not hide and add["size"] > _LARGE:
            raise UnusualError("a large file would be written again")
        if not hide or add["size"] <= (_LARGE if len(hidden) > _MUCH * rows else _SMALL):
            pieces.append(remaining(path, hidden, come.schema))
        elif "numRecords" not in (add.get("stats") or ""):
            raise UnusualError("a file without its number of rows")
        else:
            actions.append(written.hidden(add, vectors.vector(folder, hidden)))
    new = pa.concat_tables(pieces)
    if new.num_rows:
        actions.append(written.data_file(folder, new))
    if feed and taken.rows.num_rows:
        actions.append(written.change_file(folder, taken.rows, come))
    try:
        log.commit(folder, version + 1, {"operation": "MERGE", "userMetadata": said}, actions)
    except (log.TakenError, UnusualError):
        discard(folder, actions)
        raise
    _make_checkpoint(folder, version + 1)


def _make_checkpoint(folder: str, version: int) -> None:
    """Now and then a checkpoint; it saves readers time, and the commit is there without it."""
    if version % _CHECKPOINT:
        return
    try:
        # the sum that Spark left of its own last one would be wrong, and cost its readers seconds
        Path(folder, "_delta_log", "._last_checkpoint.crc").unlink(missing_ok=True)
        DeltaTable(folder).create_checkpoint()
    except (OSError, DeltaError) as error:
        _LOG.warning("%s has no checkpoint: %s", folder, error)


def appended(folder: str, version: int, come: pa.Table, txn: Action, said: str) -> None:
    """Adds rows to a table without partitions, in one commit.

    Raises
    ------
    TakenError
        When another commit came first; nothing was done.
    """
    actions: list[Action] = [{"txn": txn}]
    if come.num_rows:
        actions.append(written.data_file(folder, come))
    info = {"operation": "WRITE", "userMetadata": said, "isBlindAppend": True}
    try:
        log.commit(folder, version + 1, info, actions)
    except (log.TakenError, UnusualError):
        discard(folder, actions)
        raise
    _make_checkpoint(folder, version + 1)


def discard(folder: str, actions: list[Action]) -> None:
    """Deletes the files that were written for a commit that is not."""
    for action in actions:
        for kind, body in action.items():
            new = kind == "cdc" or (kind == "add" and "deletionVector" not in body)
            if new and os.path.exists(path := history.file_path(folder, body)):
                os.unlink(path)


def remaining(path: str, hidden: np.ndarray[Any, Any], schema: pa.Schema) -> pa.Table:
    """The rows of a file that are not hidden, in a table's types."""
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    there = np.ones(file.metadata.num_rows, dtype=np.bool_)
    there[hidden] = False
    held = set(file.schema_arrow.names)
    arrow.check_case(held, schema.names)
    rows = file.read(columns=[n for n in schema.names if n in held]).filter(pa.array(there))
    return _typed(rows, schema)


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in a table's types; a column that came later is NULL in old files."""
    held = set(rows.schema.names)
    try:
        columns = [
            rows.column(f.name).cast(f.type) if f.name in held else pa.nulls(rows.num_rows, f.type)
            for f in schema
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnusualError(str(error)) from error
    return pa.table(columns, schema=schema)


def hidden_rows(found: Files, path: str) -> np.ndarray[Any, Any]:
    """The places of the rows that a file's deletion vector hides already."""
    kept = found.kept.get(path)
    return np.array([], dtype=np.int64) if kept is None else np.flatnonzero(~kept)


def _sought(found: Files, wanted: pa.Table, keys: list[str], schema: pa.Schema) -> Found:
    """The rows of a table that have a wanted key, as far as they are not hidden."""
    values = {name: wanted.column(name).combine_chunks() for name in keys}
    paths = lookup.paths_of(found, lookup.files_with(found, values))
    if not wanted.num_rows or not paths:
        nothing = pa.chunked_array([pa.array([], pa.string())])
        return Found(nothing, pa.chunked_array([pa.array([], pa.int64())]), schema.empty_table())
    if not all(lookup.is_usual(p) for p in paths):
        raise UnusualError("another calendar")
    if any(name.lower() in (FILE, ROW) for name in schema.names):
        raise UnusualError("a column has a name that DuckDB uses")
    whole = all(lookup.can_read(found.fields[name]) for name in schema.names)
    columns = list(schema.names) if whole else keys
    times = {name for name in keys if "timestamp" in found.fields[name].dataType.typeName()}
    placed = _places(paths, columns, wanted, {name: name in times for name in keys})
    rows = vectors.without_deleted(placed, found.kept)
    full = rows.select(columns) if whole else _fetched(rows, schema)
    return Found(rows.column(FILE), rows.column(ROW), _typed(full, schema))


def _places(
    paths: list[str], columns: list[str], wanted: pa.Table, keys: dict[str, bool]
) -> pa.Table:
    """Some columns of the rows with a wanted key, with their file and place, in this order.

    Of the keys it is known whether they are times: DuckDB gives these a zone or not, as the file
    has them, and would compare them by its own clock.
    """
    names = ", ".join(f"t.{lookup.quoted(c)}" for c in [*columns, FILE, ROW])
    forms = [
        ("epoch_us(" if time else "(") + "{0}." + f"{lookup.quoted(k)})" for k, time in keys.items()
    ]
    for i, key in enumerate(keys):  # statistics of files leave out NaN, and DuckDB trusts them
        if pa.types.is_floating(wanted.schema.field(key).type):
            forms[i] = f"CASE WHEN {forms[i]} IS NULL THEN NULL ELSE {forms[i]} END"
    same = " AND ".join(f"{f.format('t')} IS NOT DISTINCT FROM {f.format('s')}" for f in forms)
    options = f"union_by_name = {len(paths) > 1}, hive_partitioning = false"
    options += ", filename = true, file_row_number = true"
    text = f"SELECT {names} FROM read_parquet($1, {options}) t"
    text += f" SEMI JOIN sought s ON {same}" if keys else ""
    duck = lookup.connection()
    duck.register("sought", wanted.select(list(keys)) if keys else wanted)
    try:
        return duck.sql(f"{text} ORDER BY {FILE}, {ROW}", params=[paths]).to_arrow_table()
    except duckdb.Error as error:
        raise UnusualError(str(error)) from error
    finally:
        duck.unregister("sought")


def _fetched(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The whole rows at places, where DuckDB does not read every type as Spark does."""
    pieces = []
    for path in pc.unique(rows.column(FILE)).to_pylist():
        places = rows.column(ROW).filter(pc.equal(rows.column(FILE), path)).to_numpy()
        file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
        hidden = np.setdiff1d(np.arange(file.metadata.num_rows), places)
        pieces.append(remaining(path, hidden, schema))
    return pa.concat_tables(pieces) if pieces else schema.empty_table()
