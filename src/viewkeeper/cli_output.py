"""What the command line prints: aligned tables for people, one JSON document for scripts."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from viewkeeper.errors import ViewKeeperError


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """An aligned table; numbers stand right, NULL is a dash.

    >>> print(table(["view", "rows"], [("v", 12), ("long", None)]))
    view  rows
    v       12
    long     –
    """
    body = [[cell(value) for value in row] for row in rows]
    right = [False] * len(head)
    kept = [list(row) for row in rows] if isinstance(rows, (list, tuple)) else []
    for i in range(len(head)):
        values = [row[i] for row in kept if row[i] is not None]
        right[i] = bool(values) and all(_number(v) for v in values)
    widths = [max([len(head[i]), *(len(row[i]) for row in body)]) for i in range(len(head))]
    lines = []
    for row in [list(head), *body]:
        cells = [
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def cell(value: Any) -> str:
    """A value in a table."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(str(value).split())


def document(value: Any) -> str:
    """A value as JSON; what JSON does not have becomes text. A row is an object, by its columns.

    >>> document({"at": datetime.date(2024, 1, 2), "n": decimal.Decimal("1.50")})
    '{"at": "2024-01-02", "n": "1.50"}'
    >>> document([float("nan"), float("-inf"), {datetime.date(2024, 1, 2): True, None: None}])
    '["NaN", "-Infinity", {"2024-01-02": true, "null": null}]'
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    plain = encoding.lower().replace("-", "") != "utf8"  # escapes, where letters cannot be printed
    return json.dumps(_plain(value), ensure_ascii=plain, allow_nan=False)


@contextlib.contextmanager
def printable() -> Iterator[None]:
    """While the block runs, letters that stdout or stderr cannot show are escaped, not an error."""
    streams = [s for s in (sys.stdout, sys.stderr) if hasattr(s, "reconfigure")]
    before = [s.errors for s in streams]
    for stream in streams:
        stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for stream, errors in zip(streams, before, strict=True):
            stream.reconfigure(errors=errors)


def is_unread(error: BaseException | None) -> bool:
    """Whether an error is that nobody reads what is printed any more (``| head``)."""
    while error is not None and not isinstance(error, BrokenPipeError):
        error = error.__cause__
    return error is not None


def print_no_more() -> None:
    """Stdout leads nowhere from now on, so that the end of Python does not complain."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def error_document(error: BaseException, code: str | None = None) -> dict[str, Any]:
    """An error as plain values."""
    if isinstance(error, ViewKeeperError):
        return {"code": error.code, "message": error.what, "hint": error.hint}
    return {"code": code or "INTERNAL_ERROR", "message": str(error), "hint": ""}


def short(name: str) -> str:
    """A full name without what is the same everywhere.

    >>> short("`spark_catalog`.`default`.`t`"), short("`spark_catalog`.`s`.`t`")
    ('t', 's.t')
    """
    for prefix in ("`spark_catalog`.`default`.", "`spark_catalog`."):
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return name.replace("`", "")


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """A value in what JSON has."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if hasattr(value, "asDict"):  # a row of Spark's
        value = value.asDict()
    if isinstance(value, Mapping):
        return {_key(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, (set, frozenset)):
        return [_plain(v) for v in sorted(value, key=str)]
    return str(value)


def _key(value: Any) -> str:
    """A key of a map, which JSON has as text only."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
