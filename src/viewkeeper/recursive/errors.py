"""The errors of recursive views: programs that cannot be read, and changes that they refuse."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.errors import ViewKeeperError


class ProgramError(ViewKeeperError):
    """A text that is not an incremental evaluation system.

    Parameters
    ----------
    what : str
        One sentence: what is wrong.
    hint : str
        What to do next.
    line : int, optional
        The line of the text, counted from one.

    Examples
    --------
    >>> print(ProgramError("the step DELTA has no query", hint="Write a SELECT.", line=7))
    [MALFORMED_PROGRAM] the step DELTA has no query (line 7)
    Write a SELECT.
    """

    code = "MALFORMED_PROGRAM"

    def __init__(self, what: str, *, hint: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(what if line is None else f"{what} (line {line})", hint=hint)


class CheckFailedError(ViewKeeperError):
    """A change that a program refuses; nothing was changed.

    Parameters
    ----------
    check : str
        The name of the check, as the program has it.
    reason : str
        Why the change is refused, as the program has it.
    rows : sequence of tuple
        The rows that the program shows.
    """

    code = "CHECK_FAILED"

    def __init__(self, check: str, reason: str, rows: Sequence[tuple[object, ...]]) -> None:
        self.check = check
        self.rows = tuple(rows)
        shown = ", ".join(map(str, self.rows[:5])) + (", …" if len(self.rows) > 5 else "")
        super().__init__(
            f"{check}: {reason}" + (f": {shown}" if shown else ""),
            hint="Nothing was changed. Undo the change of the source, then refresh again.",
        )


class CycleError(ViewKeeperError):
    """An edge that closes a cycle in a graph declared acyclic; nothing was changed.

    Parameters
    ----------
    cycle : sequence
        The nodes of one cycle, in order; the last one leads to the first.

    Examples
    --------
    >>> print(CycleError(["a", "b", "c"]))
    [CYCLE] the graph is declared acyclic, and has the cycle 'a' → 'b' → 'c' → 'a'
    Nothing was changed. Remove an edge of the cycle, or declare the graph "directed".
    """

    code = "CYCLE"

    def __init__(self, cycle: Sequence[object]) -> None:
        self.cycle = tuple(cycle)
        nodes = [repr(node) for node in (*self.cycle, *self.cycle[:1])]
        if len(nodes) > 21:
            nodes[10:-10] = [f"… {len(nodes) - 20} more …"]
        super().__init__(
            "the graph is declared acyclic, and has the cycle " + " → ".join(nodes),
            hint="Nothing was changed. Remove an edge of the cycle, "
            'or declare the graph "directed".',
        )


class NullEndError(ViewKeeperError):
    """An edge without an end, in a closure that stands for a query which would keep it.

    Parameters
    ----------
    row : tuple
        The edge.
    """

    code = "NULL_END"

    def __init__(self, row: tuple[object, ...]) -> None:
        self.row = row
        super().__init__(
            f"the edge {row} has a NULL end, and the recursive query would keep it",
            hint="Nothing was changed. Leave such rows out: WHERE … IS NOT NULL in both parts of "
            "the UNION, or create_closure, for which they are no edges.",
        )


class RoundsError(ViewKeeperError):
    """A loop of a program that did not come to an end."""

    code = "TOO_MANY_ROUNDS"
