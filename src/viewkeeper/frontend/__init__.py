"""SQL text or a DataFrame, by way of Spark's own analysis, into the algebra.

Reading order: ``reader`` (the door), ``definition`` (what comes out), ``jvm`` (the way into
Catalyst), ``plans`` (one case per operator) with ``leaves``, ``groups``, ``subqueries`` and
``frames``, then ``expressions``, ``engine_text``, ``functions``, ``windows`` and ``text``.
``volatile`` is apart.
"""

from viewkeeper.frontend.definition import (
    Definition,
    DuplicateOutputColumnError,
    NotAQueryError,
    SourceRef,
)
from viewkeeper.frontend.reader import read

__all__ = [
    "Definition",
    "DuplicateOutputColumnError",
    "NotAQueryError",
    "SourceRef",
    "read",
]
