"""Finds the closure in a recursive query.

    WITH RECURSIVE tc(a, b) AS (
        SELECT src, dst FROM edges
        UNION
        SELECT tc.a, e.dst FROM tc JOIN edges e ON tc.b = e.src    -- or the edge first, or tc twice
    ) SELECT a, b FROM tc

Anything more than this (other conditions, counters, aggregates, more tables) is not a plain
closure; the answer then says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError


@dataclass(frozen=True)
class PlainClosure:
    """A query that is the closure of a table of edges.

    Parameters
    ----------
    edges : str
        The table of edges, as Spark's SQL names it.
    start, end : tuple of str
        Its columns for the two ends.
    columns : tuple of str
        The names of the query's columns: first those of the start, then those of the end.
    drops_nulls : bool
        Whether the query leaves out edges with a NULL end, as the closure does. If not, the two are
        equal only if the table has no such edges.
    form : str
        "left" (path, then edge), "right" (edge, then path) or "quadratic" (path, then path).
    """

    edges: str
    start: tuple[str, ...]
    end: tuple[str, ...]
    columns: tuple[str, ...]
    drops_nulls: bool
    form: str


@dataclass(frozen=True)
class NotAClosure:
    """Why a query is not a plain closure."""

    reason: str


class _No(Exception):
    pass


def recognise(sql: str) -> PlainClosure | NotAClosure:
    """The table and the columns of which a recursive query is the closure, or why it is not one.

    Parameters
    ----------
    sql : str
        A query in Spark's SQL.

    Returns
    -------
    PlainClosure or NotAClosure

    Examples
    --------
    >>> found = recognise('''
    ...     WITH RECURSIVE tc(a, b) AS (
    ...         SELECT src, dst FROM edges
    ...         UNION
    ...         SELECT tc.a, e.dst FROM tc JOIN edges e ON tc.b = e.src
    ...     ) SELECT a AS ancestor, b FROM tc''')
    >>> found.edges, found.start, found.end, found.columns, found.form
    ('edges', ('src',), ('dst',), ('ancestor', 'b'), 'left')
    >>> recognise("SELECT 1")
    NotAClosure(reason='the query has no recursive part')
    """
    try:
        return _recognise(sql)
    except _No as e:
        return NotAClosure(str(e))
    except SqlglotError as e:
        return NotAClosure(f"the query cannot be read: {str(e).splitlines()[0]}")


def _recognise(sql: str) -> PlainClosure:
    tree = parse_one(sql, read="spark")
    if not isinstance(tree, exp.Select):
        raise _No("the query has no recursive part")
    with_ = tree.find(exp.With)
    if with_ is None or not with_.args.get("recursive") or with_.parent is not tree:
        raise _No("the query has no recursive part")
    if len(with_.expressions) != 1:
        raise _No("it has more than one common table expression")
    cte = with_.expressions[0]
    name: str = cte.alias
    union = _bare(cte.this)
    if not isinstance(union, exp.Union) or any(
        union.args.get(key) for key in ("order", "limit", "offset", "with_", "with")
    ):
        raise _No("the recursive part is not a UNION of two queries")
    base, step = _bare(union.this), _bare(union.expression)
    for part in (base, step):
        if not isinstance(part, exp.Select):
            raise _No("the recursive part is not a UNION of two queries")
    assert isinstance(base, exp.Select) and isinstance(step, exp.Select)
    if not union.args.get("distinct") and not tree.args.get("distinct"):
        raise _No("UNION ALL keeps a row for each path; write UNION")

    edges, ends, base_filter = _base(base)
    if _is(edges, name):
        raise _No(f"the first part of the UNION reads {name} itself")
    half = len(ends) // 2
    alias = cte.args.get("alias")
    listed = [c.name for c in alias.columns] if alias is not None else []
    names = listed or [e.alias_or_name for e in base.expressions]
    if len(names) != len(ends):
        raise _No(f"{name} has {len(names)} names for {len(ends)} columns")
    form, step_filter = _step(step, name, names, edges, ends)
    columns = _final(tree, name, names)
    need = set(ends) if form != "quadratic" else set()
    drops = base_filter >= {e.lower() for e in ends} and step_filter >= need
    return PlainClosure(
        edges.sql("spark", comments=False),
        tuple(ends[:half]),
        tuple(ends[half:]),
        columns,
        drops,
        form,
    )


def _is(table: exp.Table, name: str) -> bool:
    """Whether a table is the recursive one, as it is now."""
    return table.sql("spark").lower().strip("`") == name.lower()


def _bare(e: exp.Expr) -> exp.Expr:
    while isinstance(e, (exp.Subquery, exp.Paren)):
        e = e.this
    return e


def _only(select: exp.Select, *allowed: str) -> None:
    """No clause but these."""
    known = {"expressions", "from_", "from", "kind", "hint", "operation_modifiers", *allowed}
    for key, value in select.args.items():
        if value and key not in known:
            raise _No(f"it has {key.rstrip('_').upper()}")
        if key == "distinct" and value and value.args.get("on"):
            raise _No("it has DISTINCT ON")


def _tables(select: exp.Select) -> tuple[dict[str, exp.Table], list[exp.Expr]]:
    """The tables of FROM by their names in the query, and all join conditions."""
    source = select.args.get("from_") or select.args.get("from")
    if source is None:
        raise _No("a part of it has no FROM")
    found: dict[str, exp.Table] = {}
    conditions: list[exp.Expr] = []
    for item in [source.this, *[join.this for join in select.args.get("joins") or []]]:
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            raise _No("it reads a query where a table should be")
        for key, value in item.args.items():
            if value and key not in ("this", "db", "catalog", "alias", "version"):
                raise _No(f"it has {key.rstrip('s').upper()}")
        if item.alias_column_names:
            raise _No(f"it gives the columns of {item.name} other names")
        key = item.alias_or_name.lower()
        if key in found:
            raise _No(f"it has two tables with the name {key}")
        bare = item.copy()
        bare.set("alias", None)
        found[key] = bare
    for join in select.args.get("joins") or []:
        if join.args.get("side") or join.args.get("kind") not in (None, "", "INNER", "CROSS"):
            raise _No("it has an outer join")
        if join.args.get("using"):
            raise _No("it joins by USING; write ON")
        for key, value in join.args.items():
            if value and key not in ("this", "on", "kind"):
                raise _No(f"it joins by {str(value).upper()}; write ON")
        if join.args.get("on"):
            conditions += _conjuncts(join.args["on"])
    where = select.args.get("where")
    if where is not None:
        conditions += _conjuncts(where.this)
    return found, [_bare(c) for c in conditions]


def _conjuncts(e: exp.Expr) -> list[exp.Expr]:
    return list(e.flatten()) if isinstance(e, exp.And) else [e]


def _column(e: exp.Expr, tables: dict[str, exp.Table]) -> tuple[str, str]:
    """The table's name in the query, and the column, in lower case."""
    inner = _bare(e.this if isinstance(e, exp.Alias) else e)
    if not isinstance(inner, exp.Column) or isinstance(inner.this, exp.Star):
        raise _No(f"{e.sql('spark')} is not a column")
    table = inner.table.lower()
    if not table:
        if len(tables) != 1:
            raise _No(f"{inner.name} does not say which table it is of")
        table = next(iter(tables))
    if table not in tables:
        raise _No(f"{inner.sql('spark')} is of no table there")
    return table, inner.name.lower()


def _not_null(e: exp.Expr) -> exp.Expr | None:
    """The x of x IS NOT NULL."""
    if isinstance(e, exp.Not):
        inner = _bare(e.this)
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            this: exp.Expr = inner.this
            return this
    return None


def _base(select: exp.Select) -> tuple[exp.Table, list[str], set[str]]:
    """The table of edges, its columns, and those that must not be NULL."""
    _only(select, "distinct", "where")
    tables, conditions = _tables(select)
    columns = [_column(e, tables)[1] for e in select.expressions]
    filtered = set()
    for condition in conditions:
        inner = _not_null(condition)
        if inner is None or _column(inner, tables)[1] not in columns:
            raise _No(f"it has the condition {condition.sql('spark')}")
        filtered.add(_column(inner, tables)[1])
    if len(columns) % 2 or not columns or len(set(columns)) != len(columns):
        raise _No("the first part of the UNION does not select a start and an end")
    spelled = [_bare(e.this if isinstance(e, exp.Alias) else e).name for e in select.expressions]
    return next(iter(tables.values())), spelled, filtered


def _step(
    select: exp.Select, name: str, names: list[str], edges: exp.Table, ends: list[str]
) -> tuple[str, set[str]]:
    """Which of the three forms it is, and the columns of the edges that must not be NULL."""
    _only(select, "distinct", "where", "joins")
    tables, conditions = _tables(select)
    if len(tables) != 2:
        raise _No("the second part of the UNION does not join two tables")
    half = len(ends) // 2
    is_path: dict[str, bool] = {}
    for key, table in tables.items():
        path = _is(table, name)
        if not path and table.sql("spark").lower() != edges.sql("spark").lower():
            raise _No(f"the second part of the UNION reads another table, {table.sql('spark')}")
        is_path[key] = path
    if not any(is_path.values()):
        raise _No(f"the second part of the UNION does not read {name}")

    def of(key: str, which: str) -> list[tuple[str, str]]:
        columns = [c.lower() for c in (names if is_path[key] else ends)]
        return [(key, c) for c in (columns[:half] if which == "start" else columns[half:])]

    selected = [_column(e, tables) for e in select.expressions]
    equalities: set[frozenset[tuple[str, str]]] = set()
    filtered: set[str] = set()
    for condition in conditions:
        inner = _not_null(condition)
        if inner is not None:
            key, column = _column(inner, tables)
            if (key, column) not in of(key, "start") + of(key, "end"):
                raise _No(f"it has the condition {condition.sql('spark')}")
            filtered |= set() if is_path[key] else {column}
        elif isinstance(condition, exp.EQ):
            pair = frozenset(
                _column(side, tables) for side in (condition.this, condition.expression)
            )
            equalities.add(pair)
        else:
            raise _No(f"it has the condition {condition.sql('spark')}")
    for first in tables:
        second = next(key for key in tables if key != first)
        ways = {frozenset(p) for p in zip(of(first, "end"), of(second, "start"), strict=True)}
        if equalities == ways and selected == of(first, "start") + of(second, "end"):
            if is_path[first] and is_path[second]:
                return "quadratic", set(ends)
            filtered_names = {e for e in ends if e.lower() in filtered}
            # the column that is joined by equality is not NULL anyway
            joined = ends[:half] if is_path[first] else ends[half:]
            return ("left" if is_path[first] else "right"), filtered_names | set(joined)
    raise _No("the second part of the UNION is not one path, then one more")


def _final(tree: exp.Select, name: str, names: list[str]) -> tuple[str, ...]:
    """The names of the query's columns."""
    _only(tree, "distinct", "with_", "with", "order")  # rows of a view have no order
    tables, _ = _tables(tree)
    if len(tables) != 1 or not all(_is(table, name) for table in tables.values()):
        raise _No(f"the query reads more than {name}")
    if len(tree.expressions) == 1 and tree.expressions[0].is_star:
        return tuple(names)
    columns = [_column(e, tables)[1] for e in tree.expressions]
    if columns != [n.lower() for n in names]:
        raise _No(f"the query does not select {', '.join(names)}, in this order")
    return tuple(e.alias_or_name for e in tree.expressions)
