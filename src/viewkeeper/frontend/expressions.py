"""Catalyst expressions as scalars: structure where the meaning is ours, else the engine's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from viewkeeper.algebra.scalars import Call, Col, Const, Opaque, Scalar
from viewkeeper.frontend.jvm import Jvm, Unsupported, children, expr_id, items, option
from viewkeeper.frontend.text import closed, cut, joined, splice

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
    "SQLScalarFunction",
)
_OPTIONS = (
    "JsonToStructs",
    "StructsToJson",
    "CsvToStructs",
    "StructsToCsv",
    "XmlToStructs",
    "StructsToXml",
)
_NO_TEXT = {
    "LikeAll": "LIKE ALL",
    "NotLikeAll": "NOT LIKE ALL",
    "LikeAny": "LIKE ANY",
    "NotLikeAny": "NOT LIKE ANY",
}
_FOREIGN = ("Invoke", "NewInstance", "StaticInvoke", "DirectInvoke", "ExternalMapToCatalyst")
_UDFS = ("PythonUDF", "PythonUDAF", "ScalaUDF", "ScalaAggregator", "ScalaUDAF", "ApplyFunction")

Hook = Callable[[Any, str], Scalar | None]


class Scalars:
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

    def of(self, exprs: list[Any]) -> tuple[Scalar, ...]:
        """Several expressions."""
        return tuple(self(e) for e in exprs)

    def _translate(self, e: Any, kind: str) -> Scalar:
        match kind:
            case "AttributeReference":
                return self._column(e)
            case "Alias" | "TempResolvedColumn":
                return self(children(e)[0])
            case "Literal":
                return self._literal(e)
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
            case _ if kind in _TRANSPARENT:
                return self(children(e)[-1])
            case _:
                return self._engine(e, kind)

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
            return self._engine(e, kind)
        if types <= {"bigint"}:
            return Call(_ARITHMETIC[kind], self._alike(sides))
        if types <= set(_INTEGRAL):
            return Call(_ARITHMETIC[kind], self.of(sides))
        return self._engine(e, kind)

    def _subquery(self, number: int, e: Any) -> Scalar:
        found = self.subqueries.get(number)
        if found is None:
            raise Unsupported(f"The subquery {e.sql()} has no translation in this place.")
        return found

    def _common(self, e: Any) -> Scalar:
        for definition in items(e.defs()):
            self.shared[str(definition.id().toString())] = self(children(definition)[0])
        return self(e.child())

    # ── text ──

    def _engine(self, e: Any, kind: str) -> Scalar:
        match kind:
            case _ if kind in _NO_TEXT:
                raise Unsupported(
                    f"{_NO_TEXT[kind]} with a list of patterns cannot be written back as SQL;"
                    " write the patterns as single LIKE conditions."
                )
            case _ if kind in _UDFS:
                raise Unsupported(
                    f"The function {_function_name(e)} lives in this session only and cannot be"
                    " stored as SQL."
                )
            case "LambdaFunction":
                return self._lambda(e)
            case "NamedLambdaVariable":
                return Opaque((_variable(e),), ())
            case "CreateNamedStruct":
                return splice(["named_struct(", *joined(self.of(children(e))), ")"])
            case "Collate":
                child, collation = children(e)
                return closed(splice([self(child), f" COLLATE {collation.sql()}"]))
            case "UpdateFields":
                return self(e.evalExpr())
            case "PreciseTimestampConversion":
                return self._micros(e)
            case "StaticInvoke" if e.functionName() == "readSidePadding":
                return self(items(e.arguments())[0])  # reading the table pads again
            case _ if kind in _FOREIGN:
                raise Unsupported(f"The expression {e.toString()} cannot be written as SQL.")
            case _ if kind in _OPTIONS:
                return self._with_options(e, kind)
            case _ if self.jvm.inherits_analysis(e, kind):
                return self._stand_in(e, kind)
            case _:
                return closed(self.text(e))

    def text(self, e: Any, *flags: bool) -> Opaque:
        """The text that an expression gives of itself, its arguments cut out."""
        args: list[Scalar] = []
        new = [self._marked(c, args) for c in children(e)]
        if args:
            e = e.withNewChildren(self.jvm.seq(new))
        return cut(str(e.sql(*flags)), args)

    def _marked(self, child: Any, args: list[Scalar]) -> Any:
        kind = str(child.nodeName())
        if kind == "Literal":
            return child
        if kind == "SortOrder":
            inner = [self._marked(c, args) for c in children(child)]
            return child.withNewChildren(self.jvm.seq(inner))
        args.append(self(child))
        return self.jvm.marker(len(args) - 1, child.dataType())

    def order(self, e: Any) -> Opaque:
        """A sort order: the expression, its direction, and where NULLs go."""
        direction = f" {e.direction().sql()} {e.nullOrdering().sql()}"
        return splice([self(e.child()), direction])

    def _lambda(self, e: Any) -> Scalar:
        names = [_variable(a) for a in items(e.arguments())]
        given = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return splice([f"{given} -> ", self(e.function())])

    def _micros(self, e: Any) -> Scalar:
        """The microseconds of a timestamp, and back: what time windows are made of."""
        target, source = (str(t.catalogString()) for t in (e.toType(), e.fromType()))
        function = {"bigint": "unix_micros", "timestamp": "timestamp_micros"}.get(target)
        if function is None or "timestamp_ntz" in (target, source):
            raise Unsupported("A time window over TIMESTAMP_NTZ cannot be written back as SQL.")
        return splice([f"{function}(", self(children(e)[0]), ")"])

    def _with_options(self, e: Any, kind: str) -> Scalar:
        given = [(str(p._1()), str(p._2())) for p in items(e.options().toSeq())]
        pieces: list[str | Scalar] = [f"{e.prettyName()}(", self(children(e)[0])]
        if kind.endswith("ToStructs"):
            pieces += [", ", Const(str(e.schema().sql()))]
        if given:
            flat = [Const(text) for pair in sorted(given) for text in pair]
            pieces += [", map(", *joined(flat), ")"]
        return splice([*pieces, ")"])

    def _stand_in(self, e: Any, kind: str) -> Scalar:
        """The replacement of an expression that only stands for one, or its own text.

        A replacement tries silently where the name begins with try, which no text of it says.
        """
        if not kind.startswith("Try"):
            try:
                return self(e.replacement())
            except Unsupported:
                pass
        params = self.of(items(e.parameters()))
        return splice([f"{e.prettyName()}(", *joined(params), ")"])


def negated(number: int) -> int:
    """The number of a subquery in NOT IN, which is another one than in IN."""
    return -1 - number


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


def _variable(e: Any) -> str:
    return f"{e.name()}_{expr_id(e)}"


def _function_name(e: Any) -> str:
    if e.nodeName() == "ScalaUDF":
        return str(option(e.udfName()) or "of Scala")
    return str(e.name()) if e.nodeName().startswith("Python") else str(e.prettyName())
