"""The arguments of the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from importlib import metadata

from viewkeeper import cli_active
from viewkeeper import cli_commands as do
from viewkeeper.cli_commands import Answer

_EXAMPLES = """\
examples:
  viewkeeper --lake ./lake create totals --sql 'SELECT c, sum(x) AS s FROM t GROUP BY c'
  viewkeeper --lake ./lake closure reach --edges links --start src --end dst
  viewkeeper --lake ./lake refresh
  viewkeeper --lake ./lake status
  viewkeeper --lake ./lake explain --sql 'SELECT DISTINCT c FROM t'

exit codes: 0 done; 1 it failed, and stderr says why; 2 wrong usage; 130 stopped by Ctrl-C.
The folder of the lake can also be given by the environment variable VIEWKEEPER_LAKE."""


def read(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, checked.

    >>> read(["--lake", "./lake", "refresh", "v"]).names
    ['v']
    """
    made = parser()
    args = made.parse_args(argv)
    for key, value in {"json": False, "verbose": False, "lake": None}.items():
        if not hasattr(args, key):
            setattr(args, key, value)
    args.lake = args.lake or os.environ.get("VIEWKEEPER_LAKE")
    if not args.lake:
        made.error("which lake? Give --lake DIR, or set VIEWKEEPER_LAKE")
    return args


def parser() -> argparse.ArgumentParser:
    """The parser, with all commands."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--lake", metavar="DIR", help="the folder of the lake")
    common.add_argument("--json", action="store_true", help="print one JSON document")
    common.add_argument("--verbose", action="store_true", help="show what Spark says")
    whole = argparse.ArgumentParser(
        "viewkeeper",
        description="Materialized views on Spark and Delta Lake, kept by work on the change.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    whole.add_argument("--version", action="version", version=f"viewkeeper {_version()}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[..., Answer], help: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help, parents=[common])
        made.set_defaults(run=run)
        return made

    create = command("create", do.create, "create a view and fill it")
    create.add_argument("name", metavar="NAME")
    query = create.add_mutually_exclusive_group(required=True)
    query.add_argument("--sql", help="the query")
    query.add_argument("--file", metavar="F", help="a file with the query; - is stdin")
    closure = command(
        "closure", do.closure, "create a view of which nodes of a graph are connected"
    )
    closure.add_argument("name", metavar="NAME")
    closure.add_argument("--edges", required=True, help="a table, a view or a query")
    closure.add_argument("--start", required=True, metavar="COLUMN[,COLUMN]")
    closure.add_argument("--end", required=True, metavar="COLUMN[,COLUMN]")
    closure.add_argument(
        "--graph", choices=["directed", "acyclic", "undirected"], default="directed"
    )

    program = command("program", do.program, "create a view that is kept by programs of your own")
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

    refresh = command("refresh", do.refresh, "bring views up to their sources; by default all")
    refresh.add_argument("names", metavar="NAME", nargs="*")
    how = refresh.add_mutually_exclusive_group()
    for word, help_ in (
        ("full", "compute each view anew"),
        ("incremental", "by the change only, whatever it costs"),
    ):
        how.add_argument(f"--{word}", dest="strategy", action="store_const", const=word, help=help_)

    explain = command("explain", do.explain, "say how a view, or a query, is kept, and why")
    what = explain.add_mutually_exclusive_group(required=True)
    what.add_argument("name", metavar="NAME", nargs="?")
    what.add_argument("--sql", help="a query that is not yet a view")

    advise = command("advise", do.advise, "say what would make a view's refreshes cheaper")
    advise.add_argument("name", metavar="NAME")
    advise.add_argument("--apply", action="store_true", help="cluster tables, turn on change feeds")
    advise.add_argument("--rows", type=_positive, metavar="N", help="rows of a usual change")
    advise.add_argument(
        "--least", type=float, default=0.05, metavar="SECONDS", help="a refresh, worth telling"
    )

    command("status", do.status, "list the views: last refresh, commits ahead, what is next")

    history = command("history", do.history, "list what refreshes did, the newest first")
    history.add_argument("name", metavar="NAME", nargs="?")
    history.add_argument("--limit", type=_positive, default=20, metavar="N", help="(default 20)")

    drop = command("drop", do.drop, "drop a view and its rows")
    drop.add_argument("name", metavar="NAME")
    drop.add_argument("--if-exists", action="store_true")

    sql = command("sql", do.sql, "run a statement: Spark SQL, or one about materialized views")
    sql.add_argument("text", metavar="STATEMENT")
    sql.add_argument(
        "--limit", type=_positive, default=1000, metavar="N", help="rows (default 1000)"
    )

    doctor = command("doctor", do.doctor, "examine the machine, the lake and every view")
    doctor.add_argument("--fix", action="store_true", help="drop stores that no view has")
    doctor.add_argument("--verify", action="store_true", help="compute each view and compare")
    doctor.add_argument(
        "--older-than",
        type=int,
        default=600,
        metavar="SECONDS",
        help="a younger store may belong to a view in the making (default 600)",
    )
    runs = {
        "constraint": do.constraint,
        "check": do.check,
        "watch": do.watch,
        "serve": do.serve,
    }
    cli_active.add_arguments(command, runs)
    return whole


def _version() -> str:
    try:
        return metadata.version("viewkeeper")
    except metadata.PackageNotFoundError:  # run from its sources
        return "(not installed)"


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)
