"""The keeper: materialized views on a Spark session, kept equal to their queries."""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from viewkeeper import answers
from viewkeeper.advice import Advice
from viewkeeper.advise import LEAST, apply
from viewkeeper.closures import ask_closure, ask_program, ask_recursive, check_recursive
from viewkeeper.creating import Wanted, create, drop
from viewkeeper.engine.vector import Vector
from viewkeeper.explain import Explanation
from viewkeeper.graph import downstream, with_downstream, with_upstream
from viewkeeper.looking import advise_record, changes_since, explain_record, explain_text
from viewkeeper.names import full_name_or_none
from viewkeeper.records import (
    InvalidOptionError,
    Record,
    RefreshReport,
    SessionError,
    View,
    ViewInUseError,
    named,
    one_of,
)
from viewkeeper.refreshing import failure, refresh_views
from viewkeeper.session import check_classic, local_session
from viewkeeper.statements import read_statement
from viewkeeper.transactions.checking import Violation, check, stores_read
from viewkeeper.transactions.constraints import Constraint, Form
from viewkeeper.transactions.errors import TransactionError
from viewkeeper.transactions.guarding import (
    ConstraintExplanation,
    add_constraint,
    check_name,
    drop_constraint,
    explain_constraint,
)
from viewkeeper.transactions.guarding import unknown as unknown_constraint
from viewkeeper.transactions.manager import Host, Transactions
from viewkeeper.transactions.snapshot import Snapshot, snapshot
from viewkeeper.transactions.subscriptions import Subscription, Subscriptions, ViewChange
from viewkeeper.transactions.transaction import Transaction
from viewkeeper.views import Views


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


class Keeper:
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

    def __init__(self, spark: SparkSession, schema: str = "viewkeeper") -> None:
        check_classic(spark)
        self._spark: SparkSession | None = spark
        self._views = Views(lambda: self.spark, schema)
        self._home = self._views.home
        self._transactions = Transactions(self._host())
        self._subscriptions = Subscriptions(self._host())
        self._views.sync()
        try:
            self._transactions.recover()
        except TransactionError as error:  # whoever repairs the table must be able to connect
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)

    @property
    def spark(self) -> SparkSession:
        """The Spark session."""
        if self._spark is None:
            raise SessionError("this keeper was stopped", hint="Connect again.")
        if self._spark.sparkContext._jsc is None:
            raise SessionError("the Spark session has ended", hint="Connect again.")
        return self._spark

    def stop(self) -> None:
        """Ends the Spark session."""
        if self._spark is not None:
            self._spark.stop()
            self._spark = None

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

        Examples
        --------
        >>> keeper.create_view("v", "SELECT c, count(*) AS n FROM t GROUP BY c")  # doctest: +SKIP
        """
        if isinstance(query, str):
            closure = ask_recursive(self.spark, query)
            if closure is not None:
                wanted = Wanted(name, closure.query, refresh, maintain, replace, closure)
                return self._create(wanted)
            check_recursive(self.spark, query)
        return self._create(Wanted(name, query, refresh, maintain, replace))

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

    def _refresh(
        self,
        name: str | Sequence[str] | None,
        strategy: str | None = None,
        watch: Callable[[str, RefreshReport | None], None] | None = None,
    ) -> tuple[list[RefreshReport], dict[str, Exception]]:
        """The same, without telling anybody; and what failed."""
        if strategy is not None:
            one_of("strategy", strategy, ("incremental", "full"))
        start = datetime.datetime.now(datetime.timezone.utc)
        self._views.sync()
        names = [name] if isinstance(name, str) else list(name or ())
        chosen = [self._views.get(n) for n in names] or self._views.all()
        insisted = {record.name for record in chosen} if names else set()
        wanted = with_upstream(chosen, self._views.all())
        reports, failed = refresh_views(
            self._views, wanted, self._vector(wanted), strategy, insisted or None, watch
        )
        self._home.log([r for r in reports if r.lane != "none"], start)
        return reports, failed

    # ── transactions ──

    def transaction(self) -> Transaction:
        """Changes of several tables, all or nothing: committed at the end of the block.

        Constraints are checked before anything is written; immediate views change with it.

        Examples
        --------
        >>> with keeper.transaction() as t:                               # doctest: +SKIP
        ...     t.insert("orders", [(1, "ann")])
        ...     t.delete("carts", "owner = 'ann'")
        """
        self._views.sync()
        return self._transactions.begin()

    def add_constraint(self, name: str, query: str | Form) -> Constraint:
        """Adds a constraint: a query that must stay empty.

        Parameters
        ----------
        name : str
        query : str, or ``vk.key(…)``, or ``vk.foreign_key(…)``
            The query of violations; or ``ALWAYS (SELECT …)``, a query of one truth value.

        Raises
        ------
        ConstraintViolation
            When the present data violates it.

        Examples
        --------
        >>> keeper.add_constraint("paid", "SELECT * FROM orders WHERE due < 0")  # doctest: +SKIP
        >>> keeper.add_constraint("k", vk.key("orders", "id"))            # doctest: +SKIP
        """
        self._views.sync()
        return add_constraint(self._transactions, name, query)

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> None:
        """Drops a constraint.

        Examples
        --------
        >>> keeper.drop_constraint("paid")                                # doctest: +SKIP
        """
        drop_constraint(self._transactions, name, if_exists=if_exists)

    def constraints(self) -> list[Constraint]:
        """All constraints.

        Examples
        --------
        >>> [(c.name, c.given) for c in keeper.constraints()]             # doctest: +SKIP
        """
        self._views.sync()
        self._transactions.recover()
        return list(self._transactions.constraints().values())

    def check(self, name: str | None = None) -> list[Violation]:
        """Looks for violations of one constraint, or of all, that came around viewkeeper.

        Only what changed since the last check is evaluated. Each violation names the commit. A
        constraint that cannot be checked is in the list with its ``error``; the others are looked
        at all the same.

        Examples
        --------
        >>> for violation in keeper.check():                              # doctest: +SKIP
        ...     print(violation)
        """
        self._views.sync()
        if name is not None:
            check_name(name)
            if name not in self._transactions.constraints():
                raise unknown_constraint(self._transactions, name)
        read = stores_read(self._transactions, name)
        views = {r.name: r.store for r in self._views.all() if r.store in read}
        failed: dict[str, Exception] = {}
        if views:  # what other writers did is to be seen through them as well
            _, failed = self._refresh(list(views))
            self._deliver()
        broken = {views[view]: error for view, error in failed.items() if view in views}
        return check(self._transactions, name, broken)

    def snapshot(self, *tables: str) -> Snapshot:
        """Several tables and views at one moment, between two transactions.

        Examples
        --------
        >>> moment = keeper.snapshot("orders", "items")                   # doctest: +SKIP
        >>> moment.sql("SELECT count(*) FROM orders JOIN items USING (id)")  # doctest: +SKIP
        """
        self._views.sync()
        return snapshot(self._transactions, tables)

    def recover(self) -> int:
        """Finishes transactions that a process could not carry to the end; how many these were.

        Connecting, refreshing and committing do it by themselves.

        Examples
        --------
        >>> keeper.recover()                                              # doctest: +SKIP
        """
        self._views.sync()
        return self._transactions.recover()

    # ── active queries ──

    def on_change(
        self, view: str, callback: Callable[[ViewChange], Any], name: str | None = None
    ) -> Subscription:
        """Calls back with each change of a view: ∇ and Δ of each refresh or commit.

        There is no call without a net change. Changes by other processes are told at this one's
        next refresh, commit or ``poll()``.

        Parameters
        ----------
        view : str
        callback : callable
            Gets a change: ``view``, ``version``, ``removed`` and ``added`` (DataFrames).
        name : str, optional
            Keeps the position in the lake. The first change is then the whole view (``snapshot``
            is true), and another process that uses the name goes on where the last one ended. A
            change is told again if the process ended before its callback returned.

        Examples
        --------
        >>> keeper.on_change("v", lambda change: change.added.show())     # doctest: +SKIP
        """
        self._views.sync()
        return self._subscriptions.add(self._views.seen(view), callback, name)

    def poll(self) -> int:
        """Tells subscribers what other processes changed; how many changes there were.

        Examples
        --------
        >>> keeper.poll()                                                 # doctest: +SKIP
        """
        self._views.sync()
        return self._subscriptions.deliver()

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
            return self.spark.sql(text)
        match statement.verb:
            case "create":
                assert statement.name is not None and statement.query is not None
                there = self._views.find(statement.name)
                if there is not None and statement.if_not_exists:
                    return answers.of_reports(self.spark, [])
                replace, mode = statement.replace, statement.refresh
                report = self.create_view(statement.name, statement.query, mode, replace=replace)
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

    # ── inside ──

    def _create(self, wanted: Wanted) -> RefreshReport:
        self._views.sync()
        old = self._views.find(wanted.name)
        if old is not None and wanted.replace:  # a constraint may not hold for another query
            for record in with_downstream(old, self._views.all()):
                self._check_unused(record, [])
        return create(self._views, wanted)

    def _check_unused(self, record: Record, users: list[str]) -> None:
        """Raises if the users, or constraints, read a view that is to go."""
        guards = self._transactions.constraints().values()
        users = users + [f"the constraint {c.name}" for c in guards if record.store in c.reads]
        if users:
            raise ViewInUseError(
                f"{record.label} is read by {', '.join(users)}", hint="Drop these first."
            )

    def _host(self) -> Host:
        """What transactions need of the keeper."""
        return Host(
            spark=lambda: self.spark,
            home=self._home,
            known=self._views.known,
            records=self._home.records,
            compiled=self._views.compiled,
            refresh=self._catch_up,
            committed=self._deliver,
            sync=self._views.sync,
        )

    def _catch_up(self, names: list[str]) -> None:
        """Refreshes immediate views within a transaction: who asked is told when it is over."""
        reports, failed = self._refresh(names)
        if failed:
            raise failure(failed, reports)

    def _vector(self, records: Sequence[Record]) -> Vector:
        """The versions of all sources at one moment, with no transaction half done."""
        names = dict.fromkeys(name for record in records for name in record.reads)
        return self._transactions.steady(list(names), must=False)[0]

    def _deliver(self) -> None:
        """Views may have changed: tells those who asked to be told."""
        self._subscriptions.deliver()
