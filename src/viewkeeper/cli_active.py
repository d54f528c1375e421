"""The commands about constraints and active queries: constraint, check, watch, serve."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from viewkeeper.cli_output import document, is_unread, table
from viewkeeper.errors import ViewKeeperError

if TYPE_CHECKING:
    from viewkeeper.keeper import Keeper
    from viewkeeper.transactions.subscriptions import ViewChange

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class ActionError(ViewKeeperError):
    """A command or a webhook that did not take a change."""

    code = "ACTION_FAILED"


def seconds(text: str) -> float:
    """A length of time.

    >>> [seconds(t) for t in ("5s", "250ms", "2m", "7")]
    [5.0, 0.25, 120.0, 7.0]
    """
    for unit in ("ms", "s", "m", "h"):
        if text.endswith(unit):
            return _positive(text.removesuffix(unit), text) * _UNITS[unit]
    return _positive(text, text)


def _positive(number: str, text: str) -> float:
    try:
        found = float(number)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no length of time: use 5s, 250ms or 2m")
    return found


def target(text: str) -> tuple[str, str]:
    """VIEW=ACTION.

    >>> target("totals=cat >> changes.jsonl")
    ('totals', 'cat >> changes.jsonl')
    """
    view, _, action = text.partition("=")
    if not view.strip() or not action.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not VIEW=ACTION")
    return view.strip(), action.strip()


# ── constraints ──


def constraint(args: argparse.Namespace, keeper: Keeper) -> tuple[Any, str]:
    """``constraint add | drop | list``."""
    if args.verb == "add":
        made = keeper.add_constraint(args.name, _wanted(args))
        return {"added": made.name, "sql": made.sql}, f"{made.name}: added, the data satisfies it"
    if args.verb == "drop":
        keeper.drop_constraint(args.name, if_exists=args.if_exists)
        return {"dropped": args.name}, f"{args.name}: dropped"
    found = keeper.constraints()
    value = [{"name": c.name, "given": c.given, "sql": c.sql, "reads": c.reads} for c in found]
    text = table(["constraint", "given"], [[c.name, c.given] for c in found])
    return value, text if found else "No constraints yet."


def _wanted(args: argparse.Namespace) -> Any:
    from viewkeeper.transactions.constraints import foreign_key, key

    if args.sql is not None:
        return args.sql
    if args.key is not None:
        name, columns = _reference(args.key)
        return key(name, *columns)
    ours, _, theirs = args.foreign_key.partition("->")
    (name, columns), (parent, others) = _reference(ours), _reference(theirs)
    return foreign_key(name, columns, parent, others)


def _reference(text: str) -> tuple[str, list[str]]:
    """TABLE(COLUMN, …).

    >>> _reference("orders (id, day)")
    ('orders', ['id', 'day'])
    """
    from viewkeeper.records import InvalidOptionError

    name, bracket, rest = text.strip().partition("(")
    columns = [c.strip() for c in rest.rstrip().removesuffix(")").split(",") if c.strip()]
    if not bracket or not name.strip() or not columns:
        raise InvalidOptionError(f"{text!r} is not TABLE(COLUMN, …)", hint="Such as orders(id).")
    return name.strip(), columns


def check(args: argparse.Namespace, keeper: Keeper) -> tuple[Any, str, bool]:
    """``check``: what was found, and whether all is well."""
    found = keeper.check(args.name)
    value = [
        {
            "constraint": v.constraint,
            "rows": [r.asDict(recursive=True) for r in v.rows],
            "table": v.table,
            "version": v.version,
            "operation": v.operation,
            "at": v.at,
            "error": None if v.error is None else str(v.error),
        }
        for v in found
    ]
    return value, "\n".join(map(str, found)) or "All constraints hold.", not found


# ── changes as they come ──


def as_value(change: ViewChange) -> dict[str, Any]:
    """A change as plain values."""
    return {
        "view": change.view,
        "version": change.version,
        "snapshot": change.snapshot,
        "removed": [row.asDict(recursive=True) for row in change.removed.collect()],
        "added": [row.asDict(recursive=True) for row in change.added.collect()],
    }


def show(change: ViewChange, *, as_json: bool = False) -> None:
    """Prints a change."""
    value = as_value(change)
    if as_json:
        print(document(value), flush=True)
        return
    kind = "snapshot" if change.snapshot else "change"
    print(f"{change.view} version {change.version}: {kind}", flush=True)
    for sign, rows in (("-", value["removed"]), ("+", value["added"])):
        for row in rows:
            print(f"  {sign} " + ", ".join(f"{k}={v}" for k, v in row.items()), flush=True)


def watch(args: argparse.Namespace, keeper: Keeper) -> None:
    """``watch VIEW``: prints changes as they come, until Ctrl-C, or for some rounds."""
    keeper.on_change(args.view, lambda change: show(change, as_json=args.json), name=args.name)
    _rounds(args, lambda: keeper.poll())


def serve(args: argparse.Namespace, keeper: Keeper) -> None:
    """``serve``: keeps all views fresh, and fires actions."""
    kinds = ((shell, args.on), (webhook, args.webhook), (function, args.call))
    waiting = [(view, what, make(what)) for make, given in kinds for view, what in given]
    told: list[str] = []

    def begin(one: tuple[str, str, Any]) -> None:
        view, what, action = one
        keeper.on_change(view, action, name=args.name and f"{args.name} {view} {what}")
        waiting.remove(one)

    def refresh() -> None:
        for report in keeper.refresh():
            if report.strategy != "none":
                print(document(report.as_dict()) if args.json else report, flush=True)

    def check() -> None:
        found = [f"violated: {violation}" for violation in keeper.check()]
        for text in found:
            if text not in told:
                print(text, file=sys.stderr, flush=True)
        told[:] = found

    def once() -> None:
        for one in list(waiting):
            _tried(begin, one)
        _tried(refresh)
        _tried(check)

    for view, _, _ in waiting:
        keeper.history(view)  # a name that is wrong stays so
    _rounds(args, once)


def _tried(do: Callable[..., None], *args: Any) -> None:
    """Says what went wrong; the next round may do better, unless the session has ended, or nobody
    reads any more what is printed."""
    from viewkeeper.records import SessionError

    try:
        do(*args)
    except SessionError:
        raise
    except Exception as error:
        if is_unread(error):
            raise
        print(error, file=sys.stderr, flush=True)


def _rounds(args: argparse.Namespace, do: Callable[[], Any]) -> None:
    done = 0
    while True:
        start = time.monotonic()
        do()
        done += 1
        if args.rounds and done >= args.rounds:
            return
        time.sleep(max(0.0, args.every - (time.monotonic() - start)))


def shell(command: str) -> Callable[[ViewChange], None]:
    """An action: a shell command that gets the change as one line of JSON."""

    def act(change: ViewChange) -> None:
        text = document(as_value(change)) + "\n"
        done = subprocess.run(command, shell=True, input=text, text=True, check=False)
        if done.returncode:
            raise ActionError(
                f"{command} ended with {done.returncode}", hint="It gets the change on stdin."
            )

    return act


def webhook(url: str) -> Callable[[ViewChange], None]:
    """An action: a POST of the change as JSON."""

    def act(change: ViewChange) -> None:
        body = document(as_value(change)).encode()
        head = {"Content-Type": "application/json"}
        try:
            request = urllib.request.Request(url, body, head, method="POST")
            with urllib.request.urlopen(request, timeout=30) as answer:
                answer.read()
        except (OSError, ValueError) as error:
            raise ActionError(f"{url} did not take a change: {error}", hint="Is it up?") from error

    return act


def function(path: str) -> Callable[[ViewChange], Any]:
    """An action: a Python function, as MODULE:NAME.

    >>> function("json:dumps").__name__
    'dumps'
    >>> function("json:dump_all")
    Traceback (most recent call last):
    viewkeeper.cli_active.ActionError: [ACTION_FAILED] json:dump_all is no function: module 'json' \
has no attribute 'dump_all'
    Give MODULE:NAME; the module must be on PYTHONPATH.
    """
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ActionError(
            f"{path} is no function: {error}",
            hint="Give MODULE:NAME; the module must be on PYTHONPATH.",
        ) from error
    if not callable(found):
        raise ActionError(f"{path} is no function", hint="Give MODULE:NAME.")
    return found  # type: ignore[no-any-return]


# ── arguments ──


def add_arguments(command: Callable[..., argparse.ArgumentParser], runs: dict[str, Any]) -> None:
    """The commands, for the parser of the command line."""
    made = command("constraint", runs["constraint"], "add, drop or list constraints")
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB")
    add = verbs.add_parser("add", help="add a constraint that the present data satisfies")
    add.add_argument("name", metavar="NAME")
    what = add.add_mutually_exclusive_group(required=True)
    what.add_argument("--sql", help="a query that must stay empty, or ALWAYS (SELECT …)")
    what.add_argument("--key", metavar="'T(A, …)'", help="no two rows share the columns")
    what.add_argument("--foreign-key", metavar="'T(A, …) -> P(B, …)'")
    drop = verbs.add_parser("drop", help="drop a constraint")
    drop.add_argument("name", metavar="NAME")
    drop.add_argument("--if-exists", action="store_true")
    verbs.add_parser("list", help="list the constraints")

    checked = command("check", runs["check"], "look for violations that other writers brought in")
    checked.add_argument("name", metavar="CONSTRAINT", nargs="?")

    watched = command("watch", runs["watch"], "print the changes of a view as they come")
    watched.add_argument("view", metavar="VIEW")
    watched.add_argument("--name", help="go on where the last watch of this name ended")
    served = command("serve", runs["serve"], "keep all views fresh, and fire actions")
    served.add_argument("--name", default="serve", help="under which positions are kept")
    for flag, help_ in (
        ("--on", "a shell command that gets each change of a view as JSON"),
        ("--webhook", "a URL that gets each change of a view as JSON"),
        ("--call", "a Python function, MODULE:NAME, that is called with each change of a view"),
    ):
        served.add_argument(
            flag, metavar="VIEW=ACTION", type=target, action="append", default=[], help=help_
        )
    for one, every in ((watched, "2s"), (served, "5s")):
        one.add_argument(
            "--every",
            type=seconds,
            default=seconds(every),
            metavar="TIME",
            help=f"between two looks, such as 500ms, 5s or 2m (default {every})",
        )
        one.add_argument(
            "--rounds", type=int, default=0, metavar="N", help="how often; 0, the default: for ever"
        )
