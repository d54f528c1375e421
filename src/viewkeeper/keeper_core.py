"""What all verbs of the keeper stand on: its session, its views, and their refresh."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from viewkeeper.creating import Wanted, create
from viewkeeper.engine.vector import Vector
from viewkeeper.graph import with_downstream, with_upstream
from viewkeeper.records import Record, RefreshReport, SessionError, ViewInUseError, one_of
from viewkeeper.refreshing import failure, refresh_views
from viewkeeper.session import check_classic
from viewkeeper.transactions.errors import TransactionError
from viewkeeper.transactions.manager import Host, Transactions
from viewkeeper.transactions.subscriptions import Subscriptions
from viewkeeper.views import Views


class Core:
    """A session with views, transactions and subscriptions."""

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
            if self._spark.sparkContext._jsc is not None:
                self._views.keep_at_end()
            self._spark.stop()
            self._spark = None

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

    def _create(self, wanted: Wanted) -> RefreshReport:
        self._views.sync()
        self._views.keep()
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
