"""The keeper: materialized views on a Spark session, kept equal to their queries."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import os
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.advice import Advice
from viewkeeper.advise import LEAST, USUAL_ROWS, advise, apply
from viewkeeper.closures import Asked, ask_closure, ask_program, ask_recursive, check_recursive
from viewkeeper.compiled import Compiled, compile_view
from viewkeeper.definitions import Definitions, reads
from viewkeeper.engine import changes as view_changes
from viewkeeper.engine import program_changes, programs
from viewkeeper.engine.order import SkippedError, in_order
from viewkeeper.engine.refresh import build_frame, refresh, source_names
from viewkeeper.engine.runner import Runner
from viewkeeper.engine.vector import Vector
from viewkeeper.errors import UnknownTableError, suggestion
from viewkeeper.explain import Explanation, explain_query, explain_view
from viewkeeper.explain_program import explain_asked, explain_program
from viewkeeper.home import Home
from viewkeeper.lake import stores
from viewkeeper.lake.errors import ConflictError, NotDeltaError
from viewkeeper.lake.sources import Source, find, quoted
from viewkeeper.plan.choose import Timing
from viewkeeper.records import (
    MAINTAIN_MODES,
    REFRESH_MODES,
    CyclicViewError,
    InvalidOptionError,
    NameTakenError,
    NotIncrementalError,
    Record,
    RefreshFailedError,
    RefreshReport,
    SessionError,
    UnknownViewError,
    View,
    ViewInUseError,
)
from viewkeeper.session import check_classic, lake_of, local_session, sync
from viewkeeper.statements import read_statement
from viewkeeper.transactions.checking import Violation, check
from viewkeeper.transactions.constraints import Constraint, Form
from viewkeeper.transactions.guarding import (
    ConstraintExplanation,
    add_constraint,
    drop_constraint,
    explain_constraint,
)
from viewkeeper.transactions.guarding import unknown as unknown_constraint
from viewkeeper.transactions.manager import Host, Transactions
from viewkeeper.transactions.snapshot import Snapshot, snapshot
from viewkeeper.transactions.subscriptions import Subscription, Subscriptions, ViewChange
from viewkeeper.transactions.transaction import Transaction


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
        self._lake = lake_of(spark)
        self._home = Home(spark, schema)
        self._sources: dict[str, Source] = {}
        self._definitions = Definitions(spark, self._sources)
        self._readers: dict[str, tuple[str, ...]] = {}  # shown in the catalog: id to names
        self._transactions = Transactions(self._host())
        self._subscriptions = Subscriptions(self._host())
        self._sync()
        self._transactions.recover()

    @property
    def spark(self) -> SparkSession:
        """The Spark session."""
        if self._spark is None:
            raise SessionError("this keeper was stopped", hint="Connect again.")
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
            closure = ask_recursive(query)
            if closure is not None:
                return self._create(name, closure.query, refresh, maintain, replace, closure)
            check_recursive(self.spark, query)
        return self._create(name, query, refresh, maintain, replace)

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
        return self._create(name, asked.query, refresh, maintain, replace, asked)

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
        return self._create(name, asked.query, refresh, maintain, replace, asked)

    def _create(
        self,
        name: str,
        query: str | DataFrame,
        refresh: str,
        maintain: str,
        replace: bool,
        asked: Asked | None = None,
    ) -> RefreshReport:
        _one_of("refresh", refresh, REFRESH_MODES)
        _one_of("maintain", maintain, MAINTAIN_MODES)
        if asked is not None and asked.task.rowwise and maintain != "deferred":
            raise InvalidOptionError(
                f"{name} is kept by a program for one row at a time, and maintain is {maintain!r}",
                hint='Use maintain="deferred", or write a program ON BATCH.',
            )
        start = datetime.datetime.now(datetime.timezone.utc)
        self._sync()
        full_name = self._full_name(name)
        old = self._home.records().get(full_name)
        self._check_name(full_name, old, replace)
        compiled = compile_view(self.spark, query)
        if refresh == "incremental" and compiled.blocked:
            raise NotIncrementalError(
                f"{name} cannot be kept incrementally: {compiled.blocked}",
                hint='Create it with refresh="full" or "auto", or take this part out of the query.',
            )
        if maintain == "immediate":
            self._check_immediate(name, compiled, refresh)
        sql = query if isinstance(query, str) else self._text_of(name, compiled)
        catalog, schema = self._current()
        identity = uuid.uuid4().hex
        record = Record(
            id=identity,
            name=full_name,
            label=name,
            sql=sql,
            catalog=catalog,
            schema=schema,
            store=f"{self._home.schema}.{quoted('store_' + identity[:16])}",
            refresh=refresh,
            maintain=maintain,
            created=start.isoformat(),
            columns=compiled.columns,
            reads=reads(compiled),
        )
        if asked is None:
            record = dataclasses.replace(record, reader=compiled.reader_sql(record.store))
        else:
            record = asked.record(self.spark, record, compiled)
            self._check_others(record, old)
        self._check_cycle(record, old)
        report = self._build(record, compiled)
        try:
            self._home.save(record, after=old.id if old else None)
        except ConflictError:
            self._drop_store(record)
            raise
        self._definitions.put(record, compiled)
        self._show(record)
        if old is not None:
            self._hide([n for n, _ in old.others if n not in dict(record.others)])
            self._redirect(old, record)
            self._drop_store(old)
        self._log([report], start)
        return report

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

        def create(f: Callable[[], Any]) -> Callable[[], Any]:
            self.create_view(name or f.__name__, f(), **options)
            return f

        return create if function is None else create(function)

    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """Drops a view and its rows.

        SQL: ``DROP MATERIALIZED VIEW [IF EXISTS] name``. A view that others read stays.

        Examples
        --------
        >>> keeper.drop_view("v")                                         # doctest: +SKIP
        """
        self._sync()
        records = self._home.records()
        full_name = self._full_name(name)
        if full_name not in records and if_exists:
            return
        record = self._record(name)
        users = [r.label for r in records.values() if record.store in r.reads]
        guards = self._transactions.constraints().values()
        users += [f"the constraint {c.name}" for c in guards if record.store in c.reads]
        if users:
            raise ViewInUseError(f"{name} is read by {', '.join(users)}", hint="Drop these first.")
        self._hide([record.name, *(name for name, _ in record.others)])
        self._home.remove(record.name)
        self._drop_store(record)

    def views(self) -> list[View]:
        """All views, in the order of their creation: their names, with what is known of them.

        Examples
        --------
        >>> [(v, v.refresh) for v in keeper.views()]                      # doctest: +SKIP
        """
        self._sync()
        return [View.of(record) for record in self._home.records().values()]

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
        if strategy is not None:
            _one_of("strategy", strategy, ("incremental", "full"))
        start = datetime.datetime.now(datetime.timezone.utc)
        self._sync()
        names = [name] if isinstance(name, str) else list(name or ())
        insisted = {self._full_name(n) for n in names}
        wanted = self._with_upstream(names)
        vector = self._vector(wanted)
        records = {r.name: r for r in wanted}
        needs = {r.name: [u.name for u in self._upstream(r)] for r in wanted}
        lock = threading.Lock()

        def tell(label: str, report: RefreshReport | None) -> None:
            if watch is not None:
                with lock:
                    watch(label, report)

        def one(full_name: str) -> RefreshReport:
            record, report = records[full_name], None
            insist = strategy if not names or full_name in insisted else None
            tell(record.label, None)
            try:
                with lock:  # compiling uses the session's current schema
                    compiled = self._compile(record)
                report = self._refresh(record, compiled, vector, insist)
                return report
            finally:
                tell(record.label, report)

        done, failed = in_order(list(records), needs, one)
        reports = list(done.values())
        self._log([r for r in reports if r.lane != "none"], start)
        self._deliver()
        if failed:
            told = {
                n: _upstream_failed(records[n]) if isinstance(e, SkippedError) else e
                for n, e in failed.items()
            }
            raise _failure(told, reports)
        return reports

    def _refresh(
        self, record: Record, compiled: Compiled, vector: Vector, insist: str | None
    ) -> RefreshReport:
        if insist is None and record.refresh == "full":
            insist = "full"
        if insist is None and record.refresh == "incremental":
            insist = "incremental"
        ways = programs.WAYS if record.program else None
        return refresh(self.spark, record, compiled, vector, insist, ways)

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
        self._sync()
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
        self._sync()
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
        self._sync()
        self._transactions.recover()
        return list(self._transactions.constraints().values())

    def check(self, name: str | None = None) -> list[Violation]:
        """Looks for violations of one constraint, or of all, that came around viewkeeper.

        Only what changed since the last check is evaluated. Each violation names the commit.

        Examples
        --------
        >>> for violation in keeper.check():                              # doctest: +SKIP
        ...     print(violation)
        """
        self._sync()
        if name is not None and name not in self._transactions.constraints():
            raise unknown_constraint(self._transactions, name)
        return check(self._transactions, name)

    def snapshot(self, *tables: str) -> Snapshot:
        """Several tables and views at one moment, between two transactions.

        Examples
        --------
        >>> moment = keeper.snapshot("orders", "items")                   # doctest: +SKIP
        >>> moment.sql("SELECT count(*) FROM orders JOIN items USING (id)")  # doctest: +SKIP
        """
        self._sync()
        return snapshot(self._transactions, tables)

    def recover(self) -> int:
        """Finishes transactions that a process could not carry to the end; how many these were.

        Connecting, refreshing and committing do it by themselves.

        Examples
        --------
        >>> keeper.recover()                                              # doctest: +SKIP
        """
        self._sync()
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
        self._sync()
        return self._subscriptions.add(self._record(view), callback, name)

    def poll(self) -> int:
        """Tells subscribers what other processes changed; how many changes there were.

        Examples
        --------
        >>> keeper.poll()                                                 # doctest: +SKIP
        """
        self._sync()
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
        self._sync()
        record = self._home.records().get(self._full_name_or_none(name_or_sql) or "")
        constraint = self._transactions.constraints().get(name_or_sql)
        if record is None and constraint is not None:
            return explain_constraint(self._transactions, constraint)
        if record is None:
            if len(name_or_sql.split()) == 1:
                raise self._unknown(name_or_sql)
            asked = ask_recursive(name_or_sql)
            if asked is not None:
                compiled = compile_view(self.spark, asked.query)
                return explain_asked(asked.task, compiled)
            return explain_query(compile_view(self.spark, name_or_sql), name_or_sql)
        vector = Vector(self.spark, self._sources)
        if record.program:
            return explain_program(self.spark, record, self._compile(record), vector)
        return explain_view(self.spark, record, self._compile(record), vector)

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
        self._sync()
        record = self._record(name)
        if rows is None:
            rows = self._home.usual_change(record.label) or USUAL_ROWS
        vector = Vector(self.spark, self._sources)
        ours = {r.store for r in self._home.records().values()}
        compiled = self._compile(record)
        return advise(self.spark, record, compiled, vector, rows=rows, least=least, ours=ours)

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
        self._sync()
        record = self._record(name)
        store = find(self.spark, record.store)
        if record.program:
            return program_changes.since(self.spark, store, record.reader, since)
        return view_changes.since(self.spark, store, self._compile(record).store, since)

    def history(self, name: str | None = None) -> DataFrame:
        """What each refresh did: strategy, rows, seconds, reason; the newest first.

        Examples
        --------
        >>> keeper.history("v").show()                                    # doctest: +SKIP
        """
        self._sync()
        frame = self._home.history()
        return frame if name is None else frame.where(frame.view == self._record(name).label)

    def sql(self, text: str) -> DataFrame:
        """Runs a statement: those about materialized views here, all others by Spark.

        Examples
        --------
        >>> keeper.sql("CREATE MATERIALIZED VIEW v AS SELECT 1 AS a")     # doctest: +SKIP
        """
        self._sync()
        statement = read_statement(text)
        if statement is None:
            return self.spark.sql(text)
        match statement.verb:
            case "create":
                return self._sql_create(statement)
            case "refresh":
                return self._table(self.refresh(statement.name, statement.strategy))
            case "drop":
                assert statement.name is not None
                self.drop_view(statement.name, if_exists=statement.if_exists)
                return self.spark.createDataFrame([], "view STRING")
            case "explain":
                explained = self.explain(statement.query or statement.name or "")
                return self.spark.createDataFrame([(str(explained),)], "plan STRING")
            case _:
                rows = [(str(v), v.refresh, v.sql) for v in self.views()]
                return self.spark.createDataFrame(rows, "view STRING, refresh STRING, sql STRING")

    def _sql_create(self, statement: Any) -> DataFrame:
        exists = self._full_name(statement.name) in self._home.records()
        if statement.if_not_exists and exists:
            return self._table([])
        mode = statement.properties.get("viewkeeper.refresh") or statement.properties.get("refresh")
        report = self.create_view(
            statement.name, statement.query, refresh=mode or "auto", replace=statement.replace
        )
        return self._table([report])

    def _table(self, reports: list[RefreshReport]) -> DataFrame:
        columns = "view STRING, strategy STRING, inserted BIGINT, deleted BIGINT, seconds DOUBLE"
        rows = [r.as_dict() for r in reports]
        values = [
            (r["view"], r["strategy"], r["inserted"], r["deleted"], r["seconds"], r["reason"])
            for r in rows
        ]
        return self.spark.createDataFrame(values, columns + ", reason STRING")

    # ── inside ──

    def _host(self) -> Host:
        """What transactions need of the keeper."""
        return Host(
            spark=lambda: self.spark,
            home=self._home,
            known=self._sources,
            records=self._home.records,
            compiled=self._compile,
            refresh=self.refresh,
            committed=self._deliver,
            sync=self._sync,
        )

    def _vector(self, records: Sequence[Record]) -> Vector:
        """The versions of all sources at one moment, with no transaction half done."""
        names: dict[str, None] = {}
        for record in records:
            names |= dict.fromkeys(record.reads)
        return self._transactions.steady(list(names), must=False)[0]

    def _deliver(self) -> None:
        """Views may have changed: tells those who asked to be told."""
        self._subscriptions.deliver()

    def _check_immediate(self, name: str, compiled: Compiled, refresh: str) -> None:
        if refresh == "full":
            raise InvalidOptionError(
                f"{name} is to be immediate, and refreshed in full",
                hint='Use refresh="auto" or "incremental".',
            )
        if compiled.blocked:
            raise NotIncrementalError(
                f"{name} cannot be kept immediately: {compiled.blocked}",
                hint='Create it with maintain="deferred".',
            )

    def _sync(self) -> None:
        """What other processes made or dropped: tables by the folder, views by the registry."""
        if self._lake is None:
            return
        sync(self.spark, self._lake)
        records = self._home.records()
        there = {record.id for record in records.values()}
        for gone in [i for i in self._readers if i not in there]:
            names = self._readers.pop(gone)
            there_now = {n for r in records.values() for n, _ in ((r.name, ""), *r.others)}
            self._hide([name for name in names if name not in there_now])
        for record in records.values():
            if record.id not in self._readers:
                self._show(record)

    def _show(self, record: Record) -> None:
        """The view's name in the catalog: what readers see of the store."""
        self.spark.sql(f"CREATE OR REPLACE VIEW {record.name} AS {record.reader}")
        for name, sql in record.others:
            self.spark.sql(f"CREATE OR REPLACE VIEW {name} AS {sql}")
        self._readers[record.id] = record.name, *(name for name, _ in record.others)

    def _hide(self, names: Sequence[str]) -> None:
        """Takes names out of the catalog."""
        for name in names:
            self.spark.sql(f"DROP VIEW IF EXISTS {name}")

    def _redirect(self, old: Record, new: Record) -> None:
        """The views that read a view which was replaced read the new one from now on."""
        for record in list(self._home.records().values()):
            if old.store in record.reads:
                names = tuple(sorted(new.store if r == old.store else r for r in record.reads))
                self._home.save(dataclasses.replace(record, reads=names))

    def _compile(self, record: Record) -> Compiled:
        """The compiled query of a view."""
        return self._definitions.get(record)

    def _build(self, record: Record, compiled: Compiled) -> RefreshReport:
        """Fills a new store, in one commit with the versions of the sources."""
        start = datetime.datetime.now()
        vector = Vector(self.spark, self._sources)
        pins = {leaf: vector.pin(name) for leaf, name in source_names(compiled).items()}
        self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self._home.schema}")
        sources = {
            leaf: {"id": p.source.table_id, "version": p.version, "name": p.source.name}
            for leaf, p in pins.items()
        }
        metadata = {"view": record.id, "refresh": 0, "strategy": "full", "sources": sources}
        metadata["timing"] = Timing().as_dict()
        with Runner(self.spark) as runner:
            tag = None
            if record.program:
                frame, tag = programs.first_rows(runner, record, compiled, pins)
            else:
                frame = build_frame(runner, compiled, pins, record.sql)
            made = stores.create(self.spark, record.store, frame, metadata=metadata, partition=tag)
        seconds = (datetime.datetime.now() - start).total_seconds()
        report = RefreshReport(record.label, "full", seconds, "created")
        report.lane, report.version = "create", 0
        report.sources = {leaf: (-1, p.version) for leaf, p in pins.items()}
        report.sizes = lambda: (self.spark.table(record.name).count(), 0)
        if record.program:
            report.sizes = programs.first_sizes(self.spark, record, made)
        self._sources[record.store] = made
        return report

    def _drop_store(self, record: Record) -> None:
        with contextlib.suppress(UnknownTableError, NotDeltaError):
            stores.drop(self.spark, find(self.spark, record.store))
        self._sources.pop(record.store, None)
        self._definitions.forget(record)

    def _with_upstream(self, names: list[str]) -> list[Record]:
        """The views to refresh, each after those it reads; without names, all."""
        chosen = [self._record(n) for n in names] or list(self._home.records().values())
        order: dict[str, Record] = {}

        def visit(record: Record) -> None:
            if record.name not in order:
                for r in self._upstream(record):
                    visit(r)
                order[record.name] = record

        for record in chosen:
            visit(record)
        return list(order.values())

    def _upstream(self, record: Record) -> list[Record]:
        """The views that a view reads."""
        return [r for r in self._home.records().values() if r.store in record.reads]

    def _record(self, name: str) -> Record:
        found = self._home.records().get(self._full_name(name))
        if found is None:
            raise self._unknown(name)
        return found

    def _unknown(self, name: str) -> UnknownViewError:
        known = [r.label for r in self._home.records().values()]
        return UnknownViewError(f"no view {name!r} is kept here", hint=suggestion(name, known))

    def _current(self) -> tuple[str, str]:
        catalog = self.spark.catalog
        return catalog.currentCatalog(), catalog.currentDatabase()

    def _full_name(self, name: str) -> str:
        full = self._full_name_or_none(name)
        if full is None:
            raise InvalidOptionError(
                f"{name!r} is not a name", hint="Use one, two or three parts: catalog.schema.view."
            )
        return full

    def _full_name_or_none(self, name: str) -> str | None:
        """A name of one to three parts in full, each part in backquotes."""
        try:
            parser = self.spark._jsparkSession.sessionState().sqlParser()
            parts = parser.parseMultipartIdentifier(name)
        except Exception:
            return None
        given = [parts.apply(i) for i in range(parts.size())]
        if not 1 <= len(given) <= 3:
            return None
        catalog, schema = self._current()
        full = ([catalog, schema][: 3 - len(given)]) + given
        return ".".join(quoted(p.lower()) for p in full)

    def _check_name(self, name: str, old: Record | None, replace: bool) -> None:
        if old is not None and not replace:
            raise NameTakenError(
                f"a view {name} is there already",
                hint="Drop it first, or replace it (CREATE OR REPLACE, replace=True).",
            )
        if old is None and self.spark.catalog.tableExists(name):
            raise NameTakenError(f"{name} is a table or view already", hint="Use another name.")

    def _check_others(self, record: Record, old: Record | None) -> None:
        """The further names of a view must be free as well."""
        ours = dict(old.others) if old is not None else {}
        for name, _ in record.others:
            if name not in ours and self.spark.catalog.tableExists(name):
                raise NameTakenError(f"{name} is a table or view already", hint="Use another name.")

    def _check_cycle(self, record: Record, old: Record | None) -> None:
        """A view must not read itself, by whatever way."""
        if old is None:
            return
        records = self._home.records().values()
        seen: set[str] = set()
        todo = list(record.reads)
        while todo:
            store = todo.pop()
            if store == old.store:
                raise CyclicViewError(
                    f"the new definition of {record.label} reads {record.label} itself",
                    hint="Take the view out of its own query.",
                )
            for r in records:
                if r.store == store and r.name not in seen:
                    seen.add(r.name)
                    todo += r.reads

    def _text_of(self, name: str, compiled: Compiled) -> str:
        if compiled.definition.query is None:
            raise NotIncrementalError(
                f"the DataFrame of {name} cannot be written as SQL: {compiled.blocked}",
                hint="Give the query as SQL text.",
            )
        return compiled.definition.to_sql()

    def _log(self, reports: list[RefreshReport], at: datetime.datetime) -> None:
        rows = [
            {**r.as_dict(), "at": at, "sources": json.dumps(r.as_dict()["sources"])}
            for r in reports
        ]
        if rows:
            self._home.log(rows)


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidOptionError(
            f"{what} is {value!r}", hint=f"Use one of {', '.join(map(repr, allowed))}."
        )


def _upstream_failed(record: Record) -> RefreshFailedError:
    return RefreshFailedError(
        f"{record.label} was not refreshed, because a view it reads could not be",
        hint="It is as it was before.",
    )


def _failure(failed: dict[str, Exception], reports: list[RefreshReport]) -> Exception:
    """The one error, or one that tells of all."""
    first = next(iter(failed.values()))
    if len(failed) == 1:
        first.reports = reports  # type: ignore[attr-defined]
        return first
    names = "; ".join(f"{name}: {str(e).splitlines()[0]}" for name, e in failed.items())
    error = RefreshFailedError(
        f"{len(failed)} views could not be refreshed: {names}",
        hint="They are as they were before; the others were refreshed.",
    )
    error.reports, error.causes = reports, failed
    return error
