"""A translated plan: a query of the algebra, and which Catalyst column stands at each position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.nodes import Project, Query
from viewkeeper.algebra.scalars import Col, Scalar
from viewkeeper.frontend.jvm import expr_id


@dataclass(frozen=True)
class Frame:
    """A query and the Catalyst numbers of its columns; a column no one reads has the number -1."""

    query: Query
    ids: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(self.ids) == self.query.arity

    @property
    def columns(self) -> dict[int, int]:
        """The position of each Catalyst column; the first, where one column is there twice."""
        found: dict[int, int] = {}
        for position, number in enumerate(self.ids):
            found.setdefault(number, position)
        return found

    def beside(self, other: Frame) -> tuple[int, ...]:
        """The numbers of the columns of a join: left, then right."""
        return self.ids + other.ids

    def exactly(self, attributes: list[Any]) -> Query:
        """The query with just these columns, in this order, under their names."""
        columns = self.columns
        positions = [columns[expr_id(a)] for a in attributes]
        return project(self.query, [Col(p) for p in positions], [str(a.name()) for a in attributes])


def project(query: Query, items: list[Scalar], names: list[str]) -> Query:
    """Π[items AS names](query), or the query itself where that changes nothing."""
    same = [Col(i) for i in range(query.arity)] == items and list(query.columns) == names
    return query if same else Project(query, tuple(items), tuple(names))
