"""Expressions that we carry as the engine's text, their arguments cut out."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from py4j.protocol import Py4JJavaError

from viewkeeper.algebra.scalars import Const, Opaque, Scalar
from viewkeeper.algebra.texts import closed, cut, joined, splice
from viewkeeper.frontend.jvm import Jvm, Unsupported, children, expr_id, items, option
from viewkeeper.records import InvalidQueryError

_OPTIONS = (
    "JsonToStructs",
    "StructsToJson",
    "CsvToStructs",
    "StructsToCsv",
    "XmlToStructs",
    "StructsToXml",
)
_LIKES = {
    "LikeAll": (" LIKE ", " AND "),
    "NotLikeAll": (" NOT LIKE ", " AND "),
    "LikeAny": (" LIKE ", " OR "),
    "NotLikeAny": (" NOT LIKE ", " OR "),
}
# Functions that make a date of others: of constants they are constants.
_DATES = ("DateAdd", "DateSub", "DateAddYMInterval", "DateAddInterval", "AddMonths", "MakeDate")
_SYNTAX = ("cast", "extract", "timestampadd", "timestampdiff")
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_FOREIGN = ("Invoke", "NewInstance", "StaticInvoke", "DirectInvoke", "ExternalMapToCatalyst")
_UDFS = ("PythonUDF", "PythonUDAF", "ScalaUDF", "ScalaAggregator", "ScalaUDAF", "ApplyFunction")


class EngineText:
    """The part of ``Scalars`` that writes text; the arguments go through ``Scalars`` again."""

    jvm: Jvm

    def __call__(self, e: Any) -> Scalar:
        raise NotImplementedError

    def of(self, exprs: list[Any]) -> tuple[Scalar, ...]:
        """Several expressions."""
        return tuple(self(e) for e in exprs)

    def engine(self, e: Any, kind: str) -> Scalar:
        match kind:
            case _ if kind in _LIKES:
                return self._likes(e, *_LIKES[kind])
            case _ if kind in _UDFS:
                raise Unsupported(
                    f"The function {_function_name(e)} lives in this session only and cannot be"
                    " stored as SQL."
                )
            case "VariableReference":
                raise InvalidQueryError(
                    f"the variable {e.identifier().name()} has a value in this session only",
                    hint="Write the value into the query, or keep it in a table.",
                )
            case _ if kind in _DATES and e.foldable() and not self.jvm.has(e, "CURRENT_LIKE"):
                return self._date(e)
            case "LambdaFunction":
                return self._lambda(e)
            case "NamedLambdaVariable":
                return Opaque((_variable(e),), ())
            case "CreateNamedStruct":
                return splice(["named_struct(", *joined(self.of(children(e))), ")"])
            case "Collate":
                child, collation = children(e)
                return closed(splice([self(child), f" COLLATE {collation.sql()}"]))
            case "ExtractANSIIntervalDays":
                if e.foldable():
                    return Const(int(e.eval(None)))
                return splice(["extract(DAY FROM ", self(children(e)[0]), ")"])
            case "AtLeastNNonNulls":
                return self._at_least(int(e.n()), children(e))
            case "UpdateFields":
                return self(e.evalExpr())
            case _ if kind.startswith("ExtractANSIInterval"):
                unit = kind.removeprefix("ExtractANSIInterval").upper()
                return splice([f"extract({unit} FROM ", self(children(e)[0]), ")"])
            case "PreciseTimestampConversion":
                return self._micros(e)
            case "StaticInvoke" if e.functionName() == "readSidePadding":
                return self._padded(*items(e.arguments()))
            case "VariantGet":
                name = "variant_get(" if e.failOnError() else "try_variant_get("
                wanted = Const(str(e.targetType().sql()))
                return splice([name, *joined((*self.of(children(e)), wanted)), ")"])
            case _ if kind in _FOREIGN:
                raise Unsupported(f"The expression {e.toString()} cannot be written as SQL.")
            case _ if kind in _OPTIONS:
                return self._with_options(e, kind)
            case _ if self.jvm.inherits_analysis(e, kind):
                return self._stand_in(e, kind)
            case _:
                return self._call(e)

    def _date(self, e: Any) -> Scalar:
        """The value of an expression of constants that is a date; its text, if it has none."""
        try:
            found = date(1970, 1, 1) + timedelta(days=e.eval(None))
        except (Py4JJavaError, TypeError, OverflowError):  # an error of the expression, or NULL
            return self._call(e)
        return Opaque((f"DATE '{found.isoformat()}'",), ())

    def _call(self, e: Any) -> Scalar:
        """The engine's own text, unless it calls a function that has no name in SQL."""
        text, name = self.text(e), str(e.prettyName())
        plain = text.parts[0].startswith(f"{name}(") and name not in _SYNTAX
        if plain and not self.jvm.knows(name):
            raise Unsupported(f"The expression {e.toString()} cannot be written as SQL.")
        return closed(text)

    def _at_least(self, least: int, parts: list[Any]) -> Scalar:
        """At least so many of the values are neither NULL nor NaN (what ``na.drop`` asks)."""
        ones: list[str | Scalar] = []
        for part in parts:
            value = self(part)
            floats = str(part.dataType().catalogString()) in ("float", "double")
            nan = [" OR isnan(", value, ")"] if floats else []
            ones += [" + " if ones else "", "if(", value, " IS NULL", *nan, ", 0, 1)"]
        return splice(["(", *ones, f" >= {least})"])

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
        inner = self(children(e)[0])
        if source == "timestamp_ntz":  # by way of an interval: no time zone takes part
            seconds = ["CAST(CAST((", inner, f" - {_EPOCH}) AS INTERVAL SECOND) AS DECIMAL(18,6))"]
            return splice(["CAST((", *seconds, " * 1000000) AS BIGINT)"])
        if target == "timestamp_ntz":
            seconds = ["CAST((CAST(", inner, " AS DECIMAL(20,0)) * 0.000001BD) AS DECIMAL(18,6))"]
            return splice([f"({_EPOCH} + make_dt_interval(0, 0, 0, ", *seconds, "))"])
        function = "unix_micros" if target == "bigint" else "timestamp_micros"
        return splice([f"{function}(", inner, ")"])

    def _likes(self, e: Any, like: str, between: str) -> Scalar:
        """LIKE with a list of patterns, as one condition for each."""
        text = self(children(e)[0])
        patterns = [None if p is None else str(p.toString()) for p in items(e.patterns())]
        return splice(
            ["(", *joined([splice([text, like, Const(p)]) for p in patterns], between), ")"]
        )

    def _padded(self, value: Any, width: Any) -> Scalar:
        """What Spark reads from a CHAR column: files may have it without its last blanks."""
        text = self(value)
        return splice(["rpad(", text, ", greatest(char_length(", text, f"), {width.sql()}))"])

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


def _variable(e: Any) -> str:
    return f"{e.name()}_{expr_id(e)}"


def _function_name(e: Any) -> str:
    if e.nodeName() == "ScalaUDF":
        return str(option(e.udfName()) or "of Scala")
    return str(e.name()) if e.nodeName().startswith("Python") else str(e.prettyName())
