"""Sessions: a local Spark with Delta over a folder, which is its catalog too.

The tables of the lake are the folders below it that hold a Delta log. The session's own catalog is
in memory; before each use it is brought up to what the folder holds, so any number of processes,
one after another or at once, see the same tables and views.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark import SparkContext
from pyspark.sql import SparkSession

from viewkeeper.catalog import delta_folder, register, set_kind
from viewkeeper.entries import Entries
from viewkeeper.errors import ViewKeeperError
from viewkeeper.jars import delta_session
from viewkeeper.lake.sources import quoted
from viewkeeper.records import InvalidOptionError, SessionError


class JavaMissingError(ViewKeeperError):
    """Spark needs Java, and none was found."""

    code = "JAVA_MISSING"


DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "viewkeeper",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
    "spark.databricks.delta.retentionDurationCheck.enabled": "true",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
}
_LAKE = "spark.viewkeeper.lake"
_SYNCED: dict[str, Any] = {}  # by lake, what the catalog was last brought up to
_ENTRIES: dict[tuple[str, Path], Entries] = {}  # by session and lake


def local_session(path: str | os.PathLike[str], config: dict[str, str] | None = None) -> Any:
    """A local Spark session whose warehouse is the folder."""
    need_java()
    lake = _folder(path)
    if not isinstance(config or {}, dict):
        raise InvalidOptionError(
            f"{config!r} is no configuration", hint="Give a dict of Spark settings."
        )
    running = SparkContext._active_spark_context  # a thread of its own sees no active session
    if running is not None and running.getConf().get(_LAKE) != str(lake):
        raise SessionError(
            "this process has a Spark session already, for another purpose",
            hint="Stop it first, or use viewkeeper.Keeper(spark) on that session.",
        )
    settings = DEFAULTS | {"spark.sql.warehouse.dir": str(lake), _LAKE: str(lake)}
    settings |= config or {}
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = delta_session(builder)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _folder(path: str | os.PathLike[str]) -> Path:
    """The folder of a lake, made if it is not there.

    >>> _folder("")
    Traceback (most recent call last):
    viewkeeper.records.SessionError: [NO_SESSION] '' cannot be the folder of a lake: it is no path
    Give a folder that can be written.
    """
    try:
        if not str(os.fspath(path)).strip():
            raise ValueError("it is no path")
        lake = Path(path).expanduser().resolve()
        if lake.exists() and not lake.is_dir():
            raise ValueError("it is not a folder")
        lake.mkdir(parents=True, exist_ok=True)
    except (TypeError, ValueError, OSError, RuntimeError) as e:
        raise SessionError(
            f"{path!r} cannot be the folder of a lake: {e}",
            hint="Give a folder that can be written.",
        ) from e
    return lake


def lake_of(spark: Any) -> Path | None:
    """The folder of a session made by ``connect``; None for the user's own session."""
    found = spark.conf.get(_LAKE, None)
    return Path(found) if found else None


def keep(spark: Any, lake: Path) -> None:
    """Writes into the folder what only the session's catalog holds: views, functions, tables that
    are not Delta's, or are elsewhere."""
    _entries(spark, lake).keep()


def keep_at_end(spark: Any, lake: Path) -> None:
    """The same, as far as Spark can still be asked."""
    _entries(spark, lake).keep_at_end()


def _entries(spark: Any, lake: Path) -> Entries:
    key = spark.sparkContext.applicationId, lake
    if key not in _ENTRIES:
        _ENTRIES[key] = Entries(spark, lake)
        atexit.register(_ENTRIES[key].keep_at_end)  # a process may end without ``stop``
    return _ENTRIES[key]


def sync(spark: Any, lake: Path) -> None:
    """Brings the session's catalog up to the folder: tables that came, tables that went."""
    _sync_tables(spark, lake)
    _entries(spark, lake).load()


def _sync_tables(spark: Any, lake: Path) -> None:
    schemas, here = _schemas(lake), _tables(lake)
    if _SYNCED.get(str(lake)) == (spark.sparkContext.applicationId, schemas, here):
        return
    known = _known(spark)
    for schema in schemas:  # those without a table, too
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
    for (schema, table), folder in here.items():
        if (schema, table) not in known:
            register(spark, schema, table, folder)
    for (schema, table), place_ in known.items():
        if place_ is not None and (schema, table) not in here and lake in place_.parents:
            set_kind(spark, schema, table, "EXTERNAL")  # another process may be making a new one
            spark.sql(f"DROP TABLE IF EXISTS {quoted(schema)}.{quoted(table)}")
    _SYNCED[str(lake)] = (spark.sparkContext.applicationId, schemas, here)


def _schemas(lake: Path) -> set[str]:
    """The schemas that have a folder."""
    return {entry.stem.lower() for entry in _folders(lake) if entry.suffix == ".db"}


def _tables(lake: Path) -> dict[tuple[str, str], Path]:
    """The Delta tables below the folder: schema and name to folder."""
    found: dict[tuple[str, str], Path] = {}
    for entry in _folders(lake):
        if entry.suffix == ".db":
            for table in _folders(entry):
                if _has_log(table):
                    found[entry.stem.lower(), table.name.lower()] = table
        elif _has_log(entry):
            found["default", entry.name.lower()] = entry
    return found


def _has_log(table: Path) -> bool:
    """Is a commit in the log? A process killed before its first one leaves a log without any."""
    try:
        with os.scandir(table / "_delta_log") as entries:
            return any(not entry.name.startswith(".") and entry.is_file() for entry in entries)
    except OSError:
        return False


def _folders(path: Path) -> list[Path]:
    with os.scandir(path) as entries:
        return [Path(e.path) for e in entries if e.is_dir()]


def _known(spark: Any) -> dict[tuple[str, str], Path | None]:
    """The tables in the session's catalog; None as the folder of all that are not Delta's."""
    catalog = spark._jsparkSession.sessionState().catalog()
    found: dict[tuple[str, str], Path | None] = {}
    schemas = catalog.listDatabases()
    for i in range(schemas.size()):
        schema = schemas.apply(i)
        names = catalog.externalCatalog().listTables(schema)
        for j in range(names.size()):
            table = catalog.externalCatalog().getTable(schema, names.apply(j))
            found[schema.lower(), names.apply(j).lower()] = delta_folder(table)
    return found


def check_classic(spark: Any) -> None:
    """Raises where the session cannot show its plans."""
    if not hasattr(spark, "_jsparkSession"):
        raise SessionError(
            "a Spark Connect session cannot show the plans of its queries",
            hint="Use a classic session, on the driver: SparkSession.builder.getOrCreate().",
        )
    if spark.sparkContext._jsc is None:
        raise SessionError("this Spark session has ended", hint="Start another one.")
    extensions = spark.conf.get("spark.sql.extensions", "") or ""
    catalog = spark.conf.get("spark.sql.catalog.spark_catalog", "") or ""
    if "DeltaSparkSessionExtension" not in extensions or not catalog:
        raise SessionError(
            "this session has no Delta Lake",
            hint="Set spark.sql.extensions and spark.sql.catalog.spark_catalog for Delta, "
            "or use viewkeeper.connect(path).",
        )
    if isinstance(spark._jvm.org.apache.spark.sql.delta.DeltaLog, JavaPackage):
        raise SessionError(
            "this session is set up for Delta Lake and has not its jars",
            hint="Start Spark with them: delta.configure_spark_with_delta_pip(builder), "
            "or use viewkeeper.connect(path).",
        )


def java_command() -> str | None:
    """The java that Spark will use: of JAVA_HOME, or else the first one on the path."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java")


def need_java() -> None:
    home, java = os.environ.get("JAVA_HOME"), java_command()
    try:
        assert java is not None
        subprocess.run([java, "-version"], capture_output=True, check=True)
    except (AssertionError, OSError, subprocess.CalledProcessError):
        where = f"JAVA_HOME is {home}, where there is none" if home else "no java was found"
        raise JavaMissingError(
            f"Spark needs Java 17, and {where}",
            hint="Install it (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install"
            " openjdk@17), or set JAVA_HOME.",
        ) from None
