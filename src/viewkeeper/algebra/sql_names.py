"""Names in SQL text: each column has one of its own, and reserved words are quoted."""

from __future__ import annotations

from sqlglot import exp


def unique_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """The names with a number where one occurs again, in any case.

    >>> unique_names(("a", "b", "A"))
    ('a', 'b', 'A_2')
    """
    lower = [c.lower() for c in columns]
    if len(set(lower)) == len(lower):
        return columns
    taken: set[str] = set(lower)
    seen: set[str] = set()
    names: list[str] = []
    for name in columns:
        new, n = name, 1
        while new.lower() in seen or (n > 1 and new.lower() in taken):
            n += 1
            new = f"{name}_{n}"
        seen.add(new.lower())
        names.append(new)
    return tuple(names)


def identifier(name: str) -> exp.Identifier:
    """The name, in quotes where it needs them.

    >>> identifier("a").sql(), identifier("order").sql()
    ('a', '"order"')
    """
    plain = name.isascii() and name.isidentifier()
    return exp.Identifier(this=name, quoted=not plain or name.lower() in _RESERVED)


def column_of(table: str, name: str) -> exp.Expr:
    """A column of a table.

    >>> column_of("s", "a").sql()
    's.a'
    """
    return exp.Column(this=identifier(name), table=exp.to_identifier(table))


_RESERVED = frozenset(
    "all and anti any as between by case cast create cross current date distinct else end exists"
    " except false filter for from full group having in inner intersect interval into is join key"
    " lateral left like limit natural not null offset on or order outer right select semi set some"
    " table then time timestamp to true union unique using values when where window with"
    " user check column references primary foreign default index grant desc asc over rows".split(
        " "
    )
)
