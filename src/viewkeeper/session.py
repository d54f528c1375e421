"""Sessions: a local Spark with Delta over a folder, which is its catalog too.

The tables of the lake are the folders below it that hold a Delta log. The session's own catalog is
in memory; before each use it is brought up to what the folder holds, so any number of processes,
one after another or at once, see the same tables and views.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from viewkeeper.catalog import register, set_kind
from viewkeeper.errors import ViewKeeperError
from viewkeeper.jars import delta_session
from viewkeeper.lake.sources import quoted
from viewkeeper.records import SessionError


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


def local_session(path: str | os.PathLike[str], config: dict[str, str] | None = None) -> Any:
    """A local Spark session whose warehouse is the folder."""
    _need_java()
    lake = Path(path).expanduser().resolve()
    if lake.exists() and not lake.is_dir():
        raise SessionError(f"{path} is not a folder", hint="Give the folder of the lake.")
    lake.mkdir(parents=True, exist_ok=True)
    active = SparkSession.getActiveSession()
    if active is not None and active.conf.get(_LAKE, None) != str(lake):
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


def lake_of(spark: Any) -> Path | None:
    """The folder of a session made by ``connect``; None for the user's own session."""
    found = spark.conf.get(_LAKE, None)
    return Path(found) if found else None


def sync(spark: Any, lake: Path) -> None:
    """Brings the session's catalog up to the folder: tables that came, tables that went."""
    here = _tables(lake)
    if _SYNCED.get(str(lake)) == (spark.sparkContext.applicationId, here):
        return
    known = _known(spark)
    for (schema, table), folder in here.items():
        if (schema, table) not in known:
            if schema != "default":
                spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
            register(spark, schema, table, folder)
    for (schema, table), place_ in known.items():
        if place_ is not None and (schema, table) not in here and lake in place_.parents:
            set_kind(spark, schema, table, "EXTERNAL")  # another process may be making a new one
            spark.sql(f"DROP TABLE IF EXISTS {quoted(schema)}.{quoted(table)}")
    _SYNCED[str(lake)] = (spark.sparkContext.applicationId, here)


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
    """The tables in the session's catalog; None as the folder of a view."""
    catalog = spark._jsparkSession.sessionState().catalog()
    found: dict[tuple[str, str], Path | None] = {}
    schemas = catalog.listDatabases()
    for i in range(schemas.size()):
        schema = schemas.apply(i)
        names = catalog.externalCatalog().listTables(schema)
        for j in range(names.size()):
            table = catalog.externalCatalog().getTable(schema, names.apply(j))
            uri = table.storage().locationUri()
            folder = Path(uri.get().getPath()) if uri.isDefined() else None
            found[schema.lower(), names.apply(j).lower()] = folder
    return found


def check_classic(spark: Any) -> None:
    """Raises where the session cannot show its plans."""
    if not hasattr(spark, "_jsparkSession"):
        raise SessionError(
            "a Spark Connect session cannot show the plans of its queries",
            hint="Use a classic session, on the driver: SparkSession.builder.getOrCreate().",
        )
    extensions = spark.conf.get("spark.sql.extensions", "") or ""
    if "DeltaSparkSessionExtension" not in extensions:
        raise SessionError(
            "this session has no Delta Lake",
            hint="Set spark.sql.extensions and spark.sql.catalog.spark_catalog for Delta, "
            "or use viewkeeper.connect(path).",
        )


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") or (f"{home}/bin/java" if home else None)
    try:
        assert java is not None
        subprocess.run([java, "-version"], capture_output=True, check=True)
    except (AssertionError, OSError, subprocess.CalledProcessError):
        raise JavaMissingError(
            "Spark needs Java 17, and no java was found",
            hint="Install it (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install"
            " openjdk@17), or set JAVA_HOME.",
        ) from None
