"""Deletion vectors: the rows of a file that a table no longer has, by their place in the file."""

from __future__ import annotations

import base64
import os
import uuid
import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyroaring import BitMap64

Kept = Mapping[str, "np.ndarray[Any, np.dtype[np.bool_]]"]  # by the path of a file

FILE, ROW = "filename", "file_row_number"  # as DuckDB names them
_MAGIC = (1681511377).to_bytes(4, "little")  # of a bitmap in Delta's form
_MOST_INLINE = 4096  # bytes of a vector that stands in the log itself
_Z85 = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)


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


def hidden_places(kept: Kept) -> pa.Table:
    """The files and places of all rows that are hidden.

    >>> hidden_places({"f": np.array([True, False])}).to_pylist()
    [{'filename': 'f', 'file_row_number': 1}]
    """
    files, places = [], []
    for path, flags in kept.items():
        gone = np.flatnonzero(~flags)
        files.append(pa.repeat(pa.scalar(path), len(gone)))
        places.append(pa.array(gone, pa.int64()))
    columns = [pa.chunked_array(files, pa.string()), pa.chunked_array(places, pa.int64())]
    return pa.table(columns, names=[FILE, ROW])


def vector(folder: str, places: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The deletion vector that hides the rows at some places of a file, as the log has it.

    A large one is written to a file of its own.

    >>> vector("", np.array([3, 5]))["cardinality"]
    2
    """
    data = _MAGIC + BitMap64(places.tolist()).serialize()
    found: dict[str, Any] = {"sizeInBytes": len(data), "cardinality": len(places)}
    if len(data) <= _MOST_INLINE:
        return {"storageType": "i", "pathOrInlineDv": _text(data), **found}
    name = uuid.uuid4()
    with open(f"{folder}/deletion_vector_{name}.bin", "xb") as file:
        size, sum_ = len(data).to_bytes(4, "big"), zlib.crc32(data).to_bytes(4, "big")
        file.write(b"\x01" + size + data + sum_)
        file.flush()
        os.fsync(file.fileno())
    return {"storageType": "u", "pathOrInlineDv": _text(name.bytes), "offset": 1, **found}


def _text(data: bytes) -> str:
    """Bytes in the letters of Z85, filled up with zeros."""
    return base64.b85encode(data + b"\0" * (-len(data) % 4)).translate(_Z85).decode()
