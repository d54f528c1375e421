"""Nodes of several columns: one column of a program's text stands for all of them.

The programs speak of nodes as of single values, as the paper does. If the nodes of a graph are told
apart by several columns, a column ``Start`` of a program becomes ``Start_1``, ``Start_2``, … :
equality becomes a conjunction, order becomes lexicographic, lists become longer.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.recursive.errors import ProgramError

_ORDER = {exp.LT: exp.LT, exp.LTE: exp.LT, exp.GT: exp.GT, exp.GTE: exp.GT}


def column_names(name: str, width: int) -> list[str]:
    """The columns that a node column of a program stands for.

    Examples
    --------
    >>> column_names("Start", 1), column_names("Start", 2)
    (['Start'], ['Start_1', 'Start_2'])
    """
    return [name] if width == 1 else [f"{name}_{i}" for i in range(1, width + 1)]


def widen(tree: exp.Expr, nodes: frozenset[str], width: int) -> exp.Expr:
    """A query over nodes of one column as one over nodes of ``width`` columns.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT t.Start, 1 AS n FROM TC AS t WHERE t.Start = t.End", read="spark")
    >>> print(widen(tree, frozenset({"start", "end"}), 2).sql("spark", pretty=True))
    SELECT
      t.Start_1,
      t.Start_2,
      1 AS n
    FROM TC AS t
    WHERE
      (
        t.Start_1 = t.End_1 AND t.Start_2 = t.End_2
      )
    """
    if width == 1:
        return tree
    tree = tree.copy()
    wide = _Widen(nodes, width)
    for found in reversed(list(tree.find_all(exp.Predicate, exp.Count))):
        new = wide.predicate(found)
        if new is not found:
            found.replace(new)
    for group in tree.find_all(exp.Group):
        group.set("expressions", wide.each(group.expressions))
    for window in tree.find_all(exp.Window):
        window.set("partition_by", wide.each(window.args.get("partition_by") or []))
    for order in tree.find_all(exp.Order):
        order.set("expressions", [part for e in order.expressions for part in wide.ordered(e)])
    for select in tree.find_all(exp.Select):
        select.set("expressions", [p for e in select.expressions for p in wide.projected(e)])
    return tree


class _Widen:
    def __init__(self, nodes: frozenset[str], width: int) -> None:
        self.nodes = nodes
        self.width = width

    def is_node(self, e: exp.Expr | None) -> bool:
        """Whether an expression's value is a node."""
        match e:
            case exp.Column() | exp.Placeholder():
                return e.name.lower() in self.nodes
            case exp.Coalesce() | exp.Min() | exp.Max() | exp.Paren():
                return self.is_node(e.this)
            case exp.Case():
                return self.is_node(e.args["ifs"][0].args["true"])
        return False

    def part(self, e: exp.Expr, i: int) -> exp.Expr:
        """The i-th column of a node, counted from zero."""
        new = e.copy()
        match new:
            case exp.Column():
                new.set("this", exp.to_identifier(f"{new.name}_{i + 1}"))
            case exp.Placeholder():
                new.set("this", f"{new.name}_{i + 1}")
            case exp.Null():
                pass
            case exp.Coalesce() | exp.Paren():
                new.set("this", self.part(new.this, i))
                new.set("expressions", [self.part(x, i) for x in new.expressions])
            case exp.Case():
                for branch in new.args["ifs"]:
                    branch.set("true", self.part(branch.args["true"], i))
                if new.args.get("default"):
                    new.set("default", self.part(new.args["default"], i))
            case exp.Min() | exp.Max():
                fields = [
                    exp.PropertyEQ(this=exp.to_identifier(f"c{j + 1}"), expression=p)
                    for j, p in enumerate(self.parts(new.this))
                ]
                struct = exp.Struct(expressions=fields)
                new = exp.Dot(
                    this=type(new)(this=struct), expression=exp.to_identifier(f"c{i + 1}")
                )
            case _:
                raise ProgramError(
                    f"{e.sql('spark')} has no meaning for nodes of several columns",
                    hint="Use the column itself, COALESCE, CASE, MIN or MAX.",
                )
        return new

    def parts(self, e: exp.Expr) -> list[exp.Expr]:
        return [self.part(e, i) for i in range(self.width)]

    def each(self, list_: Sequence[exp.Expr]) -> list[exp.Expr]:
        """A list of expressions, nodes replaced by their columns."""
        return [p for e in list_ for p in (self.parts(e) if self.is_node(e) else [e])]

    def ordered(self, e: exp.Expr) -> list[exp.Expr]:
        """The same for ORDER BY."""
        if not isinstance(e, exp.Ordered) or not self.is_node(e.this):
            return [e]
        found: list[exp.Expr] = []
        for part in self.parts(e.this):
            new = e.copy()
            new.set("this", part)
            found.append(new)
        return found

    def projected(self, e: exp.Expr) -> list[exp.Expr]:
        """The same for a SELECT list: names become longer too."""
        name = e.alias_or_name
        inner = e.this if isinstance(e, exp.Alias) else e
        if name.lower() not in self.nodes:
            if self.is_node(inner):
                raise ProgramError(
                    f"{e.sql('spark')}: {name} holds a node and is not declared so",
                    hint=f"Write -- NODES {name}.",
                )
            return [e]
        if not isinstance(e, exp.Alias):
            return self.parts(e)
        names = column_names(name, self.width)
        return [exp.alias_(p, n) for p, n in zip(self.parts(inner), names, strict=True)]

    def predicate(self, e: exp.Expr) -> exp.Expr:
        """A comparison of nodes as comparisons of their columns."""
        match e:
            case exp.Count() if self.is_node(e.this):
                return exp.Count(this=self.part(e.this, 0))
            case exp.Is() if self.is_node(e.this):
                return exp.paren(
                    exp.or_(*[exp.Is(this=p, expression=exp.null()) for p in self.parts(e.this)])
                )
            case exp.Binary() if self.is_node(e.this) or self.is_node(e.expression):
                pass
            case _:
                return e
        left, right = self.parts(e.this), self.parts(e.expression)
        equal = [
            exp.EQ(this=x.copy(), expression=y.copy()) for x, y in zip(left, right, strict=True)
        ]
        if isinstance(e, exp.EQ):
            return exp.paren(exp.and_(*equal))
        if isinstance(e, exp.NEQ):
            return exp.not_(exp.paren(exp.and_(*equal)))
        strict = _ORDER.get(type(e))
        if strict is None:
            raise ProgramError(
                f"{e.sql('spark')} has no meaning for nodes of several columns",
                hint="Compare nodes by =, <>, <, <=, > or >=.",
            )
        ways: list[exp.Expr] = []
        for i, (x, y) in enumerate(zip(left, right, strict=True)):
            last = type(e) if i == self.width - 1 else strict
            ways.append(exp.and_(*[q.copy() for q in equal[:i]], last(this=x, expression=y)))
        return exp.paren(exp.or_(*[exp.paren(way) for way in ways]))
