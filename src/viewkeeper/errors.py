"""Every error a user can meet: a class per cause, a stable code, and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ViewKeeperError(Exception):
    """Base of all errors raised on purpose.

    Parameters
    ----------
    what : str
        One sentence: what is wrong.
    hint : str
        What to do next.
    text : str, optional
        The text the user gave, in which the error stands.
    span : tuple of int, optional
        First and last-plus-one character of the place in ``text``.

    Examples
    --------
    >>> print(UnknownColumnError("no column 'c'", hint="Use a or b.", text="c > 1", span=(0, 1)))
    [UNKNOWN_COLUMN] no column 'c'
      c > 1
      ^
    Use a or b.
    """

    code = "VIEWKEEPER_ERROR"

    def __init__(
        self,
        what: str,
        *,
        hint: str = "",
        text: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        self.what = what
        self.hint = hint
        self.text = text
        self.span = span
        super().__init__(self._message())

    def _message(self) -> str:
        lines = [f"[{self.code}] {self.what}"]
        if self.text is not None:
            lines += underline(self.text, self.span)
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)


def underline(text: str, span: tuple[int, int] | None) -> list[str]:
    """The line of ``text`` that holds ``span``, and carets below the place."""
    if span is None:
        return [f"  {text}"]
    start, stop = span
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", first)
    line = text[first:] if last < 0 else text[first:last]
    width = max(1, min(stop - start, len(line) - (start - first)))
    return [f"  {line}", "  " + " " * (start - first) + "^" * width]


def suggestion(name: str, known: Iterable[str]) -> str:
    """A hint that lists what there is, the nearest name first."""
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, names, n=1)
    listed = ", ".join(names) if names else "none"
    return f"Did you mean {near[0]!r}? Known: {listed}." if near else f"Known: {listed}."


class NotationError(ViewKeeperError):
    """A query or an expression in text form that cannot be read."""

    code = "MALFORMED_NOTATION"


class UnknownColumnError(ViewKeeperError):
    """A name that no column in scope has."""

    code = "UNKNOWN_COLUMN"


class AmbiguousColumnError(ViewKeeperError):
    """A name that more than one column in scope has."""

    code = "AMBIGUOUS_COLUMN"


class UnknownTableError(ViewKeeperError):
    """A table name that is not in the given schemas or data."""

    code = "UNKNOWN_TABLE"


class ArityError(ViewKeeperError):
    """Two queries, or a query and a row, with different numbers of columns."""

    code = "ARITY_MISMATCH"


class UnsupportedScalarError(ViewKeeperError):
    """A function or an aggregate that the algebra does not know."""

    code = "UNSUPPORTED_SCALAR"


class EvaluationError(ViewKeeperError):
    """Data on which an expression has no meaning, such as 'x' + 1."""

    code = "EVALUATION_FAILED"


class ChangeError(ViewKeeperError):
    """A change that does not fit its table, or a request no rule covers."""

    code = "INVALID_CHANGE"


class FactError(ViewKeeperError):
    """A fact that is not about the tables it names."""

    code = "INVALID_FACT"
