"""Progress on the terminal: one line that tells what is being done, and how much of it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WIDTH = 20


class Progress:
    """A line on stderr that moves while work is done; silent where stderr is no terminal.

    Examples
    --------
    >>> with Progress(enabled=False).doing("refreshing", total=3) as line:
    ...     line.step("v")
    """

    def __init__(self, enabled: bool | None = None) -> None:
        self.enabled = sys.stderr.isatty() if enabled is None else enabled
        self._what = ""
        self._total = 0
        self._done = 0
        self._now: list[str] = []
        self._since = 0.0

    @contextmanager
    def doing(self, what: str, total: int = 0) -> Iterator[Progress]:
        """Shows the line while the block runs."""
        self._what, self._total, self._done, self._now = what, total, 0, []
        self._since = time.monotonic()
        if not self.enabled:
            yield self
            return
        end = threading.Event()
        with os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace") as out:
            drawing = threading.Thread(target=self._draw, args=(out, end), daemon=True)
            drawing.start()
            try:
                yield self
            finally:
                end.set()
                drawing.join()
                out.write("\r\x1b[K")
                out.flush()

    def step(self, name: str) -> None:
        """Work on this begins."""
        self._now.append(name)

    def done(self, name: str) -> None:
        """Work on this has ended."""
        self._now.remove(name)
        self._done += 1

    def line(self, tick: int = 0) -> str:
        """The line as it stands.

        >>> p = Progress(enabled=False)
        >>> with p.doing("refreshing", total=4):
        ...     p.step("a"); p.done("a"); p.step("b")
        ...     print(p.line())
        ⠋ refreshing [█████···············] 1/4 b 0 s
        """
        parts = [_FRAMES[tick % len(_FRAMES)], self._what]
        if self._total:
            full = _WIDTH * self._done // self._total
            parts.append(f"[{'█' * full}{'·' * (_WIDTH - full)}] {self._done}/{self._total}")
        parts += [", ".join(self._now)] if self._now else []
        parts.append(f"{time.monotonic() - self._since:.0f} s")
        return " ".join(parts)

    def _draw(self, out: TextIO, end: threading.Event) -> None:
        tick = 0
        while not end.wait(0.1):
            out.write(f"\r{self.line(tick)}\x1b[K")
            out.flush()
            tick += 1


def watch(progress: Progress) -> Callable[[str, Any], None]:
    """For ``keeper.refresh``: the line names each view while it is refreshed.

    >>> p = Progress(enabled=False)
    >>> told = watch(p)
    >>> told("v", None)
    >>> p.line().split()[-3]
    'v'
    """
    begun: set[str] = set()

    def told(name: str, report: Any) -> None:
        if name in begun:
            progress.done(name)
        else:
            begun.add(name)
            progress.step(name)

    return told
