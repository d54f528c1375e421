"""The errors of the lake: what Delta tables cannot tell us or refuse to do."""

from __future__ import annotations

from viewkeeper.errors import ViewKeeperError


class NotDeltaError(ViewKeeperError):
    """A table of another provider, or a view: it has no versions."""

    code = "NOT_A_DELTA_TABLE"


class LostHistoryError(ViewKeeperError):
    """A change that the table's log cannot tell any more.

    Parameters
    ----------
    table : str
        The table's name.
    reason : str
        Why the change is not known, in one clause.

    Examples
    --------
    >>> print(LostHistoryError("`t`", "version 3 was cleaned from the log"))
    [LOST_HISTORY] the change of `t` is not known: version 3 was cleaned from the log
    Refresh in full.
    """

    code = "LOST_HISTORY"

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        self.reason = reason
        super().__init__(f"the change of {table} is not known: {reason}", hint="Refresh in full.")


class ConflictError(ViewKeeperError):
    """Another process committed to the store first; nothing of ours was written."""

    code = "CONFLICT"
