"""The commits of a Delta table, read from its log as plain data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

from viewkeeper.lake import jvm, tips
from viewkeeper.lake.errors import LostHistoryError
from viewkeeper.lake.sources import Source

Action = dict[str, Any]
_FINGERPRINTS: dict[tuple[str, int, tips.Mark | None], str] = {}
_MOST_FINGERPRINTS = 4096


@dataclass(frozen=True)
class Commit:
    """One version's actions: files added and removed, change files, metadata, transactions.

    Examples
    --------
    >>> commit = parse(3, '{"add": {"path": "a"}}\\n{"txn": {"appId": "v", "version": 2}}')
    >>> commit.adds, commit.transaction("v"), commit.transaction("w")
    ([{'path': 'a'}], 2, -1)
    """

    version: int
    actions: tuple[tuple[str, Action], ...]

    def of(self, kind: str) -> list[Action]:
        """The actions of one kind."""
        return [action for k, action in self.actions if k == kind]

    @property
    def adds(self) -> list[Action]:
        """Files added."""
        return self.of("add")

    @property
    def removes(self) -> list[Action]:
        """Files removed."""
        return self.of("remove")

    @property
    def metadata(self) -> Action | None:
        """The table's metadata, when this commit sets it."""
        found = self.of("metaData")
        return found[-1] if found else None

    @property
    def user_metadata(self) -> str | None:
        """The text that the writer left with the commit."""
        for info in self.of("commitInfo"):
            text = info.get("userMetadata")
            if isinstance(text, str):
                return text
        return None

    def transaction(self, app_id: str) -> int:
        """The application's transaction number in this commit, -1 when it has none."""
        return max((t["version"] for t in self.of("txn") if t["appId"] == app_id), default=-1)


def parse(version: int, text: str) -> Commit:
    """Read the text of a commit: one JSON action per line."""
    lines = (json.loads(line) for line in text.split("\n") if line.strip())
    return Commit(version, tuple((kind, body) for line in lines for kind, body in line.items()))


def commit(spark: SparkSession, source: Source, version: int) -> Commit | None:
    """One commit, None when the log does not hold it (any more)."""
    text = commit_text(spark, source, version)
    return None if text is None else parse(version, text)


def commit_text(spark: SparkSession, source: Source, version: int) -> str | None:
    """The same as it stands in the log."""
    folder = source.local_path
    if folder is None:
        return jvm.commit_text(spark, source.location, version)
    try:
        with open(f"{folder}/_delta_log/{version:020d}.json", encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def fingerprint(spark: SparkSession, source: Source, version: int) -> str | None:
    """What tells a commit from any other that ever has its number; None if it is not in the log.

    A table that was copied back from elsewhere has the same id, and other commits from then on.
    """
    folder = source.local_path
    mark = None if folder is None else tips.mark_of(folder, version)
    key = source.location, version, mark
    if key not in _FINGERPRINTS:
        if folder is not None and mark is None:
            return None
        text = commit_text(spark, source, version)
        if text is None:
            return None
        while len(_FINGERPRINTS) >= _MOST_FINGERPRINTS:
            _FINGERPRINTS.pop(next(iter(_FINGERPRINTS)), None)
        _FINGERPRINTS[key] = sha256(text.encode()).hexdigest()[:16]
    return _FINGERPRINTS[key]


def between(spark: SparkSession, source: Source, since: int, until: int) -> list[Commit]:
    """The commits of versions since+1 to until; LostHistoryError when one is gone."""
    found = []
    for version in range(since + 1, until + 1):
        one = commit(spark, source, version)
        if one is None:
            raise LostHistoryError(source.name, f"version {version} was cleaned from the log")
        found.append(one)
    return found


def backwards(spark: SparkSession, source: Source, newest: int) -> Iterator[Commit]:
    """The commits from the newest to the oldest that the log holds."""
    for version in range(newest, -1, -1):
        one = commit(spark, source, version)
        if one is None:
            return
        yield one


def file_key(action: Action) -> tuple[str, str]:
    """What makes a file with its deletion vector one thing: the path and the vector's place."""
    vector = action.get("deletionVector")
    if not vector:
        return action["path"], ""
    return action[
        "path"
    ], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def net_files(actions: Iterable[tuple[int, Action]]) -> tuple[list[Action], list[Action]]:
    """The files left over when adds (+1) and removes (-1) of the same file cancel.

    A file stands in a list once for each time it is left over: it may have been added, removed by
    a commit whose change files were read instead, and restored.

    Examples
    --------
    >>> a, b = {"path": "a"}, {"path": "b"}
    >>> net_files([(1, a), (1, b), (-1, a)])
    ([{'path': 'b'}], [])
    """
    sums: dict[tuple[str, str], int] = {}
    seen: dict[tuple[str, str], Action] = {}
    for sign, action in actions:
        key = file_key(action)
        sums[key] = sums.get(key, 0) + sign
        seen[key] = action
    added = [seen[key] for key, n in sums.items() for _ in range(n)]
    removed = [seen[key] for key, n in sums.items() for _ in range(-n)]
    return added, removed


def file_path(folder: str, action: Action) -> str:
    """Where a file of a local table is; the log has its path URL-encoded.

    Examples
    --------
    >>> file_path("/data/t", {"path": "p=a%20b/x.parquet"})
    '/data/t/p=a b/x.parquet'
    """
    path = unquote(action["path"])
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return os.path.join(folder, path)


def row_count(action: Action) -> int | None:
    """The rows of a file, without those that its deletion vector hides; None if its statistics do
    not tell.

    >>> row_count({"stats": '{"numRecords": 5}', "deletionVector": {"cardinality": 2}})
    3
    """
    written = json.loads(action.get("stats") or "{}").get("numRecords")
    if written is None:
        return None
    return int(written) - int((action.get("deletionVector") or {}).get("cardinality", 0))


def as_add(action: Action, blank: Action) -> str:
    """An add or a remove as the JSON of an add; ``blank`` has NULL for each partition column.

    Examples
    --------
    >>> as_add({"path": "a", "size": 5, "deletionTimestamp": 1}, {"p": None})
    '{"add": {"path": "a", "partitionValues": {"p": null}, "size": 5, "modificationTime": 0, \
"dataChange": true}}'
    """
    add: Action = {
        "path": action["path"],
        "partitionValues": {**blank, **(action.get("partitionValues") or {})},
        "size": action["size"],
        "modificationTime": action.get("modificationTime", 0),
        "dataChange": True,
    }
    for key in ("deletionVector", "baseRowId", "defaultRowCommitVersion"):
        if action.get(key) is not None:
            add[key] = action[key]
    return json.dumps({"add": add})


def signed_files(commits: Iterable[Commit]) -> Iterator[tuple[int, Action]]:
    """Adds and removes that change data; a rewrite such as OPTIMIZE does not."""
    for one in commits:
        for sign, files in ((1, one.adds), (-1, one.removes)):
            yield from ((sign, file) for file in files if file.get("dataChange", True))


def only_rewritten(commits: list[Commit]) -> bool:
    """Whether commits moved rows to other files and did nothing else.

    >>> moved = parse(1, '{"add": {"path": "a", "dataChange": false}}')
    >>> only_rewritten([moved]), only_rewritten([])
    (True, False)
    """
    kinds = {kind for one in commits for kind, _ in one.actions}
    files = [a for one in commits for a in (*one.adds, *one.removes)]
    return (
        bool(commits)
        and kinds <= {"commitInfo", "add", "remove"}
        and not any(a.get("dataChange", True) for a in files)
    )
