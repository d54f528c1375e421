"""The commands of the command line: what each does, and what it answers."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewkeeper import cli_active, cli_progress
from viewkeeper.cli_output import table
from viewkeeper.cli_progress import Progress
from viewkeeper.errors import ViewKeeperError

if TYPE_CHECKING:
    from viewkeeper.keeper import Keeper

OK, FAILED, USAGE, STOPPED = 0, 1, 2, 130
_MAKES_LAKE = ("create", "closure", "program", "sql")  # other commands want a lake that is there


@dataclasses.dataclass
class Answer:
    """What a command found: plain values for JSON, text for people, and the exit code."""

    value: Any
    text: str
    code: int = OK
    shown: bool = False  # it has printed all there is


def connected(args: argparse.Namespace, progress: Progress) -> Keeper:
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


def create(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    sql = args.sql if args.sql is not None else args.text
    with progress.doing(f"creating {args.name}"):
        report = keeper.create_view(
            args.name, sql, refresh=args.refresh, maintain=args.maintain, replace=args.replace
        )
        rows = report.inserted
    text = f"{report.view}: created with {rows:,} rows in {report.seconds:.2f} s"
    return Answer(report.as_dict(), text)


def closure(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
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


def program(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    text = args.system if args.system is not None else args.text
    with progress.doing(f"creating {args.name}"):
        report = keeper.create_program(
            args.name, args.source, text, args.refresh, args.maintain, replace=args.replace
        )
    return Answer(report.as_dict(), f"{report.view}: created in {report.seconds:.2f} s")


def refresh(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    total = 0 if args.names else len(keeper.views())
    with progress.doing("refreshing", total):
        reports = keeper.refresh(
            args.names or None, args.strategy, watch=cli_progress.watch(progress)
        )
    text = "\n".join(map(str, reports)) or "No views yet."
    return Answer([r.as_dict() for r in reports], text)


def explain(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    with progress.doing("explaining"):
        found = keeper.explain(args.name if args.name is not None else args.sql)
    return Answer({**dataclasses.asdict(found), "incremental": found.incremental}, str(found))


def advise(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
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


def status(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    from viewkeeper.cli_status import status_table, statuses

    with progress.doing("looking"):
        found = statuses(keeper)
    return Answer([s.as_dict() for s in found], status_table(found))


def history(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    from pyspark.sql import functions as F

    from viewkeeper.cli_status import TIME

    with progress.doing("reading"):
        frame = keeper.history(args.name).limit(args.limit)
        rows = frame.withColumn("at", F.date_format("at", TIME)).collect()
    shown = ["at", "view", "strategy", "inserted", "deleted", "seconds", "lane", "reason"]
    text = table(shown, [[row[c] for c in shown] for row in rows]) if rows else "No refreshes yet."
    return Answer([row.asDict() for row in rows], text)


def drop(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    with progress.doing(f"dropping {args.name}"):
        keeper.drop_view(args.name, if_exists=args.if_exists)
    return Answer({"dropped": args.name}, f"{args.name}: dropped")


def sql(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
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


def doctor(args: argparse.Namespace, keeper: Keeper | None, progress: Progress) -> Answer:
    from viewkeeper import doctor

    found = doctor.machine() + doctor.folder(args.lake)
    options = {"fix": args.fix, "verify": args.verify, "older_than": args.older_than}
    if keeper is not None:
        found += doctor.lake(keeper, **options)
    elif doctor.healthy(found):
        try:
            with connected(args, progress) as own, progress.doing("examining"):
                found += doctor.lake(own, **options)
        except ViewKeeperError as e:
            found.append(doctor.Check("Spark", "bad", e.what, e.hint))
    value = [dataclasses.asdict(check) for check in found]
    return Answer(value, "\n".join(map(str, found)), OK if doctor.healthy(found) else FAILED)


def constraint(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    with progress.doing("looking at the constraints"):
        return Answer(*cli_active.constraint(args, keeper))


def check(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    with progress.doing("checking"):
        value, text, well = cli_active.check(args, keeper)
    return Answer(value, text, OK if well else FAILED)


def watch(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    cli_active.watch(args, keeper)
    return Answer(None, "", shown=True)


def serve(args: argparse.Namespace, keeper: Keeper, progress: Progress) -> Answer:
    cli_active.serve(args, keeper)
    return Answer(None, "", shown=True)
