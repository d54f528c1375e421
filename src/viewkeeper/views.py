"""The views of one session: their records, their compiled queries, their names in the catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from viewkeeper.algebra.texts import constant_text
from viewkeeper.compiled import Compiled
from viewkeeper.definitions import Definitions, reads
from viewkeeper.errors import suggestion
from viewkeeper.frontend.jvm import OURS
from viewkeeper.home import Home
from viewkeeper.lake import jvm
from viewkeeper.lake.sources import Source
from viewkeeper.names import full_name, full_name_or_none
from viewkeeper.records import Record, UnknownViewError, View, named
from viewkeeper.session import keep, keep_at_end, lake_of, sync


class Views:
    """What a session knows of the views.

    Parameters
    ----------
    spark : callable
        Gives the session, or raises if it has ended.
    schema : str
        The schema in which viewkeeper keeps its own tables.
    """

    def __init__(self, spark: Callable[[], SparkSession], schema: str) -> None:
        self._spark = spark
        self._lake = lake_of(self.spark)
        self.home = Home(self.spark, schema)
        self.known: dict[str, Source] = {}  # sources found earlier, by name
        self.definitions = Definitions(self.spark, self.known)
        self._shown: dict[str, tuple[str, ...]] = {}  # in the catalog: id to names

    @property
    def spark(self) -> SparkSession:
        """The session, if it lives."""
        return self._spark()

    # ── records ──

    def all(self) -> list[Record]:
        """All views, in the order of their creation."""
        return list(self.home.records().values())

    def find(self, name: str) -> Record | None:
        """The view of a name; None if there is none."""
        return self.home.records().get(self.full_name(name))

    def full_name(self, name: str) -> str:
        """A name in full; of one of our views it is known, whatever the current schema is now."""
        return name.record.name if isinstance(name, View) else full_name(self.spark, name)

    def get(self, name: str) -> Record:
        """The view of a name, be it that of a further output.

        Raises
        ------
        UnknownViewError
            When there is none.
        """
        found = named(self.home.records(), self.full_name(name))
        if found is None:
            raise self.unknown(name)
        return found

    def seen(self, name: str) -> Record:
        """The same, as this name shows it."""
        return self.get(name).seen_as(self.full_name(name))

    def unknown(self, name: str) -> UnknownViewError:
        """No view has this name."""
        labels = [(r.name, r.label) for r in self.all()]
        known = [t if full_name_or_none(self.spark, t) == n else n for n, t in labels]
        owner = named(self.home.records(), full_name_or_none(self.spark, name) or "")
        hint = f"It comes and goes with {owner.label}." if owner else suggestion(name, known)
        return UnknownViewError(f"no view {name!r} is kept here", hint=hint)

    def compiled(self, record: Record) -> Compiled:
        """The compiled query of a view, or of a constraint, which has no store and is not in the
        registry."""
        compiled = self.definitions.get(record)
        if record.store and compiled.names and reads(compiled) != record.reads:
            self.home.save(replace(record, reads=reads(compiled)), after=record.id)
        return compiled

    # ── the catalog ──

    def sync(self) -> None:
        """What other processes made or dropped: tables by the folder, views by the registry."""
        if self._lake is None:
            return
        sync(self.spark, self._lake)
        records = self.all()
        there = {record.id for record in records}
        for gone in [i for i in self._shown if i not in there]:
            names = self._shown.pop(gone)
            there_now = {name for record in records for name in record.names}
            self.hide([name for name in names if name not in there_now])
        for record in records:
            if record.id not in self._shown:
                self.show(record)

    def keep(self) -> None:
        """Lets other processes find what a statement of Spark's put into the catalog."""
        if self._lake is not None:
            keep(self.spark, self._lake)

    def keep_at_end(self) -> None:
        """The same, before the session ends."""
        if self._lake is not None:
            keep_at_end(self.spark, self._lake)

    def show(self, record: Record) -> None:
        """Gives the view its names in the catalog: what readers see of the store."""
        ours = f"TBLPROPERTIES ('{OURS}' = '{record.id}')"
        if record.comment:
            ours = f"COMMENT {constant_text(record.comment)} {ours}"
        with jvm.with_settings(self.spark, record.settings) as spark:  # Spark keeps them
            for name, sql in ((record.name, record.reader), *record.others):
                spark.sql(f"CREATE OR REPLACE VIEW {name} {ours} AS {sql}")
        self._shown[record.id] = record.names

    def hide(self, names: Sequence[str]) -> None:
        """Takes names out of the catalog."""
        for name in names:
            self.spark.sql(f"DROP VIEW IF EXISTS {name}")
