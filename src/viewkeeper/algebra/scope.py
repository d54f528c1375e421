"""Names: which columns a query has, and which of them a name in an expression means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from viewkeeper.algebra.lexer import Token
from viewkeeper.algebra.scalars import Col
from viewkeeper.errors import (
    AmbiguousColumnError,
    NotationError,
    UnknownColumnError,
    suggestion,
)


class Column(NamedTuple):
    """A column's name, and the table it was read from where that is known."""

    name: str
    table: str | None = None


Columns = tuple[Column, ...]


class Scope(NamedTuple):
    """The columns an expression may name: one input's, or left then right of a join."""

    columns: Columns
    split: int | None = None  # how many are the left side's, in a join condition

    def find(self, name: Token, qualifier: Token | None, text: str) -> Col:
        """The column meant by ``name`` or ``qualifier.name``.

        >>> s = Scope((Column("a", "R"), Column("b", "R"), Column("a", "S")), split=2)
        >>> [s.describe(i) for i in range(3)]
        ['left.a', 'b', 'right.a']
        """
        found = [i for i, c in enumerate(self.columns) if c.name == name.text]
        if qualifier is not None:
            found = [i for i in found if self._qualified(i, qualifier.text)]
        if len(found) == 1:
            return Col(found[0])
        start = qualifier.start if qualifier else name.start
        span = (start, name.stop)
        full = f"{qualifier.text}.{name.text}" if qualifier else name.text
        if found:
            ways = ", ".join(self.describe(i) for i in found)
            raise AmbiguousColumnError(
                f"{full!r} may mean {len(found)} columns",
                text=text,
                span=span,
                hint=f"Write one of {ways}, or rename a column before joining.",
            )
        known = [self.describe(i) for i in range(len(self.columns))]
        raise UnknownColumnError(
            f"no column {full!r} here", text=text, span=span, hint=suggestion(full, known)
        )

    def _qualified(self, index: int, qualifier: str) -> bool:
        if self.split is not None and qualifier in ("left", "right"):
            return (index < self.split) == (qualifier == "left")
        return self.columns[index].table == qualifier

    def describe(self, index: int) -> str:
        """The shortest text that means this column alone: name, left.name, table.name or #3."""
        column = self.columns[index]
        name = quote(column.name)
        same = [i for i, c in enumerate(self.columns) if c.name == column.name]
        if len(same) == 1:
            return name
        if self.split is not None:
            left = index < self.split
            if sum((i < self.split) == left for i in same) == 1:
                return f"{'left' if left else 'right'}.{name}"
        if column.table and sum(self.columns[i].table == column.table for i in same) == 1:
            return f"{quote(column.table)}.{name}"
        return f"#{index}"


A_QUERY = "Make one with table(…), literal(…) or parse(…)."


def expect(value: Any, kind: type | tuple[type, ...], what: str, hint: str = "") -> None:
    """An error of ours where the user gave a value of another kind.

    >>> expect("a > 1", str, "the condition")
    """
    if not isinstance(value, kind):
        given = f"{value!r}"[:40]
        name = getattr(kind, "__name__", "")
        raise NotationError(
            f"{what} is {given}, of type {type(value).__name__}",
            hint=hint or f"Give {_KINDS.get(name, name)}.",
        )


_KINDS = {"str": "text", "Mapping": "a dict", "Iterable": "a list", "Sequence": "a list"}


def column_names(given: Any, what: str) -> tuple[str, ...]:
    """Names that the user gave, as a tuple."""
    expect(given, Sequence, what)
    for name in given:
        expect(name, str, f"a name in {what}")
    return tuple(given)


KEYWORDS = frozenset(
    "and or not in is null between like case when then else end true false as distinct from min max"
    " let left right".split()
)


def quote(name: str) -> str:
    """A name as it stands in notation: in backticks unless it is a plain word.

    >>> quote("a"), quote("my column"), quote("case")
    ('a', '`my column`', '`case`')
    """
    plain = name.isidentifier() and name[0] not in "σΠεΓφΔ" and name.lower() not in KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"
