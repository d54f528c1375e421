"""The transaction as its user sees it: statements, a look ahead, and all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.lake.errors import ConflictError, NotDeltaError
from viewkeeper.lake.nested import local_frame
from viewkeeper.lake.sources import Source
from viewkeeper.records import Record
from viewkeeper.transactions.errors import StatementError, TransactionError
from viewkeeper.transactions.evaluation import Preview
from viewkeeper.transactions.impact import StaleError
from viewkeeper.transactions.merging import clauses_of, merge_step
from viewkeeper.transactions.reading import (
    Delete,
    Insert,
    Merge,
    Update,
    read_change,
    unquoted,
)
from viewkeeper.transactions.state import Reading, State, read_query
from viewkeeper.transactions.steps import (
    InsertQuery,
    InsertRows,
    Step,
    delete_step,
    insert_query_step,
    insert_step,
    update_step,
)
from viewkeeper.transactions.targets import Target, target

_TRIES = 30


@dataclass(frozen=True)
class CommitReport:
    """What a transaction did.

    Attributes
    ----------
    entry : int
        Its number in the journal; 0 if it changed nothing.
    tables : mapping of str to (int, int)
        Rows that came and went, by table.
    views : mapping of str to (int, int)
        The same, by immediate view.
    constraints : mapping of str to str
        How each was looked at: "untouched", "proved" or "checked".
    """

    entry: int
    tables: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    views: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    constraints: Mapping[str, str] = field(default_factory=dict)
    lookups: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        if not self.entry:
            return "nothing changed"
        parts = [f"{n} +{a} -{b}" for n, (a, b) in {**self.tables, **self.views}.items()]
        return f"transaction {self.entry}: {', '.join(parts)}, {self.seconds:.2f} s"


class Committer(Protocol):
    """Who carries a transaction out."""

    @property
    def spark(self) -> SparkSession: ...

    def owns(self, source: Source) -> bool: ...

    def state(self) -> State: ...

    def catch_up(self, record: Record) -> None: ...

    def preview(self, transaction: Transaction) -> Preview: ...

    def commit(self, transaction: Transaction) -> CommitReport: ...

    def ended(self, transaction: Transaction) -> None: ...


class Transaction:
    """Changes of several tables, all or nothing.

    Use it as a context: it is committed at the end of the block, and dropped if the block raises.
    Statements are checked when they are given, and evaluated when the transaction is committed, in
    order, each in the state that those before it leave.

    Examples
    --------
    >>> with keeper.transaction() as t:                                   # doctest: +SKIP
    ...     t.insert("orders", [(1, "ann")])
    ...     t.update("stock", {"n": "n - 1"}, where="item = 7")
    """

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self.steps: list[Step] = []
        self.labels: dict[str, str] = {}  # names as the user gave them, by full name
        # the tables that the user's own code has seen: their ids and versions
        self.reads: dict[str, tuple[str, int]] = {}
        # what the statements before it were answered: it saw that, so it is what is committed
        self.answers: dict[object, pa.Table | None] = {}
        self.report: CommitReport | None = None
        self._state: State | None = None
        self._run = 0
        self._entered = self._over = False

    # ── statements ──

    def insert(self, table: str, rows: Any) -> Transaction:
        """Adds rows: tuples, dicts, Spark's rows, an Arrow or pandas table, or a DataFrame.

        SQL: ``INSERT INTO table …``. Tuples go by position, all others by the names of columns;
        a column that they do not have gets its default.

        Examples
        --------
        >>> t.insert("t", [(1, "x"), (2, None)])                          # doctest: +SKIP
        """
        return self._add(insert_step(self._spark, self._find(table), rows))

    def delete(self, table: str, where: str | None = None) -> Transaction:
        """Takes rows away.

        SQL: ``DELETE FROM table WHERE …``.

        Examples
        --------
        >>> t.delete("t", "a > 1")                                        # doctest: +SKIP
        """
        _check_text("the condition", where, or_none=True)
        statement = Delete(table, where)
        return self._add(delete_step(self._spark, statement, self._find, where or table))

    def update(
        self, table: str, values: Mapping[str, str], where: str | None = None
    ) -> Transaction:
        """Changes columns of rows; each value is an SQL expression over the old row.

        SQL: ``UPDATE table SET … WHERE …``.

        Examples
        --------
        >>> t.update("t", {"n": "n + 1"}, where="a = 1")                  # doctest: +SKIP
        """
        if not isinstance(values, Mapping) or not values:
            raise StatementError(
                f"update sets {values!r}", hint='Give a dict, such as {"n": "n + 1"}.'
            )
        _check_text("the condition", where, or_none=True)
        pairs = tuple(
            (unquoted(str(n)), "NULL" if e is None else str(e)) for n, e in values.items()
        )
        text = f"UPDATE {table} SET " + ", ".join(f"{n} = {e}" for n, e in pairs)
        text += f" WHERE {where}" if where else ""
        return self._add(update_step(self._spark, Update(table, pairs, where), self._find, text))

    def merge(
        self,
        table: str,
        source: str | DataFrame,
        on: str,
        *,
        update: Mapping[str, str] | str | None = None,
        delete: str | None = None,
        insert: Mapping[str, str] | str | None = None,
    ) -> Transaction:
        """Updates or deletes the rows that a source matches, and inserts those it does not.

        SQL: ``MERGE INTO table AS t USING source AS s ON …``.

        Parameters
        ----------
        table : str
            Known as ``t`` in the expressions.
        source : str or DataFrame
            A table, a query in brackets, or a frame; known as ``s``.
        on : str
        update, insert : dict or "*", optional
            Columns and expressions, for rows that match and for those that do not; "*": the
            columns of the source.
        delete : str, optional
            A condition under which a row that matches is deleted; "*": always.

        Examples
        --------
        >>> t.merge("t", "news", "t.id = s.id", update="*", insert="*")   # doctest: +SKIP
        """
        _check_text("the condition", on)
        if isinstance(source, DataFrame):
            name = f"__vk_given_{id(self)}_{len(self.steps)}"
            source.createOrReplaceTempView(name)
            try:
                return self.merge(table, name, on, update=update, delete=delete, insert=insert)
            finally:
                self._spark.catalog.dropTempView(name)
        statement = Merge(table, source, on, clauses_of(update, delete, insert), "t", "s")
        text = f"MERGE INTO {table} AS t USING {source} AS s ON {on}"
        return self._add(merge_step(self._spark, statement, self._find, text, some=True))

    def sql(self, text: str) -> Transaction:
        """INSERT, DELETE, UPDATE or MERGE, as SQL.

        Examples
        --------
        >>> t.sql("UPDATE t SET n = n + 1 WHERE a IN (SELECT a FROM u)")  # doctest: +SKIP
        """
        _check_text("the statement", text)
        s = read_change(text, self._spark)
        read: dict[type, Callable[..., Step]] = {
            Insert: insert_query_step,
            Delete: delete_step,
            Update: update_step,
            Merge: merge_step,
        }
        return self._add(read[type(s)](self._spark, s, self._find, text))

    # ── looking ──

    def read(self, query: str) -> DataFrame:
        """The rows of a query, or of a table, in the state so far.

        What is read must be the same at the commit: if another process has changed a table that was
        read, the commit is a ``ConflictError``, since the block may have decided by it.

        Examples
        --------
        >>> t.read("SELECT sum(n) FROM t").first()                        # doctest: +SKIP
        """
        self._check_open()
        _check_text("the query", query)
        text = query if len(query.split()) > 1 else f"SELECT * FROM {query}"
        found = read_query(self._spark, text, query)
        schema = found.definition.schema
        rows = self._rows(found).rename_columns(schema.names)
        return local_frame(self._spark, rows, schema)

    def _rows(self, reading: Reading) -> pa.Table:
        """The rows of a query in the state so far; its tables are noted as read, and those that
        the statements so far have read."""
        for _ in range(_TRIES):
            try:
                state = self.state
                for step in self.steps[self._run :]:
                    step.run(state)
                    self._run += 1
                rows = state.rows(reading)
            except StaleError as stale:
                self._committer.catch_up(stale.record)
                self._state, self._run = None, 0
                continue
            self._note(state, reading.sources.values())
            for step in self.steps:
                self._note(state, _read_by(step))
            self.answers = dict(state.answers)
            return rows
        raise ConflictError(
            "other writers changed the tables again and again", hint="Run the transaction again."
        )

    def _note(self, state: State, names: Iterable[str]) -> None:
        """Tables that were read; if one was before, it must be the same."""
        for name in names:
            pin = state.pin(name)
            now = pin.source.table_id, pin.version
            if self.reads.setdefault(pin.source.name, now) != now:
                raise changed_since_read(pin.source.name)

    def preview(self) -> Preview:
        """What would change in every table and immediate view, and what would become of every
        constraint, if the transaction were committed now.

        Examples
        --------
        >>> print(t.preview())                                            # doctest: +SKIP
        """
        self._check_open()
        return self._committer.preview(self)

    # ── the end ──

    def commit(self) -> CommitReport:
        """Does it all, or raises and does nothing; the block's end does this by itself.

        Raises
        ------
        ConstraintViolation
            When a constraint would be violated.
        ConflictError
            When other writers always came first.
        """
        self._check_open()
        self._end()
        self.report = self._committer.commit(self)
        return self.report

    def abort(self) -> None:
        """Drops the transaction: the block's end does nothing.

        Examples
        --------
        >>> t.abort()                                                     # doctest: +SKIP
        """
        self._end()

    def __enter__(self) -> Transaction:
        self._check_open()
        self._entered = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._over:
            return
        if kind is not None:
            self._end()
        else:
            self.commit()

    # ── inside ──

    @property
    def unused(self) -> bool:
        """Whether nothing was done with it: no block was begun, no statement taken."""
        return not (self._entered or self.steps or self.reads)

    @property
    def state(self) -> State:
        """The tables as the transaction saw them first, and what it did to them."""
        if self._state is None:
            self._state = self._committer.state()
            self._state.answers.update(self.answers)
        return self._state

    @property
    def _spark(self) -> SparkSession:
        return self._committer.spark

    def _find(self, name: str) -> Target:
        self._check_open()
        _check_text("the name of the table", name)
        try:
            pin = self.state.pin(name)
        except NotDeltaError as error:
            hint = "A transaction changes Delta tables; a view changes with those that it reads."
            raise NotDeltaError(error.what, hint=hint) from error
        self.labels.setdefault(pin.source.name, name)
        return target(name, pin, own=self._committer.owns(pin.source))

    def _add(self, step: Step) -> Transaction:
        self._check_open()
        self.steps.append(step)
        return self

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._committer.ended(self)

    def _check_open(self) -> None:
        if self._over:
            raise TransactionError(
                "this transaction is over", hint="Begin another with keeper.transaction()."
            )


def _read_by(step: Step) -> list[str]:
    """The tables that a statement reads: those of its query, and its own unless it only adds."""
    readings = [value for value in vars(step).values() if isinstance(value, Reading)]
    names = [name for found in readings for name in found.sources.values()]
    if not isinstance(step, InsertRows | InsertQuery):
        names.append(step.target.pin.source.name)
    return names


def changed_since_read(name: str) -> ConflictError:
    """A table is no longer as the block has seen it."""
    return ConflictError(
        f"{name} was changed after the transaction had read it", hint="Run the transaction again."
    )


def _check_text(what: str, given: object, *, or_none: bool = False) -> None:
    """Raises where something else than SQL text is given."""
    if not isinstance(given, str) and not (or_none and given is None):
        raise StatementError(
            f"{what} is given as {type(given).__name__}", hint="Give it as SQL text."
        )
