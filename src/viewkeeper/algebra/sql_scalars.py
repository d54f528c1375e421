"""Scalar expressions and aggregates as SQL, built as sqlglot's syntax tree."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sqlglot import exp

from viewkeeper.algebra.scalars import BINARY, Agg, Call, Col, Const, Opaque, Scalar

Name = Callable[[int], exp.Expr]

_BINARY: dict[str, type[exp.Expr]] = {
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "<=>": exp.NullSafeEQ,
    "like": exp.Like,
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "||": exp.DPipe,
}
_FUNCTIONS: dict[str, type[exp.Expr]] = {
    "abs": exp.Abs,
    "upper": exp.Upper,
    "lower": exp.Lower,
    "length": exp.Length,
    "sqrt": exp.Sqrt,
}
_SEVERAL: dict[str, type[exp.Expr]] = {
    "least": exp.Least,
    "greatest": exp.Greatest,
}
_AGGREGATES: dict[str, type[exp.Expr]] = {
    "count": exp.Count,
    "sum": exp.Sum,
    "avg": exp.Avg,
    "min": exp.Min,
    "max": exp.Max,
    "var_pop": exp.VariancePop,
    "var_samp": exp.Variance,
    "stddev_pop": exp.StddevPop,
    "stddev_samp": exp.StddevSamp,
}


def scalar_sql(e: Scalar, name: Name, dialect: str) -> exp.Expr:
    """The syntax tree of an expression; ``name`` gives a column's."""

    def sql(part: Scalar) -> exp.Expr:
        return scalar_sql(part, name, dialect)

    def operand(part: Scalar, least: int) -> exp.Expr:
        tree = sql(part)
        return exp.Paren(this=tree) if _level(part) < least else tree

    match e:
        case Col(index):
            return name(index)
        case Const(value):
            return constant_sql(value)
        case Opaque():
            return exp.Var(this=opaque_text(e, name, dialect))
        case Call("and" | "or" as op, args):
            build = exp.And if op == "and" else exp.Or
            level = BINARY[op]
            tree = operand(args[0], level + 1)
            for a in args[1:]:
                tree = build(this=tree, expression=operand(a, level + 1))
            return tree
        case Call("/" | "%" as op, (a, b)):  # NULL where the divisor is zero
            zero = exp.Nullif(this=sql(b), expression=exp.Literal.number(0))
            kind = exp.Div if op == "/" else exp.Mod
            return kind(this=operand(a, BINARY[op]), expression=zero)
        case Call(op, (a, b)) if op in _BINARY:
            level = BINARY[op]
            return _BINARY[op](this=operand(a, level + 1), expression=operand(b, level + 1))
        case Call("not", (a,)):
            return exp.Not(this=operand(a, 4))
        case Call("neg", (a,)):
            return exp.Neg(this=operand(a, 9))
        case Call("is_null", (a,)):
            return exp.Is(this=operand(a, 5), expression=exp.Null())
        case Call("in", args):
            return exp.In(this=operand(args[0], 5), expressions=[sql(a) for a in args[1:]])
        case Call("case", args):
            ifs = [
                exp.If(this=sql(args[i]), true=sql(args[i + 1])) for i in range(0, len(args) - 1, 2)
            ]
            return exp.Case(ifs=ifs, default=sql(args[-1]))
        case Call("nullif", (a, b)):
            return exp.Nullif(this=sql(a), expression=sql(b))
        case Call(op, args) if op in _SEVERAL or op == "coalesce":
            rest = [sql(a) for a in args[1:]]
            if op == "coalesce":
                return exp.Coalesce(this=sql(args[0]), expressions=rest)
            return _SEVERAL[op](this=sql(args[0]), expressions=rest, ignore_nulls=True)
        case Call(op, (a,)):
            return _FUNCTIONS[op](this=sql(a))
        case _:
            raise AssertionError(f"no SQL for {e!r}")


def _level(e: Scalar) -> int:
    """How strongly the outermost operator binds; constants, columns and calls most."""
    if not isinstance(e, Call):
        return 9 if isinstance(e, Opaque) or not _negative(e) else 7
    if e.op in ("not", "neg"):
        return 3 if e.op == "not" else 7
    if e.op in ("in", "is_null"):
        return 4
    return BINARY.get(e.op, 9)


def _negative(e: Scalar) -> bool:
    return isinstance(e, Const) and isinstance(e.value, (int, float, Decimal)) and e.value < 0


def constant_sql(value: Any) -> exp.Expr:
    """A constant as SQL; dates and timestamps by a cast of their text."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (int, float, Decimal)):
        number = exp.Literal.number(str(abs(value)))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, str):
        return exp.Literal.string(value)
    kind = "TIMESTAMP" if hasattr(value, "hour") else "DATE"
    return exp.cast(exp.Literal.string(str(value)), kind)


def opaque_text(e: Opaque, name: Name, dialect: str) -> str:
    """The engine's own text, with the arguments in their places."""
    args = [scalar_sql(a, name, dialect) for a in e.args]
    wrapped = [
        exp.Paren(this=t) if isinstance(a, Call) else t for a, t in zip(e.args, args, strict=True)
    ]
    texts = [*(t.sql(dialect=dialect) for t in wrapped), ""]
    return "".join(p + t for p, t in zip(e.parts, texts, strict=True))


def agg_sql(a: Agg | Opaque, name: Name, dialect: str) -> exp.Expr:
    """The syntax tree of an aggregate."""
    if isinstance(a, Opaque):
        return exp.Var(this=opaque_text(a, name, dialect))
    kind = _AGGREGATES[a.function]
    if not a.args:
        return kind(this=exp.Star())
    args = [scalar_sql(x, name, dialect) for x in a.args]
    inside: exp.Expr = exp.Distinct(expressions=args) if a.distinct else args[0]
    return kind(this=inside)
