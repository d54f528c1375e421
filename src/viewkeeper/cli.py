"""The command line: ``viewkeeper --lake DIR create | refresh | explain | status | …``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewkeeper import cli_active
from viewkeeper.cli_output import (
    document,
    error_document,
    is_unread,
    print_no_more,
    printable,
    table,
)
from viewkeeper.cli_progress import Progress, watch
from viewkeeper.errors import ViewKeeperError

if TYPE_CHECKING:
    from viewkeeper.keeper import Keeper

OK, FAILED, USAGE, STOPPED = 0, 1, 2, 130
_MAKES_LAKE = ("create", "closure", "program", "sql")  # other commands want a lake that is there

_EXAMPLES = """\
examples:
  viewkeeper --lake ./lake create totals --sql 'SELECT c, sum(x) AS s FROM t GROUP BY c'
  viewkeeper --lake ./lake closure reach --edges links --start src --end dst
  viewkeeper --lake ./lake refresh
  viewkeeper --lake ./lake status
  viewkeeper --lake ./lake explain --sql 'SELECT DISTINCT c FROM t'

exit codes: 0 done; 1 it failed, and stderr says why; 2 wrong usage; 130 stopped by Ctrl-C.
The folder of the lake can also be given by the environment variable VIEWKEEPER_LAKE."""


@dataclasses.dataclass
class Answer:
    """What a command found: plain values for JSON, text for people, and the exit code."""

    value: Any
    text: str
    code: int = OK
    shown: bool = False  # it has printed all there is


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
    args = _read(argv)
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
    if command is _doctor:
        return _doctor(args, keeper, progress)
    if keeper is not None:
        return command(args, keeper, progress)
    with _connected(args, progress) as own:
        return command(args, own, progress)


def _connected(args: argparse.Namespace, progress: Progress) -> Keeper:
    """A keeper on the lake, started without the JVM's noise."""
    from viewkeeper.cli_quiet import quiet
    from viewkeeper.records import SessionError

    if args.command not in _MAKES_LAKE and not Path(args.lake).expanduser().is_dir():
        raise SessionError(
            f"there is no folder {args.lake}",
            hint="Check --lake; `create`, `closure`, `program` and `sql` make a new lake.",
        )
    with progress.doing("starting Spark"), quiet(args.verbose):
        from viewkeeper.keeper import connect

        keeper = connect(args.lake)
    return keeper


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


# ── commands ──


def _create(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    sql = args.sql if args.sql is not None else args.text
    with progress.doing(f"creating {args.name}"):
        report = keeper.create_view(
            args.name, sql, refresh=args.refresh, maintain=args.maintain, replace=args.replace
        )
        rows = report.inserted
    text = f"{report.view}: created with {rows:,} rows in {report.seconds:.2f} s"
    return Answer(report.as_dict(), text)


def _closure(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    start, end = ([n.strip() for n in text.split(",")] for text in (args.start, args.end))
    with progress.doing(f"creating {args.name}"):
        report = keeper.create_closure(
            args.name,
            args.edges,
            start,
            end,
            args.graph,
            args.refresh,
            args.maintain,
            replace=args.replace,
        )
    return Answer(report.as_dict(), f"{report.view}: created in {report.seconds:.2f} s")


def _program(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    text = args.system if args.system is not None else args.text
    with progress.doing(f"creating {args.name}"):
        report = keeper.create_program(
            args.name, args.source, text, args.refresh, args.maintain, replace=args.replace
        )
    return Answer(report.as_dict(), f"{report.view}: created in {report.seconds:.2f} s")


def _refresh(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    total = 0 if args.names else len(keeper.views())
    with progress.doing("refreshing", total):
        reports = keeper.refresh(args.names or None, args.strategy, watch=watch(progress))
    text = "\n".join(map(str, reports)) or "No views yet."
    return Answer([r.as_dict() for r in reports], text)


def _explain(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    with progress.doing("explaining"):
        found = keeper.explain(args.name if args.name is not None else args.sql)
    return Answer({**dataclasses.asdict(found), "incremental": found.incremental}, str(found))


def _advise(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    from viewkeeper.advise import text

    with progress.doing("looking"):
        found = keeper.advise(args.name, rows=args.rows, least=args.least)
    todo = [a for a in found if a.can_apply] if args.apply else []
    if todo and not args.json:
        print(text(found) + "\n", flush=True)
    for advice in todo:
        with progress.doing(advice.what):
            keeper.apply_advice(advice)
    value = [{**a.as_dict(), "applied": a in todo} for a in found]
    done = "\n".join(f"Done: {a.what}." for a in todo)
    return Answer(value, done or text(found))


def _status(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    from viewkeeper.cli_status import status_table, statuses

    with progress.doing("looking"):
        found = statuses(keeper)
    return Answer([s.as_dict() for s in found], status_table(found))


def _history(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    from pyspark.sql import functions as F

    from viewkeeper.cli_status import TIME

    with progress.doing("reading"):
        frame = keeper.history(args.name).limit(args.limit)
        rows = frame.withColumn("at", F.date_format("at", TIME)).collect()
    shown = ["at", "view", "strategy", "inserted", "deleted", "seconds", "lane", "reason"]
    text = table(shown, [[row[c] for c in shown] for row in rows]) if rows else "No refreshes yet."
    return Answer([row.asDict() for row in rows], text)


def _drop(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    with progress.doing(f"dropping {args.name}"):
        keeper.drop_view(args.name, if_exists=args.if_exists)
    return Answer({"dropped": args.name}, f"{args.name}: dropped")


def _sql(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    with progress.doing("running"):
        frame = keeper.sql(args.text)
        rows = [list(row) for row in frame.limit(args.limit + 1).collect()]
    more = len(rows) > args.limit
    rows = rows[: args.limit]
    value = {"columns": frame.columns, "rows": rows, "more": more}
    if not frame.columns:
        return Answer(value, "")
    if frame.columns == ["plan"]:  # EXPLAIN: the text as it is
        return Answer(value, "\n".join(str(row[0]) for row in rows))
    text = table(frame.columns, rows)
    return Answer(value, f"{text}\n… the first {args.limit} rows (--limit)" if more else text)


def _doctor(args: argparse.Namespace, keeper: Keeper | None, progress: Progress) -> Answer:
    from viewkeeper import doctor

    found = doctor.machine() + doctor.folder(args.lake)
    options = {"fix": args.fix, "verify": args.verify, "older_than": args.older_than}
    if keeper is not None:
        found += doctor.lake(keeper, **options)
    elif doctor.healthy(found):
        try:
            with _connected(args, progress) as own, progress.doing("examining"):
                found += doctor.lake(own, **options)
        except ViewKeeperError as e:
            found.append(doctor.Check("Spark", "bad", e.what, e.hint))
    value = [dataclasses.asdict(check) for check in found]
    return Answer(value, "\n".join(map(str, found)), OK if doctor.healthy(found) else FAILED)


def _constraint(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    with progress.doing("looking at the constraints"):
        return Answer(*cli_active.constraint(args, keeper))


def _check(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    with progress.doing("checking"):
        value, text, well = cli_active.check(args, keeper)
    return Answer(value, text, OK if well else FAILED)


def _watch(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    cli_active.watch(args, keeper)
    return Answer(None, "", shown=True)


def _serve(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    cli_active.serve(args, keeper)
    return Answer(None, "", shown=True)


# ── arguments ──


def _read(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    args = parser.parse_args(argv)
    for key, value in {"json": False, "verbose": False, "lake": None}.items():
        if not hasattr(args, key):
            setattr(args, key, value)
    args.lake = args.lake or os.environ.get("VIEWKEEPER_LAKE")
    if not args.lake:
        parser.error("which lake? Give --lake DIR, or set VIEWKEEPER_LAKE")
    return args


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--lake", metavar="DIR", help="the folder of the lake")
    common.add_argument("--json", action="store_true", help="print one JSON document")
    common.add_argument("--verbose", action="store_true", help="show what Spark says")
    parser = argparse.ArgumentParser(
        "viewkeeper",
        description="Materialized views on Spark and Delta Lake, kept by work on the change.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"viewkeeper {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[..., Answer], help: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help, parents=[common])
        made.set_defaults(run=run)
        return made

    create = command("create", _create, "create a view and fill it")
    create.add_argument("name", metavar="NAME")
    query = create.add_mutually_exclusive_group(required=True)
    query.add_argument("--sql", help="the query")
    query.add_argument("--file", metavar="F", help="a file with the query; - is stdin")
    closure = command("closure", _closure, "create a view of which nodes of a graph are connected")
    closure.add_argument("name", metavar="NAME")
    closure.add_argument("--edges", required=True, help="a table, a view or a query")
    closure.add_argument("--start", required=True, metavar="COLUMN[,COLUMN]")
    closure.add_argument("--end", required=True, metavar="COLUMN[,COLUMN]")
    closure.add_argument(
        "--graph", choices=["directed", "acyclic", "undirected"], default="directed"
    )

    program = command("program", _program, "create a view that is kept by programs of your own")
    program.add_argument("name", metavar="NAME")
    program.add_argument("--source", required=True, help="a table, a view or a query")
    text = program.add_mutually_exclusive_group(required=True)
    text.add_argument("--file", metavar="F", help="a file with the programs; - is stdin")
    text.add_argument("--system", metavar="NAME", help="one that is shipped, such as even")

    for made in (create, closure, program):
        made.add_argument(
            "--refresh",
            choices=["auto", "incremental", "full"],
            default="auto",
            help="how it is kept: as the cost model says (the default), never in full, always",
        )
        made.add_argument(
            "--maintain",
            choices=["deferred", "immediate"],
            default="deferred",
            help="when: by refresh (the default), or with each transaction",
        )
        made.add_argument("--replace", action="store_true", help="replace a view of this name")

    refresh = command("refresh", _refresh, "bring views up to their sources; by default all")
    refresh.add_argument("names", metavar="NAME", nargs="*")
    how = refresh.add_mutually_exclusive_group()
    for word, help_ in (
        ("full", "compute each view anew"),
        ("incremental", "by the change only, whatever it costs"),
    ):
        how.add_argument(f"--{word}", dest="strategy", action="store_const", const=word, help=help_)

    explain = command("explain", _explain, "say how a view, or a query, is kept, and why")
    what = explain.add_mutually_exclusive_group(required=True)
    what.add_argument("name", metavar="NAME", nargs="?")
    what.add_argument("--sql", help="a query that is not yet a view")

    advise = command("advise", _advise, "say what would make a view's refreshes cheaper")
    advise.add_argument("name", metavar="NAME")
    advise.add_argument("--apply", action="store_true", help="cluster tables, turn on change feeds")
    advise.add_argument("--rows", type=_positive, metavar="N", help="rows of a usual change")
    advise.add_argument(
        "--least", type=float, default=0.05, metavar="SECONDS", help="a refresh, worth telling"
    )

    command("status", _status, "list the views: last refresh, commits ahead, what is next")

    history = command("history", _history, "list what refreshes did, the newest first")
    history.add_argument("name", metavar="NAME", nargs="?")
    history.add_argument("--limit", type=_positive, default=20, metavar="N", help="(default 20)")

    drop = command("drop", _drop, "drop a view and its rows")
    drop.add_argument("name", metavar="NAME")
    drop.add_argument("--if-exists", action="store_true")

    sql = command("sql", _sql, "run a statement: Spark SQL, or one about materialized views")
    sql.add_argument("text", metavar="STATEMENT")
    sql.add_argument(
        "--limit", type=_positive, default=1000, metavar="N", help="rows (default 1000)"
    )

    doctor = command("doctor", _doctor, "examine the machine, the lake and every view")
    doctor.add_argument("--fix", action="store_true", help="drop stores that no view has")
    doctor.add_argument("--verify", action="store_true", help="compute each view and compare")
    doctor.add_argument(
        "--older-than",
        type=int,
        default=600,
        metavar="SECONDS",
        help="a younger store may belong to a view in the making (default 600)",
    )
    runs = {"constraint": _constraint, "check": _check, "watch": _watch, "serve": _serve}
    cli_active.add_arguments(command, runs)
    return parser


def _version() -> str:
    try:
        return metadata.version("viewkeeper")
    except metadata.PackageNotFoundError:  # run from its sources
        return "(not installed)"


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _text_of(file: str) -> str:
    from viewkeeper.records import InvalidOptionError

    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise InvalidOptionError(
            f"{file} cannot be read: {e}", hint="Give a text file with one query."
        ) from e


if __name__ == "__main__":
    sys.exit(main())
