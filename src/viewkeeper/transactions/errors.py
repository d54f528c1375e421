"""What a transaction may say no to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viewkeeper.errors import ViewKeeperError

_SHOWN = 5


class TransactionError(ViewKeeperError):
    """A transaction that cannot be used in this way: nested, ended, or of a stopped session."""

    code = "INVALID_TRANSACTION"


class StatementError(ViewKeeperError):
    """A statement that a transaction cannot take."""

    code = "INVALID_STATEMENT"


class UnsupportedTableError(ViewKeeperError):
    """A table that a transaction cannot write."""

    code = "UNSUPPORTED_TABLE"


class RowError(ViewKeeperError):
    """Rows that the table itself refuses: their types, NOT NULL, CHECK."""

    code = "INVALID_ROWS"


class TooLargeError(ViewKeeperError):
    """A transaction whose change does not fit on the driver."""

    code = "TRANSACTION_TOO_LARGE"


class UnknownConstraintError(ViewKeeperError):
    """No constraint of this name."""

    code = "UNKNOWN_CONSTRAINT"


class ConstraintViolation(ViewKeeperError):
    """Rows that a constraint forbids; nothing was written.

    Parameters
    ----------
    constraint : str
        The name of the constraint.
    rows : sequence
        The offending rows.
    present : bool
        Whether the rows are in the data already, so that the constraint cannot be added.

    Examples
    --------
    >>> print(ConstraintViolation("positive", [(-1,)]))
    [CONSTRAINT_VIOLATED] the constraint positive would be violated by 1 row: (-1,)
    Nothing was written. Change the transaction; keeper.explain('positive') says what is checked.
    """

    code = "CONSTRAINT_VIOLATED"

    def __init__(self, constraint: str, rows: Sequence[Any], *, present: bool = False) -> None:
        self.constraint = constraint
        self.rows = list(rows)
        count = f"{len(self.rows)} row" + ("s" if len(self.rows) != 1 else "")
        shown = ", ".join(str(tuple(row)) for row in self.rows[:_SHOWN])
        more = ", …" if len(self.rows) > _SHOWN else ""
        if present:
            what = f"the present data violates the constraint {constraint} by {count}"
            hint = "The constraint was not added. Change these rows first."
        else:
            what = f"the constraint {constraint} would be violated by {count}"
            hint = (
                "Nothing was written. Change the transaction;"
                f" keeper.explain({constraint!r}) says what is checked."
            )
        super().__init__(f"{what}: {shown}{more}", hint=hint)
