"""What the frontend hands on: a query of the algebra, its sources, and what was found about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra.nodes import Query, Table
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.walk import tables
from viewkeeper.errors import ViewKeeperError


class NotAQueryError(ViewKeeperError):
    """A statement that does something, where a query was expected."""

    code = "NOT_A_QUERY"


class DuplicateOutputColumnError(ViewKeeperError):
    """A query with two output columns of one name, which no table can hold."""

    code = "DUPLICATE_OUTPUT_COLUMN"


@dataclass(frozen=True)
class SourceRef:
    """A table that a query reads.

    ``parts`` is the full name, such as ``("spark_catalog", "default", "t")``; it is empty where
    the table is known by its ``path`` only. ``sql`` is the name as it stands in SQL text.

    >>> SourceRef(("spark_catalog", "default", "t"), "delta").sql
    '`spark_catalog`.`default`.`t`'
    >>> SourceRef((), "delta", "/data/t").sql
    'delta.`/data/t`'
    """

    parts: tuple[str, ...]
    provider: str
    path: str | None = None
    # an empty relation that stood for the table when the query was read
    stand_in: str | None = field(default=None, compare=False)

    @property
    def sql(self) -> str:
        if self.parts:
            return ".".join(quoted(p) for p in self.parts)
        return f"{self.provider}.{quoted(self.path or '')}"

    @property
    def name(self) -> str:
        """The name of the leaf in the algebra: as short as is still unique."""
        return ".".join(self.parts) if self.parts else self.sql


def quoted(name: str) -> str:
    """A name in backquotes.

    >>> quoted("my table")
    '`my table`'
    """
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Definition:
    """A view's query, read from Spark.

    Attributes
    ----------
    query : Query or None
        The query in the algebra; None where ``unsupported`` tells why there is none.
    sources : mapping of str to SourceRef
        The tables read, by the name of their leaf.
    schema : StructType
        The output columns.
    volatile : str or None
        What makes the result depend on more than the sources: the time, the session, chance.
    unsupported : str or None
        What has no translation.
    notes : tuple of str
        What makes the result depend on the order of rows, which Spark does not promise.
    unstable : str or None
        What may give other rows when it is computed again over the same ones.
    stands_for : tuple of str
        The texts of the views and SQL functions that the query uses, which may be redefined.
    complete : bool
        Whether ``sources`` and ``stands_for`` have all that the result depends on, but for what
        makes it volatile.
    of_session : bool
        Whether the query reads a temporary view, which other sessions do not have.
    """

    query: Query | None
    sources: Mapping[str, SourceRef]
    schema: Any
    volatile: str | None = None
    unsupported: str | None = None
    notes: tuple[str, ...] = ()
    unstable: str | None = None
    stands_for: tuple[str, ...] = ()
    complete: bool = True
    of_session: bool = False

    def to_sql(self) -> str:
        """The query as Spark SQL text, over the full names of its sources."""
        assert self.query is not None, self.unsupported
        return to_sql(self.query, tables=self.leaf_names())

    def as_read(self) -> str:
        """The same over the relations that it was read over."""
        assert self.query is not None, self.unsupported
        names = self.leaf_names()
        given = {leaf: self.sources[leaf.name].stand_in for leaf in tables(self.query)}
        return to_sql(self.query, tables={leaf: given[leaf] or names[leaf] for leaf in given})

    def leaf_names(self) -> dict[Query, str]:
        """The SQL name of each leaf of the query."""
        leaves: list[Table] = tables(self.query) if self.query is not None else []
        return {leaf: self.sources[leaf.name].sql for leaf in leaves}
