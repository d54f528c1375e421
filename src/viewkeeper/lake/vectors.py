"""Deletion vectors: the rows of a file that a table no longer has, by their place in the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

Kept = Mapping[str, "np.ndarray[Any, np.dtype[np.bool_]]"]  # by the path of a file

FILE, ROW = "filename", "file_row_number"  # as DuckDB names them


def kept_rows(table: DeltaTable) -> Kept:
    """For each file that has a deletion vector, which of its rows are still there."""
    found: dict[str, np.ndarray[Any, np.dtype[np.bool_]]] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        masks = batch.column("selection_vector")
        for i, uri in enumerate(batch.column("filepath").to_pylist()):
            flags = masks[i].values.to_numpy(zero_copy_only=False)
            found[unquote(urlsplit(uri).path)] = flags.astype(np.bool_)
    return found


def without_deleted(rows: pa.Table, kept: Kept) -> pa.Table:
    """The rows that are still there; they have the columns of their file and place.

    A row beyond the end of a vector is there.

    >>> rows = pa.table({"a": [5, 6, 7], FILE: ["f", "f", "g"], ROW: [0, 1, 1]})
    >>> without_deleted(rows, {"f": np.array([False])}).column("a").to_pylist()
    [6, 7]
    """
    there = np.ones(rows.num_rows, dtype=np.bool_)
    files = rows.column(FILE).combine_chunks()
    places = rows.column(ROW).to_numpy()
    for path in pc.unique(files).to_pylist():
        flags = kept.get(path)
        if flags is not None:
            here = pc.equal(files, path).to_numpy(zero_copy_only=False)
            at = places[here]
            short = np.minimum(at, len(flags) - 1)
            there[here] = np.where(at < len(flags), flags[short] if len(flags) else True, True)
    return rows.filter(pa.array(there))
