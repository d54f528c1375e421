"""Examines the machine, the lake and every view, and says what to do about what is wrong."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from viewkeeper.errors import ViewKeeperError

_JAVA = 17
_WANTED = {"pyspark": "4.2", "delta-spark": "4.4", "deltalake": "1.", "pyarrow": "", "pandas": "2."}


@dataclass(frozen=True)
class Check:
    """One thing that was examined; ``state`` is "good", "odd" (works, could be better) or "bad".

    Examples
    --------
    >>> print(Check("Java", "bad", "version 11", "Install Java 17."))
    bad   Java: version 11
          Install Java 17.
    """

    what: str
    state: str
    found: str
    hint: str = ""

    def __str__(self) -> str:
        line = f"{self.state:<5} {self.what}: {self.found}"
        return f"{line}\n      {self.hint}" if self.hint else line


def healthy(checks: list[Check]) -> bool:
    """Is nothing bad?"""
    return all(check.state != "bad" for check in checks)


# ── without Spark ──


def machine() -> list[Check]:
    """Java, and the packages."""
    return [_java(), *(_package(name, wanted) for name, wanted in _WANTED.items())]


def _java() -> Check:
    from viewkeeper.session import JavaMissingError, java_command, need_java

    try:
        need_java()
    except JavaMissingError as e:
        return Check("Java", "bad", "not found", e.hint)
    command = [java_command() or "java", "-version"]
    return java_check(subprocess.run(command, capture_output=True, text=True).stderr)


def java_check(said: str) -> Check:
    """What ``java -version`` said.

    >>> print(java_check('openjdk version "17.0.15" 2025-04-15'))
    good  Java: 17.0.15
    >>> java_check('java version "1.8.0_392"').state
    'bad'
    """
    match = re.search(r'version "([^"]+)"', said)
    if match is None:
        return Check("Java", "odd", "of an unknown version", f"Spark needs Java {_JAVA}.")
    number = match[1]
    parts = re.findall(r"\d+", number)
    major = int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0])
    if major < _JAVA:
        return Check(
            "Java", "bad", number, f"Spark needs Java {_JAVA}: install it, or set JAVA_HOME."
        )
    return Check("Java", "good", number)


def _package(name: str, wanted: str) -> Check:
    try:
        found = version(name)
    except PackageNotFoundError:
        return Check(name, "bad", "not installed", f"pip install {name}")
    if not found.startswith(wanted):
        hint = f"viewkeeper is tested with {wanted.rstrip('.')}: pip install '{name}=={wanted}*'"
        return Check(name, "odd", found, hint.replace("..*", ".*"))
    return Check(name, "good", found)


def folder(path: str) -> list[Check]:
    """The lake's folder: is it there, can we write to it?"""
    lake = Path(path).expanduser()
    if not lake.is_dir():
        hint = "Check --lake; viewkeeper create or sql makes a new one."
        return [Check("lake", "bad", f"{path} is not a folder", hint)]
    try:
        with tempfile.NamedTemporaryFile(dir=lake, prefix=".viewkeeper"):
            pass
    except OSError as e:
        return [Check("lake", "bad", f"{path} cannot be written: {e}", "Change its permissions.")]
    return [Check("lake", "good", f"{path} can be written")]


# ── with Spark ──


def lake(keeper: Any, *, fix: bool, verify: bool, older_than: int = 600) -> list[Check]:
    """The registry and the history, each view with its sources, and stores that no view has.

    Parameters
    ----------
    keeper : Keeper
    fix : bool
        Drop the stores that no view has.
    verify : bool
        Compute each view's query at the versions of its last refresh, and compare as bags.
    older_than : int
        Only stores of so many seconds: a younger one may belong to a view in the making.
    """
    found = [_home(keeper, "views"), _home(keeper, "history")]
    if not healthy(found):
        return found
    for view in keeper.views():
        found += _view(keeper, view)
        if verify:
            found.append(_verified(keeper, view))
    return found + orphans(keeper, fix=fix, older_than=older_than)


def _home(keeper: Any, name: str) -> Check:
    from viewkeeper.lake.sources import find

    table = f"{keeper._home.schema}.`{name}`"
    try:
        find(keeper.spark, table)
        rows = keeper.spark.table(table).count()
    except ViewKeeperError:
        return Check(f"table {name}", "good", "not yet made")
    except Exception as e:
        return Check(f"table {name}", "bad", f"cannot be read: {str(e).splitlines()[0]}")
    return Check(f"table {name}", "good", f"{rows:,} rows")


def _view(keeper: Any, view: Any) -> list[Check]:
    """Can the view be read, are its sources there, and do they tell what changes?"""
    from viewkeeper.lake import stores
    from viewkeeper.lake.sources import find

    try:
        _, meta = stores.last_metadata(keeper.spark, find(keeper.spark, view.record.store))
        keeper.spark.table(view.record.name)
    except Exception as e:
        what = e.what if isinstance(e, ViewKeeperError) else str(e).splitlines()[0]
        hint = f"Drop the view {view} and create it again."
        return [Check(f"view {view}", "bad", f"its rows cannot be read: {what}", hint)]
    found = []
    for source in meta.get("sources", {}).values():
        check = _source(keeper, view, source["name"])
        found += [check] if check else []
    return found or [Check(f"view {view}", "good", "its sources are there, with their change feed")]


def _source(keeper: Any, view: Any, name: str) -> Check | None:
    from viewkeeper.lake import jvm
    from viewkeeper.lake.sources import find

    try:
        source = find(keeper.spark, name)
    except ViewKeeperError:
        hint = "Restore the table, or drop the view; the view's rows are as they were."
        return Check(f"view {view}", "bad", f"its source {name} is gone", hint)
    settings = jvm.newest(keeper.spark, source.location).metadata().configuration()
    feed = settings.get("delta.enableChangeDataFeed")
    if feed.isDefined() and str(feed.get()).lower() == "true":
        return None
    hint = f"ALTER TABLE {name} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    found = f"its source {name} has no change feed: changed files are compared instead"
    return Check(f"view {view}", "odd", found, hint)


def orphans(keeper: Any, *, fix: bool, older_than: int = 600) -> list[Check]:
    """Stores that no view has: a process ended between the making of a store and its entry."""
    from viewkeeper.lake import jvm, stores
    from viewkeeper.lake.sources import find, quoted

    schema, spark = keeper._home.schema, keeper.spark
    used = {view.record.store for view in keeper.views()}
    try:
        rows = spark.sql(f"SHOW TABLES IN {schema} LIKE 'store_*'").collect()
    except Exception:  # the schema is not yet made
        rows = []
    found = []
    for row in rows:
        name = f"{schema}.{quoted(row['tableName'])}"
        if name in used:
            continue
        store = find(spark, name)
        age = time.time() - jvm.newest(spark, store.location).timestamp() / 1000
        if age < older_than:
            found.append(Check("store", "odd", f"{name} is {age:.0f} s old and no view has it yet"))
        elif fix:
            stores.drop(spark, store)
            found.append(Check("store", "good", f"{name}, which no view had, was dropped"))
        else:
            hint = "Drop it: viewkeeper doctor --fix."
            found.append(Check("store", "odd", f"no view has {name}", hint))
    return found or [Check("stores", "good", "each belongs to a view")]


def _verified(keeper: Any, view: Any) -> Check:
    from viewkeeper.cli_verify import NotComparableError, compare_view

    what = f"view {view}"
    try:
        missing, extra = compare_view(keeper, view.record)
    except NotComparableError as e:
        return Check(what, "odd", f"not compared: {e.what}", e.hint)
    except ViewKeeperError as e:
        return Check(what, "odd", f"not compared: {e.what}", e.hint)
    if missing or extra:
        found = f"differs from its query: {missing:,} rows are missing, {extra:,} are too many"
        return Check(what, "bad", found, f"viewkeeper refresh {view} --full")
    return Check(what, "good", "equals its query at the versions of its last refresh")
