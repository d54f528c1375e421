"""What the command line prints: aligned tables for people, one JSON document for scripts."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Iterable, Sequence
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
    """A value as JSON; what JSON does not have becomes text.

    >>> document({"at": datetime.date(2024, 1, 2), "n": decimal.Decimal("1.50")})
    '{"at": "2024-01-02", "n": "1.50"}'
    >>> document({"x": float("nan"), "m": {datetime.date(2024, 1, 2): [float("-inf")], None: 1}})
    '{"x": "NaN", "m": {"2024-01-02": ["-Infinity"], "null": 1}}'
    """
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


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
    """A value of those that JSON has."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else json.dumps(value)
    if isinstance(value, dict):
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
    """A key of a map, as text."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
