"""The keeper's verbs for transactions, constraints and active queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewkeeper.keeper_core import Core
from viewkeeper.transactions.checking import Violation, check, stores_read
from viewkeeper.transactions.constraints import Constraint, Form
from viewkeeper.transactions.guarding import add_constraint, check_name, drop_constraint
from viewkeeper.transactions.guarding import unknown as unknown_constraint
from viewkeeper.transactions.snapshot import Snapshot, snapshot
from viewkeeper.transactions.subscriptions import Subscription, ViewChange
from viewkeeper.transactions.transaction import Transaction


class Guarding(Core):
    """Changes of tables all or nothing, what must hold of them, and who is told."""

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
        self._views.keep()
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
