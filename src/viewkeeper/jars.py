"""Delta Lake's Java libraries: those Ivy fetched once are used again without asking Ivy.

Asking Ivy at every start costs seconds, prints a page, and needs the network now and then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

_SCALA = "2.13"
_USED = {"compile", "runtime", "default", "*"}


def delta_session(builder: Any) -> Any:
    """Starts a session with Delta Lake, or gives the one that there is.

    If an earlier start left all the jars in Ivy's cache they are put on the class path; if one is
    missing, or the caller asks for more packages, Ivy resolves and fetches them as ever. Of
    processes that start at once on a new machine one fetches and the others wait: Ivy lets them
    write over each other's files.

    Parameters
    ----------
    builder : SparkSession.Builder
        With all other settings made.

    Examples
    --------
    >>> spark = delta_session(SparkSession.builder)                       # doctest: +SKIP
    """
    options: Mapping[str, str] = getattr(builder, "_options", {})
    asked = [p for p in str(options.get("spark.jars.packages", "")).split(",") if p]
    home = _ivy(options.get("spark.jars.ivy"))
    with _alone(home):
        jars = None if asked else cached_jars(home)
        if jars is None:
            from delta import configure_spark_with_delta_pip

            return configure_spark_with_delta_pip(builder, extra_packages=asked).getOrCreate()
    for key in ("spark.driver.extraClassPath", "spark.executor.extraClassPath"):
        path = [*jars, *filter(None, [options.get(key)])]
        builder = builder.config(key, os.pathsep.join(path))
    return builder.getOrCreate()


def _ivy(given: str | None) -> Path:
    return Path(given) if given else Path.home() / ".ivy2.5.2"


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Until the block ends, other processes wait here; not where there can be no such lock."""
    with ExitStack() as held:
        with suppress(ImportError, OSError):
            import fcntl

            home.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(open(home / "viewkeeper.lock", "w"))
            fcntl.flock(file, fcntl.LOCK_EX)  # closing it gives it back, and so does a crash
        yield


def cached_jars(home: Path) -> list[str] | None:
    """The files of Delta Lake and of what it needs beyond Spark; None if one is not there."""
    from importlib.metadata import version

    from pyspark.find_spark_home import _find_spark_home

    spark = version("pyspark").split(".")
    artifact = f"delta-spark_{spark[0]}.{spark[1]}_{_SCALA}"
    there = {_artifact(p.name) for p in (Path(_find_spark_home()) / "jars").glob("*.jar")}
    return _closure(home, ("io.delta", artifact, version("delta-spark")), there)


def _closure(home: Path, root: tuple[str, str, str], there: set[str]) -> list[str] | None:
    """The jars of a module and of all it needs, but for those that are there already."""
    found: dict[str, str] = {}
    todo = [root]
    while todo:
        org, name, rev = todo.pop(0)
        if name in found or name in there:
            continue
        jar = home / "jars" / f"{org}_{name}-{rev}.jar"
        described = home / "cache" / org / name / f"ivy-{rev}.xml"
        if not described.is_file() and found:
            continue  # another module excludes it: Ivy describes all that it resolves
        if not (described.is_file() and jar.is_file()):
            return None
        found[name] = str(jar)
        todo += _needs(described)
    return list(found.values())


def _needs(described: Path) -> list[tuple[str, str, str]]:
    """What a module needs when it runs, by Ivy's description of it."""
    found = []
    for d in ElementTree.parse(described).getroot().iterfind("dependencies/dependency"):
        scopes = {part.split("->")[0] for part in d.get("conf", "default").split(";")}
        if any(_USED & set(scope.split(",")) for scope in scopes):
            found.append((d.get("org", ""), d.get("name", ""), d.get("rev", "")))
    return found


def _artifact(file: str) -> str:
    """The name of a jar without its version.

    >>> _artifact("jackson-core-2.21.2.jar"), _artifact("scala-library-2.13.18.jar")
    ('jackson-core', 'scala-library')
    """
    return re.sub(r"-\d[^-]*(-[A-Za-z0-9.]+)?\.jar$", "", file)
