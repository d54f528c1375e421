"""What Spark says when it cannot compute a view's query, as an error of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.lake import jvm
from viewkeeper.records import QueryFailedError

T = TypeVar("T")

# Spark took a table for small enough to send to all tasks, and it was not.
_TOO_LARGE = re.compile(r"build and broadcast|[Cc]annot broadcast the table|execute broadcast in")
_NO_BROADCASTS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}


@contextmanager
def computing(label: str, then: str) -> Iterator[None]:
    """Turns errors of Spark inside the block into one of ours, about the view of this label.

    Parameters
    ----------
    label : str
        The view.
    then : str
        What has become of it.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if not _of_spark(error):
            raise
        raise QueryFailedError(
            f"Spark cannot compute {label} from the rows that there are: {reason(error)}",
            hint=f"{then} Change these rows, the query, or the setting that Spark names.",
        ) from error


def with_room(spark: SparkSession, run: Callable[[SparkSession], T]) -> T:
    """What ``run`` gives; and if Spark has no room for a table that it would broadcast, what it
    gives without such joins, which are slower and need no room.

    Examples
    --------
    >>> with_room(spark, lambda s: s.sql("SELECT 1").first()[0])              # doctest: +SKIP
    1
    """
    try:
        return run(spark)
    except (PySparkException, Py4JJavaError) as error:
        if not _TOO_LARGE.search(reason(error)):
            raise
    assert spark._jvm is not None
    spark._jvm.System.gc()  # the tables that were broadcast before go with their last reference
    with jvm.own_session(spark, _NO_BROADCASTS) as other:
        return run(other)


def _of_spark(error: Exception) -> bool:
    """Whether Spark has failed. A call into the JVM fails for other reasons too, and they stay."""
    if isinstance(error, PySparkException):
        return True
    java: Any = getattr(error, "java_exception", None)
    return java is not None and java.getClass().getName().startswith("org.apache.spark.Spark")


def reason(error: Exception) -> str:
    """The first cause, in one line: a job fails because a task fails because a value is wrong.

    >>> reason(PySparkException("[DIVIDE_BY_ZERO] Division by zero.\\nmore"))
    '[DIVIDE_BY_ZERO] Division by zero.'
    """
    found = str(error)
    java: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while java is not None:
        text = java.getMessage()
        if text and (text.startswith("[") or not found.startswith("[")):
            found = str(text)
        java = java.getCause()
    lines = [line.strip() for line in found.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
