"""The keeper: materialized views on a Spark session, kept equal to their queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from viewkeeper import answers
from viewkeeper.advice import Advice
from viewkeeper.advise import LEAST, apply
from viewkeeper.closures import ask_closure, ask_program, ask_recursive, check_recursive
from viewkeeper.creating import Wanted, drop
from viewkeeper.explain import Explanation
from viewkeeper.graph import downstream
from viewkeeper.keeper_guarding import Guarding
from viewkeeper.looking import advise_record, changes_since, explain_record, explain_text
from viewkeeper.names import full_name_or_none
from viewkeeper.records import (
    InvalidOptionError,
    RefreshReport,
    View,
    named,
)
from viewkeeper.refreshing import failure
from viewkeeper.session import local_session
from viewkeeper.statements import changes_catalog, read_statement
from viewkeeper.transactions.guarding import (
    ConstraintExplanation,
    explain_constraint,
)


def connect(path: str | os.PathLike[str], config: dict[str, str] | None = None) -> Keeper:
    """A keeper on a local Spark whose tables and views live in a folder.

    Other processes that connect to the same folder, later or at the same time, find everything.

    Parameters
    ----------
    path : str
        The folder of the lake; it is made if it is not there.
    config : dict, optional
        More Spark settings.

    Examples
    --------
    >>> import viewkeeper as vk
    >>> keeper = vk.connect("./lake")                                     # doctest: +SKIP
    """
    return Keeper(local_session(path, config))


class Keeper(Guarding):
    """Materialized views on a Spark session.

    Parameters
    ----------
    spark : SparkSession
        A classic session with Delta Lake.
    schema : str
        The schema in which viewkeeper keeps its own tables.

    Examples
    --------
    >>> import viewkeeper as vk
    >>> keeper = vk.Keeper(spark)                                         # doctest: +SKIP
    >>> keeper.create_view("totals", "SELECT c, sum(x) AS s FROM t GROUP BY c")  # doctest: +SKIP
    >>> keeper.refresh()                                                  # doctest: +SKIP
    """

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ── views ──

    def create_view(
        self,
        name: str,
        query: str | DataFrame,
        refresh: str = "auto",
        maintain: str = "deferred",
        *,
        replace: bool = False,
        comment: str = "",
    ) -> RefreshReport:
        """Creates a materialized view and fills it.

        SQL: ``CREATE [OR REPLACE] MATERIALIZED VIEW name AS query``.

        Parameters
        ----------
        name : str
            A name of one, two or three parts.
        query : str or DataFrame
            What the view is to be equal to.
        refresh : "auto", "incremental" or "full"
            How it is refreshed: as the cost model says; never in full (fails here if the query
            cannot be kept incrementally); always in full.
        maintain : "deferred" or "immediate"
            When: by ``refresh()``; or together with each transaction that changes what the view
            reads, and by ``refresh()`` for what other writers did.
        replace : bool
            Whether a view of this name may be there; it stays until the new one is complete.
        comment : str
            What the view is, for those who see it in the catalog.

        Examples
        --------
        >>> keeper.create_view("v", "SELECT c, count(*) AS n FROM t GROUP BY c")  # doctest: +SKIP
        """
        if isinstance(query, str):
            closure = ask_recursive(self.spark, query)
            if closure is not None:
                wanted = Wanted(name, closure.query, refresh, maintain, replace, closure, comment)
                return self._create(wanted)
            check_recursive(self.spark, query)
        return self._create(Wanted(name, query, refresh, maintain, replace, comment=comment))

    def create_closure(
        self,
        name: str,
        edges: str | DataFrame,
        start: str | Sequence[str],
        end: str | Sequence[str],
        graph: str = "directed",
        refresh: str = "auto",
        maintain: str = "deferred",
        *,
        replace: bool = False,
    ) -> RefreshReport:
        """Creates a view of the pairs of nodes that a path connects, and fills it.

        SQL, for directed graphs: ``CREATE MATERIALIZED VIEW name AS WITH RECURSIVE …``.

        Parameters
        ----------
        name : str
            The view has the columns ``start`` and ``end``, each pair once. For undirected graphs
            ``name_components`` has the component of each node, named by its smallest node.
        edges : str or DataFrame
            A table, a view or a query.
        start, end : str or sequence of str
            The columns for the two ends of an edge; several if they tell nodes apart together.
        graph : "directed", "acyclic" or "undirected"
            With "acyclic" edges that close a cycle are an error, and nothing changes.
        refresh : "auto", "incremental" or "full"
            As for other views.
        maintain : "deferred" or "immediate"
            As for other views; a constraint may read an immediate one.
        replace : bool
            Whether a view of this name may be there.

        Examples
        --------
        >>> keeper.create_closure("reach", "links", "src", "dst")         # doctest: +SKIP
        """
        asked = ask_closure(self.spark, edges, start, end, graph)
        return self._create(Wanted(name, asked.query, refresh, maintain, replace, asked))

    def create_program(
        self,
        name: str,
        source: str | DataFrame,
        program: str,
        refresh: str = "auto",
        maintain: str = "deferred",
        *,
        replace: bool = False,
    ) -> RefreshReport:
        """Creates a view that is kept by programs of your own, and fills it.

        Parameters
        ----------
        name : str
            The view shows the first output; ``name_output`` shows each further one.
        source : str or DataFrame
            A table, a view or a query: the rows of the program's input.
        program : str
            Stored tables, outputs, and what to do on insert and on delete, in SQL (the form is in
            docs/closure.md); or the name of a shipped system, such as "even".
        refresh : "auto", "incremental" or "full"
            As for other views.
        maintain : "deferred" or "immediate"
            As for other views; immediate ones need a program ON BATCH.
        replace : bool
            Whether a view of this name may be there.

        Examples
        --------
        >>> keeper.create_program("is_even", "SELECT id FROM t", "even")  # doctest: +SKIP
        """
        asked = ask_program(self.spark, source, program)
        return self._create(Wanted(name, asked.query, refresh, maintain, replace, asked))

    def materialized_view(
        self, function: Callable[[], Any] | None = None, *, name: str | None = None, **options: Any
    ) -> Any:
        """A decorator: the function gives the query, its name is the view's.

        In the manner of ``pyspark.pipelines.materialized_view``.

        Examples
        --------
        >>> @keeper.materialized_view                                     # doctest: +SKIP
        ... def totals():
        ...     return keeper.spark.table("t").groupBy("c").count()
        """

        def decorate(f: Callable[[], Any]) -> Callable[[], Any]:
            self.create_view(name or f.__name__, f(), **options)
            return f

        return decorate if function is None else decorate(function)

    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """Drops a view and its rows.

        SQL: ``DROP MATERIALIZED VIEW [IF EXISTS] name``. A view that others read stays.

        Examples
        --------
        >>> keeper.drop_view("v")                                         # doctest: +SKIP
        """
        self._views.sync()
        record = self._views.find(name)
        if record is None:
            if if_exists:
                return
            raise self._views.unknown(name)
        self._check_unused(record, [r.label for r in downstream(record, self._views.all())])
        drop(self._views, record)

    def views(self) -> list[View]:
        """All views, in the order of their creation: their names, with what is known of them.

        Examples
        --------
        >>> [(v, v.refresh) for v in keeper.views()]                      # doctest: +SKIP
        """
        self._views.sync()
        return [View.of(record) for record in self._views.all()]

    # ── refresh ──

    def refresh(
        self,
        name: str | Sequence[str] | None = None,
        strategy: str | None = None,
        *,
        watch: Callable[[str, RefreshReport | None], None] | None = None,
    ) -> list[RefreshReport]:
        """Brings a view (and those it reads), several, or all views, up to their sources.

        SQL: ``REFRESH MATERIALIZED VIEW name [FULL | INCREMENTAL]``. All views of one call reflect
        the same versions of the sources. Each view is changed in one atomic commit; views that do
        not read one another are refreshed at the same time.

        Parameters
        ----------
        name : str or several, optional
        strategy : "incremental" or "full", optional
            Instead of the cost model's choice.
        watch : callable, optional
            Told the name of each view when its refresh begins, and again with the report at its
            end (None if it failed).

        Examples
        --------
        >>> for report in keeper.refresh():                               # doctest: +SKIP
        ...     print(report)
        """
        reports, failed = self._refresh(name, strategy, watch)
        self._deliver()
        if failed:
            raise failure(failed, reports)
        return reports

    # ── looking ──

    def explain(self, name_or_sql: str) -> Explanation | ConstraintExplanation:
        """How a view, or a query that is not yet one, is kept: operator by operator, and why; or
        how a constraint is checked.

        SQL: ``EXPLAIN MATERIALIZED VIEW name``, ``EXPLAIN CREATE MATERIALIZED VIEW v AS query``.

        Examples
        --------
        >>> print(keeper.explain("v"))                                    # doctest: +SKIP
        """
        if not isinstance(name_or_sql, str):
            raise InvalidOptionError(
                f"{name_or_sql!r} is neither a name nor a query", hint="Give one, as a text."
            )
        self._views.sync()
        if isinstance(name_or_sql, View):
            record = self._views.find(name_or_sql)
        else:
            name = full_name_or_none(self.spark, name_or_sql)
            record = named(self._home.records(), name or "")
        if record is not None:
            return explain_record(self._views, record)
        constraint = self._transactions.constraints().get(name_or_sql)
        if constraint is not None:
            return explain_constraint(self._transactions, constraint)
        return explain_text(self._views, name_or_sql)

    def advise(self, name: str, rows: int | None = None, least: float = LEAST) -> list[Advice]:
        """What would make the refreshes of a view cheaper, with its gain and its cost.

        No rows are read: the logs' statistics tell. An empty list is good news.

        Parameters
        ----------
        name : str
        rows : int, optional
            How many rows of a source change between two refreshes; by default the median of the
            view's history.
        least : float
            The seconds a refresh that are worth telling.

        Examples
        --------
        >>> for advice in keeper.advise("v"):                             # doctest: +SKIP
        ...     print(advice)
        """
        self._views.sync()
        return advise_record(self._views, self._views.get(name), rows, least)

    def apply_advice(self, advice: Advice) -> None:
        """Does what an advice says, if that changes no rows: clustering, or a change feed.

        Examples
        --------
        >>> keeper.apply_advice(keeper.advise("v")[0])                    # doctest: +SKIP
        """
        apply(self.spark, advice)

    def changes(self, name: str, since: int) -> DataFrame:
        """The net change of a view since a version of it: its columns and ``__weight``.

        Examples
        --------
        >>> keeper.changes("v", since=report.version)                     # doctest: +SKIP
        """
        self._views.sync()
        return changes_since(self._views, self._views.seen(name), since)

    def history(self, name: str | None = None) -> DataFrame:
        """What each refresh did: strategy, rows, seconds, reason; the newest first.

        Examples
        --------
        >>> keeper.history("v").show()                                    # doctest: +SKIP
        """
        self._views.sync()
        frame = self._home.history()
        return frame if name is None else frame.where(frame.view == self._views.get(name).label)

    def sql(self, text: str) -> DataFrame:
        """Runs a statement: those about materialized views here, all others by Spark.

        Examples
        --------
        >>> keeper.sql("CREATE MATERIALIZED VIEW v AS SELECT 1 AS a")     # doctest: +SKIP
        """
        self._views.sync()
        statement = read_statement(text)
        if statement is None:
            found = self.spark.sql(text)
            if changes_catalog(text):
                self._views.keep()
            return found
        match statement.verb:
            case "create":
                assert statement.name is not None and statement.query is not None
                there = self._views.find(statement.name)
                if there is not None and statement.if_not_exists:
                    return answers.of_reports(self.spark, [])
                report = self.create_view(
                    statement.name, statement.query, replace=statement.replace, **statement.options
                )
                return answers.of_reports(self.spark, [report])
            case "refresh":
                reports = self.refresh(statement.name, statement.strategy)
                return answers.of_reports(self.spark, reports)
            case "drop":
                assert statement.name is not None
                self.drop_view(statement.name, if_exists=statement.if_exists)
                return answers.of_drop(self.spark)
            case "explain":
                explained = self.explain(statement.query or statement.name or "")
                return answers.of_plan(self.spark, explained)
            case _:
                return answers.of_views(self.spark, self.views())
