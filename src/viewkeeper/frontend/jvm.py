"""The way into Catalyst: Scala sequences, options, objects and rules, reached through py4j."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from viewkeeper.records import SETTINGS

_CATALYST = "org.apache.spark.sql.catalyst."
_OPTIMIZER = _CATALYST + "optimizer."
OURS = "viewkeeper.view"  # a property of the views that show materialized ones
_MOST_ROUNDS = 12
_SUBQUERIES = ("EXISTS_SUBQUERY", "IN_SUBQUERY")
# Positions: predicates are pulled up before the subqueries that hold them become joins.
_UNNESTING = (
    "PullupCorrelatedPredicates",
    "RewriteCorrelatedScalarSubquery",
    "RewriteLateralSubquery",
)


class Unsupported(Exception):
    """Something in a query that has no translation; the text is a sentence for the user."""

    def __init__(self, sentence: str, volatile: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.volatile = volatile


def items(seq: Any) -> list[Any]:
    """The elements of a Scala sequence."""
    return [seq.apply(i) for i in range(seq.size())]


def option(value: Any) -> Any:
    """What a Scala option holds, or None."""
    return value.get() if value.isDefined() else None


def children(node: Any) -> list[Any]:
    """The children of a Catalyst plan or expression."""
    return items(node.children())


def walk(node: Any) -> Iterator[Any]:
    """A plan or an expression and all below it, the node itself first."""
    stack = [node]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(reversed(children(part)))


def expr_id(e: Any) -> int:
    """The number by which Catalyst knows a column."""
    return int(e.exprId().id())


def class_name(node: Any) -> str:
    """The class of a node; its own name may be the function's, as the user wrote it."""
    return str(node.getClass().getSimpleName()).rstrip("$")


_NO_ORDER = re.compile(
    r"map<|variant|geometry|geography|udt|interval(?! (year|month|day|hour|min|sec))"
)


def orderable(kind: str) -> bool:
    """Whether values of a type, given as text, can be sorted, all parts of it.

    >>> [orderable(t) for t in ("array<int>", "map<int,int>", "interval", "interval day to second")]
    [True, False, False, True]
    """
    return _NO_ORDER.search(kind) is None


# Classes and packages by their full names; each part of a name is a question to the JVM.
_NAMED: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


class Jvm:
    """Catalyst's classes and objects, for one session."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self.root = spark._jvm
        self._inherits: dict[str, bool] = {}
        self._functions: dict[str, bool] = {}
        self.of_session = False  # whether a temporary view is read
        self.stands_for: list[str] = []  # the texts of the views and SQL functions in plans

    def named(self, path: str) -> Any:
        """A class or an object's companion by its full name."""
        held = _NAMED.setdefault(self.root, {})
        if path not in held:
            found = self.root
            for part in path.split("."):
                found = getattr(found, part)
            held[path] = found
        return held[path]

    def object(self, path: str) -> Any:
        """A Scala object by its full name."""
        return getattr(self.named(path + "$"), "MODULE$")

    def seq(self, values: list[Any]) -> Any:
        """A Scala sequence of the values."""
        return self.root.PythonUtils.toSeq(values)

    def has(self, node: Any, pattern: str) -> bool:
        """Whether a tree holds a node of a Catalyst tree pattern."""
        patterns = self.named(_CATALYST + "trees.TreePattern")
        return bool(node.containsPattern(getattr(patterns, pattern)()))

    def is_a(self, value: Any, class_name: str) -> bool:
        """Whether a JVM object is of a class or has a trait."""
        return bool(self.named("java.lang.Class").forName(class_name).isInstance(value))

    def inherits_analysis(self, e: Any, kind: str) -> bool:
        """Whether an expression only stands for another one, its replacement."""
        if kind not in self._inherits:
            trait = _CATALYST + "expressions.InheritAnalysisRules"
            self._inherits[kind] = self.is_a(e, trait)
        return self._inherits[kind]

    def knows(self, name: str) -> bool:
        """Whether the session has a function of this name."""
        if name not in self._functions:
            catalog = self.spark._jsparkSession.sessionState().catalog()
            found = catalog.lookupBuiltinOrTempFunction(name)
            self._functions[name] = bool(found.isDefined())
        return self._functions[name]

    def literals(self, values: Any, data_type: Any) -> list[Any]:
        """Catalyst's own values as literals of a type."""
        made = self.named(_CATALYST + "expressions.Literal")
        return [made(values.apply(n), data_type) for n in range(values.size())]

    def marker(self, index: int, data_type: Any) -> Any:
        """A column whose name marks the place of an argument in the text of an expression."""
        expressions = self.named(_CATALYST + "expressions")
        empty = self.object("org.apache.spark.sql.types.Metadata").empty()
        fresh = expressions.NamedExpression.newExprId()
        name = f"vk_{index}_vk"
        nothing = self.seq([])
        return expressions.AttributeReference(name, data_type, True, empty, fresh, nothing)

    def _note_views(self, plan: Any) -> None:
        """Spark's own views in a plan: what they stand for may change."""
        if "View (" not in str(plan.treeString()):
            return
        for node in walk(plan):
            if node.nodeName() == "View":
                self._check_settings(node.desc())
                self.of_session = self.of_session or bool(node.isTempView())
                if not node.desc().properties().contains(OURS):
                    text = option(node.desc().viewText()) or node.child().canonicalized().toString()
                    self.stands_for.append(f"{node.desc().identifier().toString()}: {text}")

    def _check_settings(self, view: Any) -> None:
        """A view has the settings it was made with, which its text alone does not say."""
        kept = view.viewSQLConfigs()
        for key in SETTINGS:
            value = option(kept.get(key))
            if value is not None and value != self.spark.conf.get(key):
                raise Unsupported(
                    f"The view {view.identifier().toString()} was made with {key} = {value}, which"
                    " is not the setting of the view that reads it."
                )

    def note_function(self, function: Any) -> None:
        """A function of SQL text: what it stands for may change."""
        text = option(function.exprText()) or option(function.queryText())
        self.stands_for.append(f"{function.name().toString()}: {text}")

    def rule(self, name: str, plan: Any) -> Any:
        """The plan after one of Catalyst's own rules."""
        return self.object(name).apply(plan)

    def prepare(self, plan: Any) -> Any:
        """The plan without WITH, views and aliases, its correlated subqueries made ready.

        Scalar and lateral ones become joins. EXISTS and IN stay, with what binds them to the
        outside as their condition; NOT goes inwards, as NOT IN is another operator than IN.
        """
        if self.has(plan, "CTE"):
            plan = self.named(_OPTIMIZER + "InlineCTE")(True, False).apply(plan)
        plan = self.rule(_CATALYST + "analysis.EliminateSubqueryAliases", plan)
        self._note_views(plan)
        plan = self.rule(_CATALYST + "analysis.EliminateView", plan)
        if not self.has(plan, "PLAN_EXPRESSION"):
            return plan
        plan = self.rule(_OPTIMIZER + "PullOutGroupingExpressions", plan)
        if any(self.has(plan, p) for p in _SUBQUERIES):
            plan = self.rule(_OPTIMIZER + "SimplifyBinaryComparison", plan)  # x IN (…) = false
            plan = self.rule(_OPTIMIZER + "BooleanSimplification", plan)
        for _ in range(_MOST_ROUNDS):
            before = plan
            for name in _UNNESTING:
                plan = self.rule(_OPTIMIZER + name, plan)
            if plan.fastEquals(before):
                break
        return plan
