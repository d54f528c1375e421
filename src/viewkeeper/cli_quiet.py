"""Keeps what the JVM prints away from the terminal: it goes to a file, shown if the start fails."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from viewkeeper.errors import ViewKeeperError
from viewkeeper.records import SessionError

_LINES = 12


@contextmanager
def quiet(verbose: bool = False) -> Iterator[None]:
    """While the block runs, file descriptors 1 and 2 are a file, which a child process keeps.

    So a JVM that is started in the block is silent for good. Threads that print meanwhile must
    have their own copy of the descriptor.

    Raises
    ------
    SessionError
        The block failed with an error that is not ours; the end of the file is in the message.
    """
    if verbose:
        yield
        return
    warnings.simplefilter("ignore")
    with tempfile.TemporaryFile() as log:
        with _instead(log.fileno()):
            try:
                yield
                return
            except ViewKeeperError:
                raise
            except Exception as e:
                cause = e
        log.seek(0)
        said = log.read().decode(errors="replace").splitlines()
    lines = "\n".join(f"  {line}" for line in said[-_LINES:])
    raise SessionError(
        f"Spark did not start: {str(cause).splitlines()[0]}\n{lines}".rstrip(),
        hint="Run with --verbose to see all that Spark says, or try: viewkeeper doctor.",
    ) from cause


@contextmanager
def _instead(file: int) -> Iterator[None]:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = {fd: os.dup(fd) for fd in (1, 2)}
    try:
        for fd in kept:
            os.dup2(file, fd)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for fd, copy in kept.items():
            os.dup2(copy, fd)
            os.close(copy)
