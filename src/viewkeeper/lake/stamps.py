"""What each commit of ours carries: the transaction, and what it says of itself."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from pyspark.sql import SparkSession

from viewkeeper.lake import history, jvm
from viewkeeper.lake.open_tables import open_native
from viewkeeper.lake.sources import Source, version

_MARK = "viewkeeper"


@dataclass(frozen=True)
class Stamp:
    """What each commit carries: the transaction and the metadata."""

    app_id: str
    txn: int
    metadata: dict[str, Any]

    @property
    def text(self) -> str:
        """The metadata as the commit holds it."""
        return stamp_text(self.metadata)

    @property
    def action(self) -> dict[str, Any]:
        """The transaction as the log has it."""
        return {"appId": self.app_id, "version": self.txn, "lastUpdated": int(time.time() * 1000)}

    @property
    def properties(self) -> CommitProperties:
        """The same for deltalake; a commit that comes second fails instead of trying again."""
        return CommitProperties(
            custom_metadata={"userMetadata": self.text},
            app_transactions=[Transaction(self.app_id, self.txn)],
            max_commit_retries=0,
        )


def stamp_text(metadata: dict[str, Any]) -> str:
    """The metadata as text that we know as ours.

    Examples
    --------
    >>> read_stamp(stamp_text({"a": 1}))
    {'a': 1}
    >>> read_stamp("somebody else's") is None
    True
    """
    return json.dumps({_MARK: metadata}, sort_keys=True)


def read_stamp(text: str | None) -> dict[str, Any] | None:
    """The metadata in a commit's text, None when the text is not ours."""
    try:
        found = json.loads(text or "null")
    except ValueError:
        return None
    ours = found.get(_MARK) if isinstance(found, dict) else None
    return ours if isinstance(ours, dict) else None


def last_transaction(spark: SparkSession, source: Source, app_id: str) -> int:
    """The newest transaction number of an application in a store, -1 when there is none."""
    if source.local_path is not None:
        found = open_native(source).transaction_version(app_id)
        return -1 if found is None else int(found)
    known = jvm.newest(spark, source.location).transactions().get(app_id)
    return int(known.get()) if known.isDefined() else -1


def version_of(spark: SparkSession, source: Source, stamp: Stamp) -> int:
    """The newest version whose commit has this transaction or a later one."""
    newest = version(spark, source)
    for one in history.backwards(spark, source, newest):
        if one.transaction(stamp.app_id) >= stamp.txn:
            return one.version
    return newest


def has(table: DeltaTable, stamp: Stamp) -> bool:
    """Whether the very version that a commit will build on has the transaction already.

    Each lane asks again: another refresher may have committed since ``apply`` asked, and then
    there is no conflict for deltalake to see.
    """
    found = table.transaction_version(stamp.app_id)
    return found is not None and found >= stamp.txn
