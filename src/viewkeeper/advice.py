"""A piece of advice: what to do, what it saves per refresh, what it costs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

APPLIED = ("clustering", "feed")  # kinds that change no rows: ``--apply`` runs them


@dataclass(frozen=True)
class Advice:
    """What would make the refreshes of a view cheaper; ``print`` it, or look at its fields.

    Attributes
    ----------
    kind : str
        "clustering": how a table lies; "feed": a change feed that is off; "driver": a table that
        only Spark can read; "intermediate": a part worth a view of its own; "query": a query that
        can only be refreshed in full.
    table : str
        The table it is about.
    what, why : str
        What to do, and the reason.
    sql : tuple of str
        The statements that do it.
    seconds : float
        What a refresh is estimated to save, when the sources ``changed`` have changed.
    read_before, read_after : int
        Bytes that such a refresh opens, now and then, by estimate.
    cost : int
        Bytes that are rewritten once or stored for it.
    changed : tuple of str
        The sources whose changes get cheaper.

    Examples
    --------
    >>> sql = ("OPTIMIZE t ZORDER BY (k)",)
    >>> print(Advice("clustering", "t", "cluster t by k", "it is mixed", sql, 0.5, 10**8, 10**6))
    cluster t by k: it is mixed
      saves 0.50 s a refresh: reads 1.0 MB instead of 100.0 MB
      OPTIMIZE t ZORDER BY (k);
    """

    kind: str
    table: str
    what: str
    why: str
    sql: tuple[str, ...] = ()
    seconds: float = 0.0
    read_before: int = 0
    read_after: int = 0
    cost: int = 0
    changed: tuple[str, ...] = ()

    @property
    def can_apply(self) -> bool:
        """Whether ``Keeper.apply_advice`` does it."""
        return self.kind in APPLIED

    def __str__(self) -> str:
        lines = [f"{self.what}: {self.why}"]
        if self.seconds:
            when = f" after changes of {', '.join(self.changed)}" if self.changed else ""
            line = f"  saves {self.seconds:.2f} s a refresh{when}"
            if self.read_before:
                line += f": reads {size_text(self.read_after)} instead of"
                line += f" {size_text(self.read_before)}"
            lines.append(line)
        if self.cost:
            once = self.kind in ("clustering", "driver")
            verb, end = ("rewrites", " once") if once else ("stores", "")
            end = " with each commit" if self.kind == "feed" else end
            lines.append(f"  {verb} {size_text(self.cost)}{end}")
        return "\n".join([*lines, *(f"  {text};" for text in self.sql)])

    def as_dict(self) -> dict[str, Any]:
        """The advice as plain values."""
        return {**dataclasses.asdict(self), "seconds": round(self.seconds, 3)}


def size_text(size: float) -> str:
    """A number of bytes for people.

    >>> size_text(900), size_text(2_500_000), size_text(3e9)
    ('900 B', '2.5 MB', '3.0 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size:.0f} B"
