"""Several tables at one moment: between two transactions, none of them half seen."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from viewkeeper.engine.runner import Runner
from viewkeeper.engine.vector import Pin
from viewkeeper.errors import UnknownTableError
from viewkeeper.lake import jvm
from viewkeeper.lake.errors import ConflictError, NotDeltaError
from viewkeeper.lake.sources import find
from viewkeeper.records import InvalidOptionError
from viewkeeper.transactions.manager import Transactions
from viewkeeper.transactions.state import State, read_query


class Snapshot:
    """A vector of versions, and the tables and views at them.

    Examples
    --------
    >>> moment = keeper.snapshot("orders", "items")                       # doctest: +SKIP
    >>> moment.table("orders").count(), moment.table("items").count()     # doctest: +SKIP
    """

    def __init__(
        self, manager: Transactions, pins: Mapping[str, Pin], mark: tuple[int, int]
    ) -> None:
        self._manager = manager
        self._mark = mark
        self._state = State(manager.spark, manager.known, pins)

    @property
    def entry(self) -> int:
        """The last transaction that is seen: its number in the journal."""
        return self._mark[0]

    @property
    def versions(self) -> dict[str, int]:
        """The version of each table, by full name."""
        return {pin.source.name: pin.version for pin in self._state.pins.values()}

    def table(self, name: str) -> DataFrame:
        """A table or a view as it was.

        Examples
        --------
        >>> keeper.snapshot().table("orders").show()                      # doctest: +SKIP
        """
        return self.sql(f"SELECT * FROM {name}")

    def sql(self, query: str) -> DataFrame:
        """The rows of a query over the tables as they were.

        Examples
        --------
        >>> keeper.snapshot().sql("SELECT count(*) FROM orders").show()   # doctest: +SKIP
        """
        reading = read_query(self._manager.spark, query, query)
        for name in reading.sources.values():
            if name not in self._state.pins:
                places = {pin.source.location for pin in self._state.pins.values()}
                there = self._state.pin(name).source.location in places  # by another name
                if not there and self._manager.journal.mark() != self._mark:
                    del self._state.pins[name]
                    raise ConflictError(
                        f"{name} was not in the snapshot, and there were transactions since",
                        hint=f"Name it: keeper.snapshot({name!r}).",
                    )
        with Runner(self._manager.spark) as runner:
            frame = runner.frame(self._state.bound(runner, reading))
            names = reading.definition.schema.names
            return jvm.move_frame(self._manager.spark, frame.toDF(*names))


def snapshot(manager: Transactions, names: tuple[str, ...]) -> Snapshot:
    """The present moment; all that views and constraints read is in it, and what is named."""
    for name in names:
        if not isinstance(name, str):
            raise InvalidOptionError(
                f"{name!r} is not the name of a table", hint="Give names, each a text."
            )
    wanted = dict.fromkeys(names)
    for record in manager.host.records().values():
        wanted |= dict.fromkeys([*record.reads, record.store])
    for constraint in manager.constraints().values():
        wanted |= dict.fromkeys(constraint.reads)
    held = [n for n in wanted if _is_delta(manager, n, must=n in names)]
    _, pins, mark = manager.steady(held)
    return Snapshot(manager, {pin.source.name: pin for pin in pins.values()}, mark)


def _is_delta(manager: Transactions, name: str, *, must: bool) -> bool:
    """Whether a name is that of a Delta table; views are in the snapshot by their stores."""
    try:
        find(manager.spark, name)
    except NotDeltaError:
        return False
    except UnknownTableError:
        if must:
            raise
        return False
    return True
