"""The systems that are shipped with the package: the paper's programs, and those for batches."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.model import System
from viewkeeper.recursive.reading import read_system

Graph = Literal["directed", "acyclic", "undirected"]
GRAPHS: tuple[Graph, ...] = ("directed", "acyclic", "undirected")
SINGLE = (
    "acyclic_single",
    "undirected_single",
    "directed_single",
    "even",
)  # the paper's, as they are


def text(file: str) -> str:
    """The text of a shipped file of SQL.

    Examples
    --------
    >>> print(text("even.sql").splitlines()[0])
    -- SYSTEM even: whether a set has an even number of rows (section 6)
    """
    return (resources.files("viewkeeper.recursive") / "sql" / file).read_text(encoding="utf-8")


@cache
def load(name: str) -> System:
    """A shipped system by its name.

    Parameters
    ----------
    name : str
        A kind of graph ("directed", "acyclic", "undirected"): closures kept for batches of edges.
        Or a program of the paper, for one edge at a time: "acyclic_single", "undirected_single",
        "directed_single", "even".

    Returns
    -------
    System

    Examples
    --------
    >>> load("undirected").comment
    'the components of an undirected graph, and by them its closure'
    >>> [table.name for table in load("undirected_single").tables]
    ['LESSTHAN', 'FOREST', 'THROUGH']
    """
    if name not in (*GRAPHS, *SINGLE):
        raise ProgramError(
            f"there is no system {name!r}", hint=f"There are: {', '.join((*GRAPHS, *SINGLE))}."
        )
    return read_system(text(f"{name}.sql"), include=text)
