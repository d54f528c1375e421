"""SELECTs as sqlglot's syntax trees: what of them does not depend on the rest of the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlglot import exp

from viewkeeper.algebra.sql_names import column_of, identifier
from viewkeeper.algebra.sql_scalars import constant_sql

UNIT = "_unit"  # the column of a query without columns, which SQL does not have
Columns = Callable[[int], exp.Expr]  # by position


class Source(NamedTuple):
    """Something to select from, and the SELECT's condition if it was folded in."""

    relation: exp.Expr
    names: tuple[str, ...]
    where: exp.Expr | None = None


def columns_of(alias: str, names: tuple[str, ...]) -> Columns:
    """The columns of a source.

    >>> columns_of("s", ("a", "b"))(1).sql()
    's.b'
    """
    return lambda i: column_of(alias, names[i])


def columns_of_both(left: tuple[str, ...], right: tuple[str, ...]) -> Columns:
    """The columns in a join's condition: the left source is l, the right one r.

    >>> columns_of_both(("a", "b"), ("c",))(2).sql()
    'r.c'
    """
    n = len(left)
    return lambda i: column_of("l", left[i]) if i < n else column_of("r", right[i - n])


def renamed(tree: exp.Expr, name: str) -> exp.Expr:
    """An item of a SELECT under a name; a column that has it stays as it is.

    >>> renamed(column_of("s", "a"), "a").sql(), renamed(column_of("s", "a"), "b").sql()
    ('s.a', 's.a AS b')
    """
    same = isinstance(tree, exp.Column) and tree.name == name
    return tree if same else exp.alias_(tree, identifier(name))


def all_of(alias: str, source: Source, new: tuple[str, ...]) -> list[exp.Expr]:
    """The columns of a source, under new names where these differ.

    >>> [item.sql() for item in all_of("s", Source(exp.to_table("R"), ("a", "b")), ("a", "c"))]
    ['s.a', 's.b AS c']
    """
    return [renamed(column_of(alias, o), n) for o, n in zip(source.names, new, strict=False)]


def select(items: list[exp.Expr], source: Source) -> exp.Select:
    """SELECT items FROM source WHERE its condition.

    >>> select([column_of("R", "a")], Source(exp.to_table("R"), ("a",))).sql()
    'SELECT R.a FROM R'
    """
    tree = exp.Select(expressions=items or [unit()])
    tree.set("from_", exp.From(this=source.relation))
    if source.where is not None:
        tree.set("where", exp.Where(this=source.where))
    return tree


def unit() -> exp.Expr:
    """The item of a SELECT without columns.

    >>> unit().sql()
    '1 AS _unit'
    """
    return exp.alias_(exp.Literal.number(1), UNIT)


def nothing(names: tuple[str, ...]) -> exp.Select:
    """No rows.

    >>> nothing(("a",)).sql()
    'SELECT NULL AS a WHERE FALSE'
    """
    nulls: list[exp.Expr] = [exp.alias_(exp.Null(), identifier(n)) for n in names]
    return exp.Select(expressions=nulls or [unit()]).where(exp.Boolean(this=False))


def literal(rows: tuple[tuple[Any, ...], ...], names: tuple[str, ...]) -> exp.Select:
    """The rows of a literal.

    >>> literal(((1, "x"), (2, None)), ("a", "b")).sql()
    "SELECT s.a, s.b FROM (VALUES (1, 'x'), (2, NULL)) AS s(a, b)"
    """
    if not rows:
        return nothing(names)
    tuples = [exp.Tuple(expressions=[constant_sql(v) for v in row or (1,)]) for row in rows]
    columns = [identifier(n) for n in names or (UNIT,)]
    alias = exp.TableAlias(this=exp.to_identifier("s"), columns=columns)
    values = exp.Values(expressions=tuples, alias=alias)
    return select([column_of("s", n) for n in names], Source(values, names))


def netted(source: Source, names: tuple[str, ...], *, spark: bool) -> exp.Select:
    """Rows of s as often as their weights, in the last column, add up to: grouped, then repeated.

    >>> source = Source(exp.to_table("s"), ("a", "w"))
    >>> print(netted(source, ("a",), spark=False).sql(pretty=True))
    SELECT
      n.a
    FROM (
      SELECT
        s.a AS a,
        CAST(SUM(s.w) AS BIGINT) AS _times
      FROM s
      GROUP BY
        s.a
      HAVING
        SUM(s.w) > 0
    ) AS n
    CROSS JOIN UNNEST(RANGE(n._times)) AS u(_time)
    """
    *own, weight = source.names
    by = [column_of("s", n) for n in own]
    total = exp.cast(exp.Sum(this=column_of("s", weight)), "BIGINT")
    items = [exp.alias_(c, identifier(n)) for c, n in zip(by, names, strict=True)]
    grouped = select([*items, exp.alias_(total, "_times")], source)
    if by:
        grouped = grouped.group_by(*(c.copy() for c in by), copy=False)
    positive = exp.GT(this=exp.Sum(this=column_of("s", weight)), expression=exp.Literal.number(0))
    grouped = grouped.having(positive, copy=False)
    rows = exp.Subquery(this=grouped, alias=exp.TableAlias(this=exp.to_identifier("n")))
    tree = select([column_of("n", n) for n in names], Source(rows, names))
    times = column_of("n", "_times")
    alias = exp.TableAlias(this=exp.to_identifier("u"), columns=[exp.to_identifier("_time")])
    if spark:
        sequence = exp.Anonymous(this="SEQUENCE", expressions=[exp.Literal.number(1), times])
        tree.set("laterals", [exp.Lateral(this=exp.Explode(this=sequence), view=True, alias=alias)])
        return tree
    counted = exp.Anonymous(this="RANGE", expressions=[times])
    unnest = exp.Unnest(expressions=[counted], alias=alias)
    tree.set("joins", [exp.Join(this=unnest, kind="CROSS")])
    return tree
