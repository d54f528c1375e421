"""Catalyst expressions as scalars: structure where the meaning is ours, else the engine's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from viewkeeper.algebra.scalars import Call, Col, Const, Opaque, Scalar
from viewkeeper.frontend.engine_text import EngineText
from viewkeeper.frontend.jvm import Jvm, Unsupported, children, expr_id, items

_COMPARISONS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "EqualNullSafe": "<=>",
}
_ARITHMETIC = {"Add": "+", "Subtract": "-", "Multiply": "*"}
_INTEGRAL = ("tinyint", "smallint", "int", "bigint")
_TRANSPARENT = (
    "KnownNullable",
    "KnownNotNull",
    "KnownFloatingPointNormalized",
)

Hook = Callable[[Any, str], Scalar | None]


class Scalars(EngineText):
    """Translates expressions over the columns of one input.

    ``columns`` gives the position of each Catalyst column, ``subqueries`` the value of each scalar
    subquery; ``hook`` may answer for an expression before any rule is tried.
    """

    def __init__(
        self,
        jvm: Jvm,
        columns: Mapping[int, int],
        subqueries: Mapping[int, Scalar] | None = None,
        hook: Hook | None = None,
    ) -> None:
        self.jvm = jvm
        self.columns = columns
        self.subqueries = subqueries or {}
        self.hook = hook
        self.shared: dict[str, Scalar] = {}  # the common expressions of With

    def __call__(self, e: Any) -> Scalar:
        kind = str(e.nodeName())
        if self.hook is not None:
            found = self.hook(e, kind)
            if found is not None:
                return found
        return self._translate(e, kind)

    def _translate(self, e: Any, kind: str) -> Scalar:
        match kind:
            case "AttributeReference":
                return self._column(e)
            case "Alias" | "TempResolvedColumn":
                return self(children(e)[0])
            case "Literal":
                return self._literal(e)
            case "Cast" if _changes_nothing(e):  # as Spark puts around the columns of a view
                return self(children(e)[0])
            case "And" | "Or":
                return self._connective(kind.lower(), children(e))
            case "Not":
                return self._negation(children(e)[0])
            case "IsNull":
                return Call("is_null", (self(children(e)[0]),))
            case "IsNotNull":
                return Call("not", (Call("is_null", (self(children(e)[0]),)),))
            case "In":
                return Call("in", self._alike(children(e)))
            case "Coalesce":
                return Call("coalesce", self.of(children(e)))
            case "If":
                return Call("case", self.of(children(e)))
            case "CaseWhen":
                args = self.of(children(e))
                return Call("case", args if len(args) % 2 else (*args, Const(None)))
            case "ScalarSubquery" | "Exists":
                return self._subquery(expr_id(e), e)
            case "InSubquery":
                return self._subquery(expr_id(e.query()), e)
            case "With":
                return self._common(e)
            case "CommonExpressionRef":
                return self.shared[str(e.id().toString())]
            case _ if kind in _COMPARISONS:
                return Call(_COMPARISONS[kind], self._alike(children(e)))
            case _ if kind in _ARITHMETIC:
                return self._arithmetic(e, kind)
            case "SQLScalarFunction":
                self.jvm.note_function(e.function())
                return self(children(e)[-1])
            case _ if kind in _TRANSPARENT:
                return self(children(e)[-1])
            case _:
                return self.engine(e, kind)

    # ── structure ──

    def _column(self, e: Any) -> Scalar:
        position = self.columns.get(expr_id(e))
        if position is None:
            raise Unsupported(f"The column {e.sql()} is read from outside its subquery.")
        return Col(position)

    def _literal(self, e: Any) -> Scalar:
        kind, value = str(e.dataType().catalogString()), e.value()
        if value is not None:
            if kind in ("int", "boolean"):
                return Const(value)
            if kind == "string":
                return Const(str(value.toString()))
        return Opaque((str(e.sql()),), ())

    def _connective(self, op: str, parts: list[Any]) -> Scalar:
        flat: list[Scalar] = []
        for part in self.of(parts):
            flat += part.args if isinstance(part, Call) and part.op == op else (part,)
        return Call(op, tuple(flat))

    def _negation(self, e: Any) -> Scalar:
        if e.nodeName() == "InSubquery":
            return Call("not", (self._subquery(negated(expr_id(e.query())), e),))
        arg = self(e)
        if isinstance(arg, Call) and arg.op == "=":
            return Call("<>", arg.args)
        return Call("not", (arg,))

    def _alike(self, parts: list[Any]) -> tuple[Scalar, ...]:
        """The sides of a comparison; the cast of an int literal goes, as Spark puts it there."""
        bare = [_int_literal(p) for p in parts]
        if all(b is not None for b in bare):
            return self.of(parts)
        return tuple(
            Const(b) if b is not None else self(p) for b, p in zip(bare, parts, strict=True)
        )

    def _arithmetic(self, e: Any, kind: str) -> Scalar:
        sides = children(e)
        types = {str(s.dataType().catalogString()) for s in sides}
        text = str(e.sql())
        if len(types) > 1 or not text.startswith("("):  # intervals; try_add(…)
            return self.engine(e, kind)
        if types <= {"bigint"}:
            return Call(_ARITHMETIC[kind], self._alike(sides))
        if types <= set(_INTEGRAL):
            return Call(_ARITHMETIC[kind], self.of(sides))
        return self.engine(e, kind)

    def _subquery(self, number: int, e: Any) -> Scalar:
        found = self.subqueries.get(number)
        if found is None:
            raise Unsupported(f"The subquery {e.sql()} has no translation in this place.")
        return found

    def _common(self, e: Any) -> Scalar:
        for definition in items(e.defs()):
            self.shared[str(definition.id().toString())] = self(children(definition)[0])
        return self(e.child())


def negated(number: int) -> int:
    """The number of a subquery in NOT IN, which is another one than in IN."""
    return -1 - number


def _changes_nothing(e: Any) -> bool:
    """Whether a cast is to the type that the value has."""
    return bool(e.dataType().catalogString() == children(e)[0].dataType().catalogString())


def _int_literal(e: Any) -> int | None:
    """The value of CAST(int literal AS wider number), where Spark would put that cast itself."""
    if e.nodeName() != "Cast":
        return None
    target = str(e.dataType().catalogString())
    if target not in ("bigint", "double") and not target.startswith("decimal"):
        return None
    child = children(e)[0]
    if child.nodeName() != "Literal" or child.dataType().catalogString() != "int":
        return None
    value = child.value()
    return None if value is None else int(value)
