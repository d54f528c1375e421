"""Queries as SQL text: changes are queries in the user's own language, as the papers have it.

The text is built as sqlglot's syntax tree. Shared parts of the query become common table
expressions q1, q2, …; σ and Π over one input become one SELECT. Columns with equal names are
numbered (a, a_2), as SQL needs names where the algebra has positions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from viewkeeper.algebra.nodes import (
    ADDED,
    REMOVED,
    SIGNED,
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Left,
    Literal,
    Max,
    Min,
    Monus,
    Net,
    Node,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Table,
    Top,
    Unnest,
    Window,
    children,
)
from viewkeeper.algebra.orders import plain_order
from viewkeeper.algebra.pool import assert_never
from viewkeeper.algebra.repeats import counted
from viewkeeper.algebra.scalars import Opaque, Scalar
from viewkeeper.algebra.scope import A_QUERY, expect
from viewkeeper.algebra.sql_names import column_of, identifier, unique_names
from viewkeeper.algebra.sql_scalars import agg_sql, opaque_text, scalar_sql
from viewkeeper.algebra.sql_selects import (
    UNIT,
    Source,
    all_of,
    columns_of,
    columns_of_both,
    literal,
    netted,
    nothing,
    renamed,
    select,
    unit,
)
from viewkeeper.algebra.walk import postorder
from viewkeeper.errors import NotationError, UnsupportedScalarError

_DEEPEST = 6  # subqueries inside one another before a part gets a name


def to_sql(
    query: Query,
    dialect: str = "spark",
    *,
    tables: Mapping[Query, str] | None = None,
    small: Collection[Query] = (),
) -> str:
    """The query as SQL text.

    Parameters
    ----------
    query : Query
    dialect : str
        A dialect of sqlglot: "spark" (the default), "duckdb", "postgres", …
    tables : mapping of leaf to str, optional
        The SQL name of a leaf; by default the name in the notation: R, `∇R`, `ΔR`, `R@old`.
    small : collection of nodes, optional
        Inputs of joins that Spark shall broadcast.

    Examples
    --------
    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a", "b"]), al.table("S", ["a", "b"])
    >>> print(al.to_sql(R.select("a > 1").project(["a"]).distinct()))
    SELECT DISTINCT s.a FROM R AS s WHERE s.a > 1
    >>> print(al.to_sql(R - S))
    (SELECT s.a, s.b FROM R AS s) EXCEPT ALL (SELECT s.a, s.b FROM S AS s)
    """
    expect(query, Node, "the query", A_QUERY)
    expect(dialect, str, "the dialect")
    try:
        Dialect.get_or_raise(dialect)
    except ValueError as e:
        raise NotationError(f"no SQL dialect {dialect!r}", hint=str(e)) from None
    return _Writer(dialect, tables or {}, small).write(query)


class _Writer:
    def __init__(
        self, dialect: str, tables: Mapping[Query, str], small: Collection[Query] = ()
    ) -> None:
        self.dialect = dialect
        self.tables = tables
        self.small = small
        self.spark = dialect in ("spark", "databricks", "spark2", "hive")
        self.named: dict[Query, str] = {}
        self.made: dict[Query, exp.Expr] = {}

    def write(self, query: Query) -> str:
        order = postorder(query)
        shared = self.shared(query, order)
        prefix = self.prefix(order)
        ctes: list[exp.CTE] = []
        for q in order:
            if isinstance(q, Table):
                continue
            tree = self.query(q)
            if q in shared:
                name = f"{prefix}{len(ctes) + 1}"
                alias = exp.TableAlias(this=exp.to_identifier(name))
                ctes.append(exp.CTE(this=tree, alias=alias))
                self.named[q] = name
            else:
                self.made[q] = tree
        if query in self.named:  # cannot be: the root is never named
            raise AssertionError
        root = self.made[query] if query in self.made else self.query(query)
        if ctes:
            root.set("with_", exp.With(expressions=ctes))
        return root.sql(dialect=self.dialect)

    def prefix(self, order: list[Query]) -> str:
        """What the names of shared parts begin with: not as a table's name does."""
        names = [self.table_name(q).strip('`"').lower() for q in order if isinstance(q, Table)]
        prefix = "q"
        while any(re.fullmatch(rf"{prefix}\d+", n) for n in names):
            prefix = f"_{prefix}"
        return prefix

    def shared(self, root: Query, order: list[Query]) -> set[Query]:
        """The nodes that get a name: used more than once, or too deep inside."""
        uses: Counter[Query] = Counter()
        for q in order:
            uses.update(children(q))
            if isinstance(q, Max):
                uses[q.s] += 1  # S ⊎ (T ∸ S) reads S twice
        chosen: set[Query] = set()
        depth: dict[Query, int] = {}
        for q in order:
            depth[q] = 1 + max((depth[c] for c in children(q)), default=0)
            inner = not isinstance(q, Table) and q is not root
            if inner and (uses[q] > 1 or depth[q] >= _DEEPEST):
                chosen.add(q)
                depth[q] = 0
        return chosen

    # ── sources ──

    def source(self, q: Query, alias: str, fold: bool = False) -> Source:
        """The node as something to select from under an alias; σ may be folded into the SELECT."""
        names = unique_names(q.columns) or (UNIT,)
        as_alias = exp.TableAlias(this=exp.to_identifier(alias))
        if isinstance(q, Table):
            table = exp.to_table(self.table_name(q), dialect=self.dialect)
            table.set("alias", as_alias)
            return Source(table, unique_names(q.columns))
        if q in self.named:
            reference = exp.Table(this=exp.to_identifier(self.named[q]), alias=as_alias)
            return Source(reference, names)
        if fold and isinstance(q, Select):
            below = self.source(q.s, alias)
            where = self.scalar(q.predicate, columns_of(alias, below.names))
            return below._replace(where=where)
        return Source(exp.Subquery(this=self.made[q], alias=as_alias), names)

    def table_name(self, q: Table) -> str:
        if q in self.tables:
            return self.tables[q]
        name = q.state + q.name if q.state in (REMOVED, ADDED, SIGNED) else q.name + q.state
        return exp.Table(this=identifier(name)).sql(dialect=self.dialect)

    def scalar(self, e: Scalar, name: Any) -> exp.Expr:
        return scalar_sql(e, name, self.dialect)

    # ── queries ──

    def operand(self, q: Query) -> exp.Expr:
        """The node as a side of UNION ALL, EXCEPT ALL or INTERSECT ALL."""
        if q in self.made:
            return exp.Subquery(this=self.made[q].copy())
        source = self.source(q, "s")
        items = all_of("s", source, source.names)
        return exp.Subquery(this=select(items, source))

    def rows_of(self, q: Query) -> exp.Expr:
        """An operand that may have its rows more often: how often is not asked."""
        return self.operand(q.s if isinstance(q, Distinct) and q not in self.named else q)

    def query(self, q: Query) -> exp.Expr:
        names = unique_names(q.columns)
        match q:
            case Table() | Select():
                source = self.source(q, "s", fold=True)
                return select(all_of("s", source, names), source)
            case Empty():
                return nothing(names)
            case Literal(_, rows):
                return literal(rows, names)
            case Project(s, items, _):
                source = self.source(s, "s", fold=s not in self.named)
                column = columns_of("s", source.names)
                new = zip(items, names, strict=True)
                return select([renamed(self.scalar(i, column), n) for i, n in new], source)
            case Plus(s, t):
                return exp.Union(this=self.operand(s), expression=self.operand(t), distinct=False)
            case Monus(Distinct() as s, t):  # ε(S) ∸ T has a row of S once, if T has it not
                return exp.Except(this=self.rows_of(s), expression=self.rows_of(t))
            case Monus(s, t):
                return exp.Except(this=self.operand(s), expression=self.operand(t), distinct=False)
            case Min(Distinct() as s, t) | Min(s, Distinct() as t):  # once, if both have it
                return exp.Intersect(this=self.rows_of(s), expression=self.rows_of(t))
            case Min(s, t):
                return exp.Intersect(
                    this=self.operand(s), expression=self.operand(t), distinct=False
                )
            case Max(s, t):  # S ⊎ (T ∸ S)
                more = exp.Except(this=self.operand(t), expression=self.operand(s), distinct=False)
                return exp.Union(
                    this=self.operand(s), expression=exp.Subquery(this=more), distinct=False
                )
            case Distinct(s):
                return self.distinct(s, names)
            case Product() | Join() | Left() | Right() | Full():
                return self.joined(q, names)
            case Semi() | Anti():
                return self.partnered(q, names)
            case GroupBy(_, (), (), _):  # one row, whatever S is
                return exp.Select(expressions=[unit()])
            case GroupBy(s, keys, aggs, _):
                source = self.source(s, "s", fold=s not in self.named)
                column = columns_of("s", source.names)
                by = [column(k) for k in keys]
                items_ = [
                    exp.alias_(column(k), identifier(n)) for k, n in zip(keys, names, strict=False)
                ]
                items_ += [
                    exp.alias_(agg_sql(a, column, self.dialect), identifier(n))
                    for a, n in zip(aggs, names[len(keys) :], strict=True)
                ]
                tree = select(list(items_), source)
                return tree.group_by(*by, copy=False) if by else tree
            case Unnest() | Window() | Top():
                return self.engine(q, names)
            case Net(s):
                return netted(self.source(s, "s"), names, spark=self.spark)
            case _:
                assert_never(q)

    def distinct(self, s: Query, names: tuple[str, ...]) -> exp.Expr:
        if isinstance(s, Project) and s in self.made:
            tree = self.made[s].copy()
        else:
            source = self.source(s, "s", fold=s not in self.named)
            tree = select(all_of("s", source, names), source)
        tree.set("distinct", exp.Distinct())
        return tree

    def joined(self, q: Product | Join | Left | Right | Full, names: tuple[str, ...]) -> exp.Expr:
        left, right = self.source(q.s, "l"), self.source(q.t, "r")
        column = columns_of_both(left.names[: q.s.arity], right.names[: q.t.arity])
        tree = select([renamed(column(i), name) for i, name in enumerate(names)], left)
        join = exp.Join(this=right.relation)
        if isinstance(q, Product):
            join.set("kind", "CROSS")
        else:
            side = {Left: "LEFT", Right: "RIGHT", Full: "FULL"}.get(type(q))
            if side:
                join.set("side", side)
            join.set("on", self.scalar(q.on, column))
        tree.set("joins", [join])
        if isinstance(q, (Product, Join)):
            self.broadcast(tree, "l" if q.s in self.small else "r" if q.t in self.small else "")
        elif isinstance(q, Left) and q.t in self.small:
            self.broadcast(tree, "r")
        return tree

    def broadcast(self, tree: exp.Select, alias: str) -> None:
        if alias and self.spark:
            hint = exp.Anonymous(this="BROADCAST", expressions=[exp.to_identifier(alias)])
            tree.set("hint", exp.Hint(expressions=[hint]))

    def partnered(self, q: Semi | Anti, names: tuple[str, ...]) -> exp.Expr:
        left, right = self.source(q.s, "l"), self.source(q.t, "r")
        column = columns_of_both(left.names[: q.s.arity], right.names[: q.t.arity])
        on = self.scalar(q.on, column)
        tree = select(all_of("l", left, names), left)
        kind = "SEMI" if isinstance(q, Semi) else "ANTI"
        if self.spark:
            join = exp.Join(this=right.relation, side="LEFT", kind=kind, on=on)
            tree.set("joins", [join])
            if q.t in self.small:
                self.broadcast(tree, "r")
            return tree
        inner = select([exp.Literal.number(1)], right._replace(where=on))
        exists: exp.Expr = exp.Exists(this=inner)
        if isinstance(q, Anti):
            exists = exp.Not(this=exists)
        tree.set("where", exp.Where(this=exists))
        return tree

    def engine(self, q: Unnest | Window | Top, names: tuple[str, ...]) -> exp.Expr:
        plain = isinstance(q, Top) and all(plain_order(o) for o in q.order)
        repeats = isinstance(q, Unnest) and counted(q.generator) is not None and not q.outer
        if not self.spark and not plain and not repeats:
            raise UnsupportedScalarError(
                f"{type(q).__name__} holds expressions of Spark, which {self.dialect} may not have",
                hint='Use dialect="spark".',
            )
        source = self.source(q.s, "s", fold=q.s not in self.named)
        column = columns_of("s", source.names)
        own = q.s.arity
        items = all_of("s", source, names[:own])

        def text(e: Opaque) -> exp.Expr:
            return exp.Var(this=opaque_text(e, column, self.dialect))

        match q:
            case Window(_, _, functions, _):
                new = zip(functions, names[own:], strict=True)
                items += [exp.alias_(text(f), identifier(n)) for f, n in new]
            case Unnest():
                items += [column_of("u", n) for n in names[own:]]
        tree = select(items, source)
        match q:
            case Unnest(_, generator, _, outer):
                alias = exp.TableAlias(
                    this=exp.to_identifier("u"), columns=[identifier(n) for n in names[own:]]
                )
                if self.spark:
                    made = exp.Lateral(this=text(generator), view=True, outer=outer, alias=alias)
                    tree.set("laterals", [made])
                else:
                    down = " < 1 THEN -1 ELSE 1 END)"  # as Spark counts, if it is a user's
                    parts = ("GENERATE_SERIES(1, CAST(", " AS INT), CASE WHEN ", down)
                    numbers = Opaque(parts, generator.args * 2)
                    rows = exp.Unnest(expressions=[text(numbers)], alias=alias)
                    tree.set("joins", [exp.Join(this=rows, kind="CROSS")])
            case Top(_, order, limit, offset):
                if order:
                    tree.set("order", exp.Order(expressions=[text(o) for o in order]))
                if limit is not None:
                    tree.set("limit", exp.Limit(expression=exp.Literal.number(limit)))
                if offset:
                    tree.set("offset", exp.Offset(expression=exp.Literal.number(offset)))
        return tree
