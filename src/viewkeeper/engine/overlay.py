"""A table as a transaction leaves it, before anything of it is written.

    Rnew = (R ▷ gone) ⊎ come

``gone`` holds rows of the table of which every copy is taken away, with their number; ``come`` the
rows that are put in. Their difference, netted, is the strongly minimal change of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from viewkeeper.engine.vector import Pin
from viewkeeper.lake.arrow import (
    WEIGHT,
    UnusualError,
    arrow_schema,
    can_group,
    can_net,
    repeated,
    summed,
)
from viewkeeper.lake.lanes import OP, Patch
from viewkeeper.lake.nested import local_frame
from viewkeeper.lake.sources import at, quoted

GONE, COME, COPIES = "__gone", "__come", "__copies"


@dataclass(frozen=True)
class Overlay:
    """A pinned table and what a transaction does to it.

    Parameters
    ----------
    pin : Pin
        The table as it was.
    fields : sequence of StructField
        All its columns.
    rows : pyarrow.Table
        The columns, ``__gone`` and ``__come``; each row once.
    """

    pin: Pin
    fields: tuple[StructField, ...]
    rows: pa.Table

    @staticmethod
    def of(pin: Pin) -> Overlay:
        """A table to which nothing has been done yet."""
        fields = tuple(pin.columns)
        return Overlay(pin, fields, _counted(arrow_schema(fields)).empty_table())

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [f.name for f in self.fields]

    # ── composition ──

    def inserted(self, rows: pa.Table) -> Overlay:
        """After rows were put in; each counts as often as it stands there."""
        added = _numbered(_numbered(counted_rows(rows, self.fields), GONE, 0), COME, 1)
        whole = pa.concat_tables([self.rows, added.cast(self.rows.schema)])
        return Overlay(self.pin, self.fields, _settled(summed(whole, 2)))

    def deleted(self, rows: pa.Table) -> Overlay:
        """After rows were taken away: every copy that the state so far has of each."""
        counted = summed(_numbered(counted_rows(rows, self.fields), COPIES, 1), 1)
        both = summed(
            pa.concat_tables(
                [
                    self.rows.append_column(COPIES, _constant(self.rows.num_rows, 0)),
                    _between(counted, self.fields),
                ]
            ),
            3,
        )
        gone, come, found = (both.column(c) for c in (GONE, COME, COPIES))
        hit = pc.greater(found, 0)
        more = pc.subtract(found, come)  # the copies that are not of this transaction's making
        made = both.select(self.names)
        made = made.append_column(GONE, pc.if_else(hit, pc.add(gone, more), gone))
        made = made.append_column(COME, pc.if_else(hit, 0, come))
        return Overlay(self.pin, self.fields, _settled(made))

    # ── what it comes to ──

    @property
    def empty(self) -> bool:
        """Whether the table stays as it is."""
        return bool(self.rows.num_rows == 0)

    @cached_property
    def change(self) -> pa.Table:
        """The strongly minimal change: the columns and ``__weight``."""
        weight = pc.subtract(self.rows.column(COME), self.rows.column(GONE))
        return self.rows.select(self.names).append_column(WEIGHT, weight)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many rows come and go."""
        weight = self.change.column(WEIGHT)
        plus = pc.sum(pc.max_element_wise(weight, 0)).as_py() or 0
        return plus, plus - (pc.sum(weight).as_py() or 0)

    def of_columns(self, columns: Sequence[str]) -> pa.Table:
        """The change of some columns, netted."""
        return summed(self.change.select([*columns, WEIGHT]), 1)

    def patch(self) -> Patch:
        """What is to be done to the table at its version."""
        gone, come = self.rows.column(GONE), self.rows.column(COME)
        rows = self.rows.select(self.names)
        fewer = pc.less(come, gone)
        drop = rows.filter(fewer)
        times = pc.if_else(fewer, come, pc.subtract(come, gone))
        add = repeated(rows, times)
        parts = [drop.append_column(OP, _texts(drop, "D")), add.append_column(OP, _texts(add, "I"))]
        return Patch(pa.concat_tables(parts), self.names, only_inserts=drop.num_rows == 0)

    def frame(self, spark: SparkSession, columns: Sequence[str] | None = None) -> DataFrame:
        """The table as the transaction leaves it."""
        old = at(spark, self.pin.source, self.pin.version, self.names)
        gone = self.rows.filter(pc.greater(self.rows.column(GONE), 0)).select(self.names)
        if gone.num_rows:
            names = [f"g{i}" for i in range(len(self.names))]
            taken = self._local(spark, gone).toDF(*names)
            same = F.lit(True)
            for name, other in zip(self.names, names, strict=True):
                same = same & old[quoted(name)].eqNullSafe(taken[other])
            old = old.join(F.broadcast(taken), same, "left_anti")
        come = repeated(self.rows.select(self.names), self.rows.column(COME))
        if come.num_rows:
            old = old.unionAll(self._local(spark, come))
        return old if columns is None else old.select([quoted(c) for c in columns])

    def _local(self, spark: SparkSession, rows: pa.Table) -> DataFrame:
        return local_frame(spark, rows, self.pin.schema(self.names))

    def after(
        self, rows: pa.Table, columns: Sequence[str], limits: Mapping[str, pa.Array]
    ) -> pa.Table:
        """Rows of the table as it was, looked up by values of some columns, as they will be."""
        if not all(can_group(f.dataType) for f in self.fields if f.name in columns):
            raise UnusualError("rows that Arrow cannot net")
        change = self.change
        for name, values in limits.items():
            change = change.filter(pc.is_in(change.column(name), value_set=values))
        if not change.num_rows:
            return rows
        then = rows.append_column(WEIGHT, _constant(rows.num_rows, 1))
        change = change.select([*columns, WEIGHT]).cast(then.schema)
        now = summed(pa.concat_tables([then, change]), 1)
        return repeated(now.select(list(columns)), now.column(WEIGHT)).cast(rows.schema)


def writable(fields: Sequence[StructField]) -> str | None:
    """The first column whose values cannot be compared on the driver."""
    return next((f.name for f in fields if not can_net(f.dataType)), None)


def counted_rows(rows: pa.Table, fields: Sequence[StructField]) -> pa.Table:
    """Rows in the types of a table's columns."""
    schema = arrow_schema(list(fields))
    return rows.rename_columns(schema.names).cast(schema)


def _counted(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field(GONE, pa.int64())).append(pa.field(COME, pa.int64()))


def _numbered(rows: pa.Table, name: str, number: int) -> pa.Table:
    return rows.append_column(name, _constant(rows.num_rows, number))


def _between(counted: pa.Table, fields: Sequence[StructField]) -> pa.Table:
    """Counted rows with the two numbers of an overlay before the count."""
    zero = _constant(counted.num_rows, 0)
    names = [f.name for f in fields]
    made = counted.select(names).append_column(GONE, zero).append_column(COME, zero)
    return made.append_column(COPIES, counted.column(COPIES))


def _settled(rows: pa.Table) -> pa.Table:
    """Without the rows that come as often as they go."""
    return rows.filter(pc.not_equal(rows.column(GONE), rows.column(COME))).combine_chunks()


def _constant(rows: int, value: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64()), rows)


def _texts(rows: pa.Table, text: str) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), rows.num_rows)
