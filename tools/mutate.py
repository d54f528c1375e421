"""Breaks each rule in turn: the tests must notice every time. `make mutate`.

The mutants of the rule modules (``mutants.py``) run one at a time, each in a process of its own,
against the checks of ``mutate_checks.py``. A mutant that fails one of them, raises an error or
takes too long is killed. Mutants that mean the same as the original are listed, each with its
proof, in ``mutate_equivalent.txt``.
"""

from __future__ import annotations

import argparse
import gc
import importlib.abc
import importlib.util
import os
import resource
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

HOME = Path(__file__).resolve().parent
ROOT = HOME.parent
SOURCE = ROOT / "src" / "viewkeeper" / "algebra"
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(HOME)]

import duckdb  # noqa: E402, F401  here once, not in each process
import sqlglot  # noqa: E402, F401

import mutants  # noqa: E402

MODULES = ("changes/gl95", "changes/gk98", "changes/glt97", "changes/qw91", "changes/aggregates")
MODULES += ("changes/signed", "changes/transactions")
MODULES += ("simplify/laws_empty", "simplify/laws_structure", "simplify/laws_proof")
EQUIVALENT = HOME / "mutate_equivalent.txt"
PATIENCE = 120  # seconds of its own time that a mutant may take


class Broken(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the mutant's source when its module is imported."""

    def __init__(self, mutant: mutants.Mutant) -> None:
        self.mutant = mutant
        self.module = "viewkeeper.algebra." + mutant.module.replace("/", ".")

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == self.module else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.source, self.module, "exec"), module.__dict__)


@dataclass
class Run:
    """A process that tries to kill a mutant, and what it said."""

    mutant: mutants.Mutant
    pipe: int
    start: float


def attempt(mutant: mutants.Mutant) -> str:
    """In the process of a mutant: the check that kills it, or nothing."""
    sys.meta_path.insert(0, Broken(mutant))
    try:
        import mutate_checks

        return mutate_checks.killer(mutant.module, mutant.function) or ""
    except BaseException as e:  # already the import fails
        return f"import: {type(e).__name__}"


def start(mutant: mutants.Mutant) -> tuple[int, Run]:
    """A new process for a mutant: its id, and where to read from."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, Run(mutant, read, time.monotonic())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)  # then the process dies of SIGPROF
    os.write(write, attempt(mutant).encode()[:500])
    os._exit(0)


def finish(run: Run, status: int) -> str:
    """Who killed the mutant; nothing if it lives."""
    said = os.read(run.pipe, 500).decode(errors="replace")
    os.close(run.pipe)
    return said or ("" if status == 0 else "took too long")


def equivalent() -> dict[str, str]:
    """The mutants that mean the same, with their proofs."""
    found: dict[str, str] = {}
    if EQUIVALENT.exists():
        for line in EQUIVALENT.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                name, _, proof = line.partition(" :: ")
                assert proof.strip(), f"no proof in {line!r}"
                found[name.strip()] = proof.strip()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", default="", help="mutants whose name holds this text")
    parser.add_argument("--list", action="store_true", help="show the mutants, and stop")
    parser.add_argument("--verbose", action="store_true", help="tell who killed each")
    options = parser.parse_args()
    made = [m for n in MODULES for m in mutants.mutants(n, (SOURCE / f"{n}.py").read_text())]
    same = equivalent()
    unknown = same.keys() - {m.name for m in made}
    todo = [m for m in made if options.only in m.name and m.name not in same]
    if options.list:
        print("\n".join(m.name for m in todo))
        return 0
    began = shown = time.monotonic()
    survived: list[mutants.Mutant] = []
    killed: Counter[str] = Counter()
    running: dict[int, Run] = {}
    waiting = list(reversed(todo))
    gc.freeze()
    while waiting or running:
        while waiting and len(running) < options.jobs:
            pid, run = start(waiting.pop())
            running[pid] = run
        pid, status = os.wait()
        if pid not in running:
            continue
        run = running.pop(pid)
        killer = finish(run, status)
        if killer:
            killed[run.mutant.module] += 1
            if options.verbose:
                print(f"{run.mutant.name}  killed by {killer}", flush=True)
        else:
            survived.append(run.mutant)
            print(f"survived: {run.mutant.name}", flush=True)
        if time.monotonic() - shown > 20:
            shown = time.monotonic()
            done = sum(killed.values()) + len(survived)
            print(f"{done:,} of {len(todo):,}, {shown - began:.0f} s", flush=True)
    for module, n in killed.items():
        print(f"{module}: {n} killed")
    print(f"{len(same)} left out, as they mean the same (tools/{EQUIVALENT.name})")
    for name in sorted(unknown):
        print(f"not a mutant any more: {name}")
    gc.unfreeze()
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = spent.ru_utime + spent.ru_stime
    print(f"{time.monotonic() - began:.0f} s, {cpu:.0f} s of processors")
    print(f"{sum(killed.values())} killed, {len(survived)} survived")
    return 1 if survived or (unknown and not options.only) else 0


if __name__ == "__main__":
    sys.exit(main())
