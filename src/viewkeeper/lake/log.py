"""The files of a local table as its log has them, each with all that is said of it.

A commit that hides rows of a file, or rewrites it, must repeat what the log says of that file. The
log is read from its last checkpoint once; from then on each new commit is added to what is known.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.lake import history, tips
from viewkeeper.lake.arrow import UnusualError
from viewkeeper.lake.history import Action

_MOST_KNOWN = 256  # tables
_LOCK = threading.Lock()


class TakenError(Exception):
    """Another commit has the version."""


@dataclass(frozen=True)
class _Known:
    version: int
    mark: tips.Mark
    files: Mapping[str, Action]


_KNOWN: dict[str, _Known] = {}


def files(folder: str, version: int) -> Mapping[str, Action]:
    """The files of a version: the path in the log, and the ``add`` that stands there.

    Raises
    ------
    UnusualError
        When the log has another form than the usual one.
    """
    known = _KNOWN.get(folder)
    if known and (known.version > version or tips.mark_of(folder, known.version) != known.mark):
        known = None
    if known is None:
        start, found = _checkpoint(folder, version)
    else:
        start, found = known.version, dict(known.files)
    for number in range(start + 1, version + 1):
        try:
            with open(_path(folder, number), encoding="utf-8") as file:
                _replay(found, history.parse(number, file.read()))
        except FileNotFoundError as error:
            raise UnusualError(f"version {number} is not in the log") from error
    mark = tips.mark_of(folder, version)
    if mark is not None:
        with _LOCK:
            while len(_KNOWN) >= _MOST_KNOWN and folder not in _KNOWN:
                del _KNOWN[next(iter(_KNOWN))]
            _KNOWN[folder] = _Known(version, mark, found)
    return found


def commit(folder: str, version: int, info: Action, actions: Iterable[Action]) -> None:
    """Writes a commit under its number, which no other may have.

    Parameters
    ----------
    folder : str
        The table.
    version : int
        The number; the actions were made for the version before.
    info : dict
        What the commit says of itself.
    actions : iterable of dict
        ``add``, ``remove``, ``cdc`` and ``txn``.

    Raises
    ------
    TakenError
        When there is a commit of this number.
    UnusualError
        When the file system does not allow it; nothing was done.
    """
    said = {
        "timestamp": int(time.time() * 1000),
        "engineInfo": "viewkeeper",
        "readVersion": version - 1,
        "isBlindAppend": False,
        **info,
    }
    lines = [json.dumps(line, separators=(",", ":")) for line in ({"commitInfo": said}, *actions)]
    aside = f"{folder}/_delta_log/.{uuid.uuid4().hex}.tmp"
    try:
        with open(aside, "x", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, _path(folder, version))
    except FileExistsError as error:
        raise TakenError(f"another commit has version {version}") from error
    except OSError as error:  # a file system without links, for one
        raise UnusualError(f"the commit cannot be linked into the log: {error}") from error
    finally:
        if os.path.exists(aside):
            os.unlink(aside)


def _replay(found: dict[str, Action], one: history.Commit) -> None:
    """Removes come first: a file that gets another deletion vector is removed and added."""
    for action in one.removes:
        there = found.get(action["path"])
        if there is not None and history.file_key(there) == history.file_key(action):
            del found[action["path"]]
    for action in one.adds:
        found[action["path"]] = action


def _checkpoint(folder: str, version: int) -> tuple[int, dict[str, Action]]:
    """The newest checkpoint that is not after a version, and its files."""
    try:
        with open(f"{folder}/_delta_log/_last_checkpoint", encoding="utf-8") as file:
            last = json.load(file)
    except FileNotFoundError:
        return -1, {}
    number = int(last["version"])
    if number > version or last.get("parts") or last.get("v2Checkpoint"):
        raise UnusualError("a checkpoint of another form, or a later one")
    try:
        read = pq.read_table(f"{folder}/_delta_log/{number:020d}.checkpoint.parquet")
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise UnusualError("no such checkpoint") from error
    if "sidecar" in read.schema.names and read.column("sidecar").null_count < read.num_rows:
        raise UnusualError("a checkpoint of another form")
    adds = read.column("add").filter(read.column("add").is_valid()).to_pylist()
    return number, {add["path"]: _plain(add) for add in adds}


def _plain(add: Action) -> Action:
    """An ``add`` of a checkpoint as a commit has it: maps as objects, nothing that is not there.

    >>> _plain({"path": "a", "partitionValues": [("p", "1")], "tags": None})
    {'path': 'a', 'partitionValues': {'p': '1'}}
    """
    kept: dict[str, Any] = {k: v for k, v in add.items() if v is not None}
    for name in ("partitionValues", "tags"):
        if isinstance(kept.get(name), list):
            kept[name] = dict(kept[name])
    vector = kept.get("deletionVector")
    if vector is not None:
        kept["deletionVector"] = {k: v for k, v in vector.items() if v is not None}
    kept.pop("stats_parsed", None)
    kept.pop("partitionValues_parsed", None)
    return kept


def _path(folder: str, version: int) -> str:
    return f"{folder}/_delta_log/{version:020d}.json"
