"""Rows that stand as often as a number in them says: the one generator that every engine has."""

from __future__ import annotations

import re

from viewkeeper.algebra.scalars import Opaque, Scalar

_TEXT = re.compile(r"explode\(sequence\(1,cast\(@asint\)\)\)")


def times(count: Scalar) -> Opaque:
    """The generator of Spark's that gives the numbers from 1 to a count, which is at least 1.

    >>> from viewkeeper.algebra.scalars import Col
    >>> times(Col(2)).parts
    ('explode(sequence(1, CAST(', ' AS INT)))')
    """
    return Opaque(("explode(sequence(1, CAST(", " AS INT)))"), (count,))


def counted(generator: Opaque) -> Scalar | None:
    """The count, if the generator is one of ``times``; None for any other.

    >>> from viewkeeper.algebra.scalars import Col
    >>> counted(times(Col(2))), counted(Opaque(("explode(", ")"), (Col(1),)))
    (Col(index=2), None)
    """
    text = re.sub(r"\s+", "", "@".join(generator.parts)).lower()
    return generator.args[0] if _TEXT.fullmatch(text) else None
