"""The one door: SQL text or a DataFrame in, a definition out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from viewkeeper.frontend.definition import (
    Definition,
    DuplicateOutputColumnError,
    NotAQueryError,
)
from viewkeeper.frontend.jvm import OURS, Jvm, Unsupported, children, items
from viewkeeper.frontend.plans import RELATIONS, Plans
from viewkeeper.frontend.volatile import operators, volatile

_COMMANDS = (
    "org.apache.spark.sql.catalyst.plans.logical.Command",
    "org.apache.spark.sql.catalyst.plans.logical.ParsedStatement",
    "org.apache.spark.sql.catalyst.plans.logical.CompoundBody",
)


def read(spark: Any, query: Any, *, check: bool = True) -> Definition:
    """The definition of a view, from its query.

    Parameters
    ----------
    spark : SparkSession
    query : str or DataFrame
        A SELECT in Spark SQL, or a DataFrame.
    check : bool
        Write the result back as SQL and let Spark analyse it: the types must come out the same.

    Returns
    -------
    Definition

    Raises
    ------
    NotAQueryError
        The text is a statement such as INSERT; it is not run.
    DuplicateOutputColumnError
        Two output columns have one name.

    Examples
    --------
    >>> from viewkeeper.frontend import read
    >>> d = read(spark, "SELECT a, count(*) AS n FROM t GROUP BY a")  # doctest: +SKIP
    >>> print(d.query)  # doctest: +SKIP
    Γ[a; count(*) AS n](`spark_catalog.default.t`)
    """
    jvm = Jvm(spark)
    frame = _frame(spark, query, jvm)
    analysed = frame._jdf.queryExecution().analyzed()
    schema = frame.schema
    _check_names(schema.names)
    found = volatile(jvm, analysed)
    plans = Plans(jvm)
    try:
        plan = jvm.prepare(analysed)
        result = plans(plan).exactly(items(analysed.output()))
    except Unsupported as e:
        complete = True
        for node, scalars in operators(analysed):  # also those that were not translated
            plans.note_source(node)
            complete = complete and not _is_beyond(node, scalars)
        return Definition(
            None,
            plans.sources,
            schema,
            found or e.volatile,
            e.sentence,
            _each_once(plans),
            complete=complete,
        )
    unstable = plans.unstable[0] if plans.unstable else None
    texts = tuple(sorted(set(jvm.stands_for)))
    definition = Definition(
        result, plans.sources, schema, found, None, _each_once(plans), unstable, texts
    )
    definition = replace(definition, of_session=jvm.of_session)
    return _checked(spark, definition) if check else definition


def _frame(spark: Any, query: Any, jvm: Jvm) -> Any:
    if not isinstance(query, str):
        return query
    parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan(query)
    if any(jvm.is_a(parsed, c) for c in _COMMANDS):
        raise NotAQueryError(
            f"{query.split(None, 1)[0].upper()} is a statement, not a query",
            hint="Give a SELECT, or a DataFrame.",
            text=query,
            span=(0, 0),
        )
    return spark.sql(query)


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise DuplicateOutputColumnError(
                f"the query has two output columns named {name!r}",
                hint="Give one of them another name with AS.",
            )
        seen.add(name.lower())


def _is_beyond(node: Any, scalars: list[Any]) -> bool:
    """Whether an operator reads what no list of tables tells: a view of Spark's or a function,
    which may be redefined, the rows of a session, any source that is no table."""
    if any(re.search("UD[AT]?F", e.nodeName()) for e in scalars):
        return True
    if node.nodeName() == "View":
        return not node.desc().properties().contains(OURS)
    known = node.nodeName() in (*RELATIONS, "LocalRelation", "OneRowRelation", "Range")
    return node.nodeName() == "SQLFunctionNode" or (not children(node) and not known)


def _each_once(plans: Plans) -> tuple[str, ...]:
    return tuple(dict.fromkeys(plans.notes))


def _checked(spark: Any, definition: Definition) -> Definition:
    """The definition, or an unsupported one where its SQL text does not mean the same."""
    try:
        schema = spark.sql(definition.as_read()).schema
    except Exception as e:  # whatever Spark has against the text
        why = f"The query cannot be written back as SQL: {str(e).strip().splitlines()[0]}"
    else:
        old = [(f.name, f.dataType.simpleString()) for f in definition.schema]
        new = [(f.name, f.dataType.simpleString()) for f in schema]
        if old == new:
            return definition
        a, b = next((a, b) for a, b in zip(old, new, strict=False) if a != b)
        why = f"The column {a[0]} of type {a[1]} comes back from SQL as {b[0]} of type {b[1]}."
    return replace(definition, query=None, unsupported=why, unstable=None)
