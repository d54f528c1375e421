"""Scalar expressions: what stands in σ[…], Π[…], join conditions and aggregates.

Columns are referred to by position, so an expression means the same wherever its input's rows go.
NULL is ``None``; predicates have SQL's three values, and a row passes only where they are TRUE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Union

from viewkeeper.algebra.pool import Value

BINARY = {"or": 1, "and": 2, "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "<=>": 4}
BINARY |= {"like": 4, "+": 5, "-": 5, "||": 5, "*": 6, "/": 6, "%": 6}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
# The functions of the algebra, with the least and the greatest number of arguments.
FUNCTIONS = {
    "abs": (1, 1),
    "coalesce": (1, 99),
    "nullif": (2, 2),
    "least": (2, 99),
    "greatest": (2, 99),
    "upper": (1, 1),
    "lower": (1, 1),
    "length": (1, 1),
    "sqrt": (1, 1),
}
AGGREGATES = (
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "var_pop",
    "var_samp",
    "stddev_pop",
    "stddev_samp",
)
AGGREGATE_SYNONYMS = {"variance": "var_samp", "stddev": "stddev_samp", "mean": "avg"}


@dataclass(frozen=True, eq=False, slots=True)
class Col(Value):
    """The column at position ``index`` of the input row (of left then right, in a join)."""

    index: int


@dataclass(frozen=True, eq=False, slots=True)
class Const(Value):
    """A constant; ``None`` is NULL."""

    value: Any

    @classmethod
    def pool_key(cls, *args: Any) -> Any:
        return type(args[0]), repr(args[0])


@dataclass(frozen=True, eq=False, slots=True)
class Call(Value):
    """An operator or function of the algebra: ``and or not = < … + - * / % case in is_null …``."""

    op: str
    args: tuple[Scalar, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Opaque(Value):
    """An expression of the engine, carried as text: ``parts[0] args[0] parts[1] args[1] …``."""

    parts: tuple[str, ...]
    args: tuple[Scalar, ...]


Scalar = Union[Col, Const, Call, Opaque]


@dataclass(frozen=True, eq=False, slots=True)
class Agg(Value):
    """An aggregate over the rows of a group; ``count`` without argument is ``count(*)``.

    ``type`` is the engine's type of the argument where the query came from an engine.
    """

    function: str
    args: tuple[Scalar, ...]
    distinct: bool = False
    type: str = ""

    @classmethod
    def pool_key(cls, *args: Any) -> Any:
        return args + (False, "")[len(args) - 2 :]


TRUE, FALSE, NULL = Const(True), Const(False), Const(None)


def call(op: str, *args: Scalar) -> Scalar:
    """An operator applied; a shorter way to write ``Call(op, args)``."""
    return Call(op, args)


def conjunction(parts: tuple[Scalar, ...] | list[Scalar]) -> Scalar:
    """p₁ and p₂ and …, flat, each once; TRUE when there are none."""
    flat = tuple(dict.fromkeys(q for p in parts for q in conjuncts(p)))
    if not flat:
        return TRUE
    return flat[0] if len(flat) == 1 else Call("and", flat)


def conjuncts(p: Scalar) -> tuple[Scalar, ...]:
    """The parts of a conjunction; a lone predicate is its only part, and TRUE has none."""
    if p is TRUE:
        return ()
    if isinstance(p, Call) and p.op == "and":
        return tuple(q for arg in p.args for q in conjuncts(arg))
    return (p,)


def equal_columns(left: tuple[int, ...], right: tuple[int, ...], arity: int) -> Scalar:
    """left.i <=> right.j for each pair, where the right side's columns follow ``arity`` others."""
    pairs = zip(left, right, strict=True)
    return conjunction([Call("<=>", (Col(i), Col(arity + j))) for i, j in pairs])


def arguments(e: Scalar) -> tuple[Scalar, ...]:
    """The direct parts of an expression."""
    return e.args if isinstance(e, (Call, Opaque)) else ()


def parts_of(e: Scalar) -> Iterator[Scalar]:
    """The expression and all its parts."""
    stack = [e]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(arguments(part))


def columns_of(e: Scalar) -> frozenset[int]:
    """The positions of the columns an expression reads."""
    found = _columns_memo.get(e)
    if found is None:
        if len(_columns_memo) > 50_000:
            _columns_memo.clear()
        found = frozenset(p.index for p in parts_of(e) if isinstance(p, Col))
        _columns_memo[e] = found
    return found


_columns_memo: dict[Scalar, frozenset[int]] = {}


def replace_columns(e: Scalar, by: Callable[[int], Scalar]) -> Scalar:
    """The expression with each column replaced."""
    match e:
        case Col(index):
            return by(index)
        case Const():
            return e
        case Call(op, args):
            return Call(op, tuple(replace_columns(a, by) for a in args))
        case Opaque(parts, args):
            return Opaque(parts, tuple(replace_columns(a, by) for a in args))


def replace_agg(agg: Agg, by: Callable[[int], Scalar]) -> Agg:
    """The aggregate with each column replaced."""
    args = tuple(replace_columns(a, by) for a in agg.args)
    return Agg(agg.function, args, agg.distinct, agg.type)


def shift(e: Scalar, by: int) -> Scalar:
    """The expression over columns that stand ``by`` places further right."""
    return replace_columns(e, lambda i: Col(i + by)) if by else e


def show(e: Scalar, name: Callable[[int], str], outer: int = 0) -> str:
    """The text of an expression; ``name`` gives a column's name."""
    match e:
        case Col(index):
            return name(index)
        case Const(value):
            return show_constant(value)
        case Opaque(parts, args):
            shown = [show(a, name, 9) for a in args] + [""]
            return "".join(p + a for p, a in zip(parts, shown, strict=True))
        case Call(op, args) if op in BINARY:
            level = BINARY[op]
            # a chain of one associative operator needs no parentheses on its left
            left = level if op in ("and", "or", "+", "-", "*", "/", "%", "||") else level + 1
            word = op.upper() if op.isalpha() else op
            shown = [show(args[0], name, left), *(show(a, name, level + 1) for a in args[1:])]
            text = f" {word} ".join(shown)
            return f"({text})" if level < outer else text
        case Call("not", (arg,)):
            return _wrap(f"NOT {show(arg, name, 3)}", outer > 3)
        case Call("neg", (arg,)):
            return f"-{show(arg, name, 8)}"
        case Call("is_null", (arg,)):
            return _wrap(f"{show(arg, name, 5)} IS NULL", outer > 4)
        case Call("in", args):
            inside = ", ".join(show(a, name) for a in args[1:])
            return _wrap(f"{show(args[0], name, 5)} IN ({inside})", outer > 4)
        case Call("case", args):
            whens = "".join(
                f" WHEN {show(args[i], name)} THEN {show(args[i + 1], name)}"
                for i in range(0, len(args) - 1, 2)
            )
            return f"CASE{whens} ELSE {show(args[-1], name)} END"
        case Call(op, args):
            return f"{op}({', '.join(show(a, name) for a in args)})"


def _wrap(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def show_constant(value: Any) -> str:
    """A constant as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        return repr(value) if value >= 0 else f"({value!r})"
    return "'" + str(value).replace("'", "''") + "'"


def show_agg(agg: Agg, name: Callable[[int], str]) -> str:
    """The text of an aggregate."""
    inside = ", ".join(show(a, name) for a in agg.args) or "*"
    return f"{agg.function}({'DISTINCT ' if agg.distinct else ''}{inside})"
