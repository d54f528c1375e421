"""Pieces of engine text with arguments in between: cut, spliced and put in parentheses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from viewkeeper.algebra.scalars import Call, Col, Const, Opaque, Scalar, show_constant

_MARKER = re.compile(r"`?vk_(\d+)_vk`?")
_WORD = re.compile(r"[\w.`']*\(")
_QUOTES = "'`\""


def cut(text: str, args: Sequence[Scalar]) -> Opaque:
    """The text as an Opaque, with ``vk_i_vk`` replaced by the i-th argument.

    >>> cut("year(vk_0_vk)", [Col(3)])
    Opaque(parts=('year(', ')'), args=(Col(index=3),))
    >>> cut("f(vk_0_vk)", [Opaque(("g(", ")"), (Col(1),))])
    Opaque(parts=('f(g(', '))'), args=(Col(index=1),))
    """
    pieces: list[str | Scalar] = []
    last = 0
    for match in _MARKER.finditer(text):
        pieces += [text[last : match.start()], args[int(match.group(1))]]
        last = match.end()
    return splice([*pieces, text[last:]])


def splice(pieces: Sequence[str | Scalar]) -> Opaque:
    """One Opaque of texts and scalars in a row; constants and Opaques melt into the text.

    >>> splice(["-", Const(1), " ", Col(0)])
    Opaque(parts=('-1 ', ''), args=(Col(index=0),))
    """
    parts: list[str] = [""]
    args: list[Scalar] = []
    for piece in pieces:
        match piece:
            case str():
                parts[-1] += piece
            case Const(value):
                parts[-1] += constant_text(value)
            case Opaque(inner, inner_args):
                parts[-1] += inner[0]
                for arg, after in zip(inner_args, inner[1:], strict=True):
                    args.append(arg)
                    parts.append(after)
            case Col() | Call():
                args.append(piece)
                parts.append("")
    return Opaque(tuple(parts), tuple(args))


def constant_text(value: object) -> str:
    """A constant as Spark's SQL text."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return show_constant(value)


def joined(pieces: Sequence[Scalar], separator: str = ", ") -> list[str | Scalar]:
    """The scalars with a separator between them, to be spliced."""
    out: list[str | Scalar] = []
    for i, piece in enumerate(pieces):
        out += [separator, piece] if i else [piece]
    return out


def closed(e: Opaque) -> Opaque:
    """The same in parentheses, unless the text cannot be torn apart by what stands around it.

    >>> closed(Opaque(("", " LIKE 'x%'"), (Col(0),))).parts
    ('(', " LIKE 'x%')")
    >>> closed(Opaque(("year(", ")"), (Col(0),))).parts
    ('year(', ')')
    """
    if _is_closed("_".join(e.parts)):
        return e
    return splice(["(", e, ")"])


def _is_closed(text: str) -> bool:
    if not re.search(r"\s", text):
        return True
    if re.fullmatch(r"'[^'\\]*'", text) or (text.startswith("CASE ") and text.endswith(" END")):
        return True
    start = _WORD.match(text)
    if start is None or not text.endswith(")"):
        return False
    depth, quote, i = 0, "", start.end() - 1
    while i < len(text):
        c = text[i]
        if quote:
            if c == "\\" and quote != "`":
                i += 1
            elif c == quote:
                quote = ""
        elif c in _QUOTES:
            quote = c
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                return i == len(text) - 1
        i += 1
    return False
