"""What scalar expressions mean on Python values: SQL's three-valued logic, NULL as ``None``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from viewkeeper.algebra.scalars import Agg, Call, Col, Const, Opaque, Scalar
from viewkeeper.errors import EvaluationError, UnsupportedScalarError

Row = tuple[Any, ...]
Compiled = Callable[[Row], Any]


def _divide(a: Any, b: Any) -> Any:
    return None if b == 0 else a / b


def _modulo(a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend, as in SQL."""
    return None if b == 0 else a - b * math.trunc(Fraction(a) / Fraction(b))


def _like(text: str, pattern: str) -> bool:
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


# Operators that give NULL as soon as one argument is NULL.
_STRICT: dict[str, Callable[..., Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _modulo,
    "||": lambda a, b: f"{a}{b}",
    "like": _like,
    "not": operator.not_,
    "neg": operator.neg,
    "abs": abs,
    "upper": lambda s: s.upper(),
    "lower": lambda s: s.lower(),
    "length": len,
    "sqrt": lambda x: math.sqrt(x),
}


def _strict(f: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*args: Any) -> Any:
        return None if any(a is None for a in args) else f(*args)

    return apply


def _and(*args: Any) -> Any:
    if any(a is False for a in args):
        return False
    return None if any(a is None for a in args) else True


def _or(*args: Any) -> Any:
    if any(a is True for a in args):
        return True
    return None if any(a is None for a in args) else False


def _in(x: Any, *among: Any) -> Any:
    return _or(*(None if x is None or a is None else x == a for a in among))


def _case(*args: Any) -> Any:
    for condition, value in zip(args[:-1:2], args[1::2], strict=True):
        if condition is True:
            return value
    return args[-1]


def _coalesce(*args: Any) -> Any:
    return next((a for a in args if a is not None), None)


def _least(*args: Any) -> Any:
    return min((a for a in args if a is not None), default=None)


def _greatest(*args: Any) -> Any:
    return max((a for a in args if a is not None), default=None)


def _nullif(a: Any, b: Any) -> Any:
    return None if a is not None and b is not None and a == b else a


MEANING: dict[str, Callable[..., Any]] = {op: _strict(f) for op, f in _STRICT.items()}
MEANING |= {
    "and": _and,
    "or": _or,
    "in": _in,
    "case": _case,
    "is_null": lambda a: a is None,
    "<=>": lambda a, b: (a is None and b is None) or (a is not None and b is not None and a == b),
    "coalesce": _coalesce,
    "least": _least,
    "greatest": _greatest,
    "nullif": _nullif,
}


@lru_cache(maxsize=5000)
def compile_scalar(e: Scalar) -> Compiled:
    """A Python function from a row to the value of the expression.

    >>> compile_scalar(Call("+", (Col(0), Const(1))))((41,))
    42
    """
    match e:
        case Col(index):
            return operator.itemgetter(index)
        case Const(value):
            return lambda row: value
        case Call(op, args):
            f = MEANING[op]
            compiled = [compile_scalar(a) for a in args]
            if len(compiled) == 2:
                first, second = compiled
                return lambda row: f(first(row), second(row))
            return lambda row: f(*(c(row) for c in compiled))
        case Opaque((text,), ()) if re.fullmatch(r"\d+L", text):  # the engine's long integers
            number = int(text[:-1])
            return lambda row: number
        case Opaque(parts, args):
            text = "…".join(parts)
            raise UnsupportedScalarError(
                f"{text!r} is an expression of the engine, unknown to the reference evaluator",
                hint="Evaluate the query on the engine.",
            )


FAILURES = (TypeError, AttributeError, ArithmeticError, ValueError)


def failed(what: str, e: Exception) -> EvaluationError:
    """Python's complaint about types as ours."""
    return EvaluationError(
        f"{what} failed on the given rows: {e}",
        hint="Check the types of the values; NULL is None.",
    )


def exact(value: Any) -> Fraction:
    """A number without rounding."""
    return Fraction(value)


def total(values: Iterable[tuple[Any, int]]) -> Any:
    """The sum of values with multiplicities, without rounding on the way; None if there is none."""
    pairs = [(v, n) for v, n in values if v is not None]
    if not pairs:
        return None
    if any(isinstance(v, float) for v, _ in pairs):
        return float(sum((exact(v) * n for v, n in pairs), Fraction(0)))
    return sum((v * n for v, n in pairs), type(pairs[0][0])(0))


def evaluate_agg(agg: Agg | Opaque, rows: list[tuple[Row, int]]) -> Any:
    """The value of an aggregate over rows with multiplicities.

    >>> evaluate_agg(Agg("sum", (Col(0),)), [((2,), 3), ((None,), 1)])
    6
    """
    if isinstance(agg, Opaque):
        compile_scalar(agg)  # raises: the engine's
    assert isinstance(agg, Agg)
    if not agg.args:
        return sum(n for _, n in rows)
    f = compile_scalar(agg.args[0])
    pairs = [(f(row), n) for row, n in rows]
    pairs = [(v, n) for v, n in pairs if v is not None]
    if agg.distinct:
        pairs = [(v, 1) for v in dict.fromkeys(v for v, _ in pairs)]
    count = sum(n for _, n in pairs)
    match agg.function:
        case "count":
            return count
        case "sum":
            return total(pairs)
        case "min":
            return min((v for v, _ in pairs), default=None)
        case "max":
            return max((v for v, _ in pairs), default=None)
        case "avg":
            return _number(_mean(pairs, count), pairs) if count else None
        case _:
            return _spread(agg.function, pairs, count)


def _mean(pairs: list[tuple[Any, int]], count: int) -> Fraction:
    return sum((exact(v) * n for v, n in pairs), Fraction(0)) / count


def _number(value: Fraction, pairs: list[tuple[Any, int]]) -> Any:
    if any(isinstance(v, Decimal) for v, _ in pairs):
        return Decimal(value.numerator) / Decimal(value.denominator)
    return float(value)


def _spread(function: str, pairs: list[tuple[Any, int]], count: int) -> float | None:
    """Variance or standard deviation, of the population or of a sample."""
    sample = function.endswith("_samp")
    if count < (2 if sample else 1):
        return None
    mean = _mean(pairs, count)
    squares = sum(((exact(v) - mean) ** 2 * n for v, n in pairs), Fraction(0))
    variance = squares / (count - 1 if sample else count)
    return math.sqrt(variance) if function.startswith("stddev") else float(variance)
