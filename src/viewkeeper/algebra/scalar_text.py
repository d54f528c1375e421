"""Reads scalar expressions and aggregates: SQL's operators with SQL's precedence."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.algebra.lexer import END, Reader, Token
from viewkeeper.algebra.scalars import (
    AGGREGATE_SYNONYMS,
    AGGREGATES,
    BINARY,
    FALSE,
    FUNCTIONS,
    NULL,
    TRUE,
    Agg,
    Call,
    Col,
    Const,
    Scalar,
)
from viewkeeper.algebra.scope import Scope, expect
from viewkeeper.errors import NotationError, UnknownColumnError, UnsupportedScalarError, suggestion

_COMPARISON = BINARY["="]
_LONGEST = 300  # operators in one chain: longer ones would be too deep to walk
_CONSTANTS = {"null": NULL, "true": TRUE, "false": FALSE}


def read_scalar(text: str, scope: Scope) -> Scalar:
    """The expression that ``text`` means among the columns of ``scope``."""
    expect(text, str, "an expression", 'Give it as text, such as "a > 1".')
    reader = Reader(text)
    e = expression(reader, scope)
    if reader.now.kind != END:
        raise reader.error("the expression ends before the text does")
    return e


def read_agg(text: str, scope: Scope) -> Agg:
    """The aggregate that ``text`` means: ``count(*)``, ``sum(a * b)``, ``count(DISTINCT a)``."""
    expect(text, str, "an aggregate", 'Give it as text, such as "sum(a)".')
    reader = Reader(text)
    agg = aggregate(reader, scope)
    if reader.now.kind != END:
        raise reader.error(
            "an aggregate stands alone", hint="Compute with aggregates in a project() above."
        )
    return agg


def aggregate(reader: Reader, scope: Scope) -> Agg:
    """An aggregate at the cursor."""
    name = reader.next()
    function = AGGREGATE_SYNONYMS.get(name.word, name.word)
    if name.kind != "name" or function not in AGGREGATES:
        raise _unsupported(reader, name, "aggregate", AGGREGATES)
    reader.expect("(", "after the aggregate's name")
    distinct = bool(reader.take("distinct"))
    args: tuple[Scalar, ...] = ()
    if not (function == "count" and not distinct and reader.take("*")):
        args = (expression(reader, scope),)
    reader.expect(")", "after the aggregate's argument")
    if distinct and function in ("min", "max"):
        distinct = False  # duplicates never matter to these
    return Agg(function, args, distinct)


def expression(reader: Reader, scope: Scope, least: int = 0) -> Scalar:
    """An expression at the cursor whose operators bind at least as strongly as ``least``."""
    try:
        return _expression(reader, scope, least)
    except RecursionError:
        raise NotationError(
            "the expression is nested too deeply", hint="Split it into several projections."
        ) from None


def _expression(reader: Reader, scope: Scope, least: int) -> Scalar:
    if token := reader.take("not"):
        left: Scalar = Call("not", (_expression(reader, scope, 3),))
        if least > 3:
            raise reader.error("NOT needs parentheses here", token)
    else:
        left = _unary(reader, scope)
    chain = 0
    while True:
        if least <= _COMPARISON and reader.is_("is", "in", "between", "not"):
            left = _predicate(reader, scope, left)
            continue
        word = "<>" if reader.is_("!=") else reader.now.word
        level = BINARY.get(word) if reader.now.kind in ("op", "name") else None
        if level is None or level < least:
            return left
        reader.next()
        right = _expression(reader, scope, level + 1)
        if word in ("and", "or") and isinstance(left, Call) and left.op == word:
            left = Call(word, (*left.args, right))
        else:
            left = Call(word, (left, right))
        chain += 1
        if chain > _LONGEST:
            raise reader.error(
                f"more than {_LONGEST} operators in a row", hint="Split it into projections."
            )


def _predicate(reader: Reader, scope: Scope, left: Scalar) -> Scalar:
    """IS [NOT] NULL, IS [NOT] DISTINCT FROM, [NOT] IN (…), [NOT] BETWEEN … AND …, [NOT] LIKE."""
    if reader.take("is"):
        negated = bool(reader.take("not"))
        if reader.take("distinct"):
            reader.expect("from", "after IS DISTINCT")
            right = _expression(reader, scope, _COMPARISON + 1)
            same: Scalar = Call("<=>", (left, right))
            return same if negated else Call("not", (same,))
        reader.expect("null", "after IS")
        is_null: Scalar = Call("is_null", (left,))
        return Call("not", (is_null,)) if negated else is_null
    negated = bool(reader.take("not"))
    if reader.take("in"):
        reader.expect("(", "after IN")
        args = [left, *_list(reader, scope)]
        found: Scalar = Call("in", tuple(args))
    elif reader.take("between"):
        low = _expression(reader, scope, _COMPARISON + 1)
        reader.expect("and", "between the bounds of BETWEEN")
        high = _expression(reader, scope, _COMPARISON + 1)
        found = Call("and", (Call(">=", (left, low)), Call("<=", (left, high))))
    elif reader.take("like"):
        found = Call("like", (left, _expression(reader, scope, _COMPARISON + 1)))
    else:
        raise reader.error("expected IN, BETWEEN or LIKE after NOT")
    return Call("not", (found,)) if negated else found


def _list(reader: Reader, scope: Scope) -> Sequence[Scalar]:
    items = [_expression(reader, scope, 0)]
    while reader.take(","):
        items.append(_expression(reader, scope, 0))
    reader.expect(")", "after the last item")
    return items


def _unary(reader: Reader, scope: Scope) -> Scalar:
    if reader.take("-"):
        inner = _unary(reader, scope)
        if isinstance(inner, Const) and isinstance(inner.value, (int, float)):
            return Const(-inner.value)
        return Call("neg", (inner,))
    reader.take("+")
    return _primary(reader, scope)


def _primary(reader: Reader, scope: Scope) -> Scalar:
    token = reader.next()
    if token.kind == "number":
        return Const(int(token.text) if token.text.isdigit() else float(token.text))
    if token.kind == "string":
        return Const(token.text)
    if token.kind == "place":
        index = int(token.text[1:])
        if index >= len(scope.columns):
            raise UnknownColumnError(
                f"no column {token.text} here",
                text=reader.text,
                span=(token.start, token.stop),
                hint=f"There are {len(scope.columns)} columns, #0 to #{len(scope.columns) - 1}.",
            )
        return Col(index)
    if token.kind == "op" and token.text == "(":
        inner = _expression(reader, scope, 0)
        reader.expect(")", "to close the parenthesis")
        return inner
    if token.kind == "name" and token.word == "case":
        return _case(reader, scope)
    if token.kind == "name" and token.word in _CONSTANTS and not reader.is_(".", "("):
        return _CONSTANTS[token.word]
    if token.kind == "name" and reader.is_("("):
        return _function(reader, scope, token)
    if token.kind in ("name", "quoted"):
        if reader.take("."):
            name = reader.next()
            if name.kind not in ("name", "quoted"):
                raise reader.error("expected a column name after '.'", name)
            return scope.find(name, token, reader.text)
        return scope.find(token, None, reader.text)
    raise reader.error("expected a column, a constant, a function or '('", token)


def _case(reader: Reader, scope: Scope) -> Scalar:
    args: list[Scalar] = []
    while reader.take("when"):
        args.append(_expression(reader, scope, 0))
        reader.expect("then", "after the condition of WHEN")
        args.append(_expression(reader, scope, 0))
    if not args:
        raise reader.error("expected WHEN after CASE")
    args.append(_expression(reader, scope, 0) if reader.take("else") else NULL)
    reader.expect("end", "at the end of CASE")
    return Call("case", tuple(args))


def _function(reader: Reader, scope: Scope, name: Token) -> Scalar:
    if name.word not in FUNCTIONS:
        raise _unsupported(reader, name, "function", tuple(FUNCTIONS))
    reader.expect("(", "after the function's name")
    args = () if reader.take(")") else tuple(_list(reader, scope))
    low, high = FUNCTIONS[name.word]
    if not low <= len(args) <= high:
        raise reader.error(f"{name.word} takes {low} to {high} arguments, not {len(args)}", name)
    return Call(name.word, args)


def _unsupported(
    reader: Reader, name: Token, what: str, known: tuple[str, ...]
) -> UnsupportedScalarError:
    return UnsupportedScalarError(
        f"{name.text!r} is not {'an' if what[0] == 'a' else 'a'} {what} of the algebra",
        text=reader.text,
        span=(name.start, max(name.stop, name.start + 1)),
        hint=suggestion(name.word, known),
    )
