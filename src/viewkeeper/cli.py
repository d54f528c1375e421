"""The command line: ``viewkeeper --lake DIR create | refresh | explain | status | …``."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from viewkeeper import cli_commands
from viewkeeper.cli_arguments import read
from viewkeeper.cli_commands import FAILED, OK, STOPPED, Answer
from viewkeeper.cli_output import document, error_document, is_unread, print_no_more, printable
from viewkeeper.cli_progress import Progress
from viewkeeper.errors import ViewKeeperError

if TYPE_CHECKING:
    from viewkeeper.keeper import Keeper


def main(argv: Sequence[str] | None = None, keeper: Keeper | None = None) -> int:
    """Runs one command and returns its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default the process's.
    keeper : Keeper, optional
        A keeper to use instead of a new connection to the lake; it is left running.

    Examples
    --------
    >>> main(["--lake", "./lake", "status"])                              # doctest: +SKIP
    """
    args = read(argv)
    before = logging.root.manager.disable
    if not args.verbose:
        logging.disable(logging.CRITICAL)  # pyspark logs errors that we tell in our own words
    try:
        with printable():
            return _told(args, keeper)
    except OSError as e:  # of printing: all others are told
        print_no_more()
        if is_unread(e):
            return OK
        with contextlib.suppress(OSError):
            print(f"What was found cannot be printed: {e}", file=sys.stderr)
        return FAILED
    finally:
        logging.disable(before)


def _told(args: argparse.Namespace, keeper: Keeper | None) -> int:
    """Runs a command, prints what it found or why it failed, and returns the exit code."""
    try:
        answer = _run(args, keeper)
    except KeyboardInterrupt:
        print("Stopped. Each view is as it was, or completely refreshed.", file=sys.stderr)
        return STOPPED
    except Exception as e:
        if is_unread(e):
            raise BrokenPipeError from e
        return _failed(e, args)
    if args.json and not answer.shown:
        print(document(answer.value), flush=True)
    elif answer.text:
        print(answer.text, flush=True)
    return answer.code


def _run(args: argparse.Namespace, keeper: Keeper | None) -> Answer:
    command: Callable[..., Answer] = args.run
    progress = Progress(False if args.verbose else None)
    if getattr(args, "file", None) is not None:
        args.text = _text_of(args.file)  # before anything is started, or made
    if command is cli_commands.doctor:
        return cli_commands.doctor(args, keeper, progress)
    if keeper is not None:
        return command(args, keeper, progress)
    with cli_commands.connected(args, progress) as own:
        return command(args, own, progress)


def _failed(error: Exception, args: argparse.Namespace) -> int:
    """Says on stderr, or in the JSON, what is wrong."""
    condition = getattr(error, "getCondition", lambda: None)()  # Spark's own errors have one
    if isinstance(error, ViewKeeperError):
        text = str(error)
    elif condition:
        text = str(error).split("\nJVM stacktrace:")[0].split(";\n'")[0]
    else:
        text = f"[INTERNAL_ERROR] {type(error).__name__}: {error}"
        if not args.verbose:
            text = text.splitlines()[0] + "\nRun with --verbose to see where it happened."
    if args.json:
        found = error_document(error, condition)
        reports = getattr(error, "reports", None) or []
        value = {"error": found, "reports": [r.as_dict() for r in reports]}
        print(document(value), flush=True)
    else:
        for report in getattr(error, "reports", None) or []:
            print(report)
        print(text, file=sys.stderr)
    if args.verbose:
        traceback.print_exception(error)
    return FAILED


def _text_of(file: str) -> str:
    from viewkeeper.records import InvalidOptionError

    name = "stdin" if file == "-" else file
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as data:
            return data.read().decode("utf-8-sig")  # editors put a byte order mark in front
    except (OSError, ValueError) as e:
        raise InvalidOptionError(
            f"{name} cannot be read: {e}", hint="Give a text in UTF-8 with one query."
        ) from e


if __name__ == "__main__":
    sys.exit(main())
