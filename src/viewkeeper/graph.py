"""The views as a graph: a view reads another one if it reads its store."""

from __future__ import annotations

from collections.abc import Collection

from viewkeeper.records import CyclicViewError, Record


def upstream(record: Record, records: Collection[Record]) -> list[Record]:
    """The views that a view reads.

    >>> a = Record("1", "a", "a", "", "", "", "store_a", reads=("t",))
    >>> b = Record("2", "b", "b", "", "", "", "store_b", reads=("store_a",))
    >>> [r.name for r in upstream(b, [a, b])]
    ['a']
    """
    return [r for r in records if r.store in record.reads]


def downstream(record: Record, records: Collection[Record]) -> list[Record]:
    """The views that read a view.

    >>> a = Record("1", "a", "a", "", "", "", "store_a", reads=("t",))
    >>> b = Record("2", "b", "b", "", "", "", "store_b", reads=("store_a",))
    >>> [r.name for r in downstream(a, [a, b])]
    ['b']
    """
    return [r for r in records if record.store in r.reads]


def with_upstream(chosen: Collection[Record], records: Collection[Record]) -> list[Record]:
    """Some views and those they read, each after those it reads.

    >>> a = Record("1", "a", "a", "", "", "", "store_a", reads=("t",))
    >>> b = Record("2", "b", "b", "", "", "", "store_b", reads=("store_a",))
    >>> [r.name for r in with_upstream([b], [b, a])]
    ['a', 'b']
    """
    order: dict[str, Record] = {}

    def visit(record: Record) -> None:
        if record.name not in order:
            for r in upstream(record, records):
                visit(r)
            order[record.name] = record

    for record in chosen:
        visit(record)
    return list(order.values())


def with_downstream(record: Record, records: Collection[Record]) -> list[Record]:
    """A view and those that read it, by whatever way.

    >>> a = Record("1", "a", "a", "", "", "", "store_a", reads=("t",))
    >>> b = Record("2", "b", "b", "", "", "", "store_b", reads=("store_a",))
    >>> c = Record("3", "c", "c", "", "", "", "store_c", reads=("store_b",))
    >>> [r.name for r in with_downstream(a, [c, b, a])]
    ['a', 'b', 'c']
    """
    found = [record]
    for one in found:  # grows
        found += [r for r in downstream(one, records) if r not in found]
    return found


def check_cycle(record: Record, old: Record, records: Collection[Record]) -> None:
    """A view that replaces an old one must not read it, by whatever way.

    >>> a = Record("1", "a", "a", "", "", "", "store_a", reads=("t",))
    >>> b = Record("2", "b", "b", "", "", "", "store_b", reads=("store_a",))
    >>> new = Record("3", "a", "a", "", "", "", "store_new", reads=("store_b",))
    >>> check_cycle(new, a, [a, b])
    Traceback (most recent call last):
    viewkeeper.records.CyclicViewError: [CYCLIC_DEFINITION] the new definition of a reads a itself
    Take the view out of its own query.
    """
    seen: set[str] = set()
    todo = list(record.reads)
    while todo:
        store = todo.pop()
        if store == old.store:
            raise CyclicViewError(
                f"the new definition of {record.label} reads {record.label} itself",
                hint="Take the view out of its own query.",
            )
        for r in records:
            if r.store == store and r.name not in seen:
                seen.add(r.name)
                todo += r.reads
