"""Recursive views: what SQL cannot compute is kept by update programs in SQL.

`load` gives a shipped incremental evaluation system and `read_system` reads another one; `prepare`
writes its queries for an engine; `run` runs a program on a `Runner`; `recognise` finds the closure
in a recursive query.
"""

from viewkeeper.recursive.closure import Closure, build, refresh
from viewkeeper.recursive.errors import CheckFailedError, CycleError, ProgramError, RoundsError
from viewkeeper.recursive.joins import count_joins
from viewkeeper.recursive.library import GRAPHS, load
from viewkeeper.recursive.model import Program, System
from viewkeeper.recursive.reading import read_system
from viewkeeper.recursive.recognition import NotAClosure, PlainClosure, recognise
from viewkeeper.recursive.rendering import bind, columns, prepare
from viewkeeper.recursive.running import Outcome, Runner, TableChange, run

__all__ = [
    "GRAPHS",
    "CheckFailedError",
    "Closure",
    "CycleError",
    "NotAClosure",
    "Outcome",
    "PlainClosure",
    "Program",
    "ProgramError",
    "RoundsError",
    "Runner",
    "System",
    "TableChange",
    "bind",
    "build",
    "columns",
    "count_joins",
    "load",
    "prepare",
    "read_system",
    "recognise",
    "refresh",
    "run",
]
