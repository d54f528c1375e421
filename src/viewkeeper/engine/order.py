"""Work on several views at once, each after those that it reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
MOST_WORKERS = 4


class SkippedError(Exception):
    """Not done, because something it needs failed."""


def in_order(
    names: Sequence[K], needs: Mapping[K, Sequence[K]], work: Callable[[K], R]
) -> tuple[dict[K, R], dict[K, Exception]]:
    """What the work gave for each name, and the errors; a name whose needs failed is skipped.

    >>> done, failed = in_order(["a", "b", "c"], {"b": ["a"], "c": ["b"]}, lambda n: 1 / (n != "b"))
    >>> done, list(failed), type(failed["c"]).__name__
    ({'a': 1.0}, ['b', 'c'], 'SkippedError')
    """
    done: dict[K, R] = {}
    failed: dict[K, Exception] = {}
    todo = list(names)
    running: dict[Future[R], K] = {}
    workers = min(MOST_WORKERS, os.cpu_count() or 1)
    if workers == 1 or len(todo) <= 1:
        return _one_by_one(names, needs, work)
    with ThreadPoolExecutor(workers, thread_name_prefix="viewkeeper") as pool:
        while todo or running:
            for name in list(todo):
                below = [n for n in needs.get(name, ()) if n in names]
                if any(n in failed for n in below):
                    failed[name] = SkippedError(str(name))
                    todo.remove(name)
                elif all(n in done for n in below) and len(running) < workers:
                    running[pool.submit(work, name)] = name
                    todo.remove(name)
            ended, _ = wait(running, return_when=FIRST_COMPLETED) if running else (set(), set())
            for one in ended:
                name = running.pop(one)
                error = one.exception()
                if error is None:
                    done[name] = one.result()
                elif isinstance(error, Exception):
                    failed[name] = error
                else:
                    raise error
    ordered = {n: done[n] for n in names if n in done}
    return ordered, {n: failed[n] for n in names if n in failed}


def _one_by_one(
    names: Sequence[K], needs: Mapping[K, Sequence[K]], work: Callable[[K], R]
) -> tuple[dict[K, R], dict[K, Exception]]:
    """The same in this thread; the names come in an order that fits."""
    done: dict[K, R] = {}
    failed: dict[K, Exception] = {}
    for name in names:
        if any(n in failed for n in needs.get(name, ())):
            failed[name] = SkippedError(str(name))
            continue
        try:
            done[name] = work(name)
        except Exception as error:
            failed[name] = error
    return done, failed
