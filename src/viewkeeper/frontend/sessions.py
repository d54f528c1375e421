"""GROUP BY session_window(t, gap): rows whose times lie close together, as windows and a grouping.

Below the grouping Spark gives each row the span w = [t, t + gap], and its grouping merges spans of
equal keys k that touch. The same by values alone, so that computing again finds the same, whatever
the order of rows:

    before  the latest end of the spans that begin earlier
    first   the latest begin, so far, of a span that touches none of these: its session begins there
    last    the latest end of the spans of a session

    Γ[k, w; …](S) = Γ[k, [first, last]; …](ω[k, first; last](ω[k; first](ω[k; before](S))))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.nodes import Project, Query, Window
from viewkeeper.algebra.scalars import Col, Scalar
from viewkeeper.algebra.texts import joined, splice
from viewkeeper.frontend.frames import Frame
from viewkeeper.frontend.jvm import children, expr_id

if TYPE_CHECKING:
    from viewkeeper.frontend.plans import Plans

_NAMED = ("Alias", "AttributeReference")
_MARK = "spark.sessionWindow"
_EARLIER = " RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '0.000001' SECOND PRECEDING"
_SO_FAR = " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def merged(plans: Plans, frame: Frame, grouping: list[Any]) -> Frame:
    """The frame with the span of its session in each row, if the grouping is by sessions."""
    marked = [e for e in grouping if e.nodeName() in _NAMED and e.metadata().contains(_MARK)]
    if not marked:
        return frame
    attribute = children(marked[0])[0] if marked[0].nodeName() == "Alias" else marked[0]
    place = frame.columns[expr_id(attribute)]
    keys = plans.scalars(frame).of([e for e in grouping if e is not marked[0]])
    return Frame(_merged(frame.query, place, keys), frame.ids)


def _merged(s: Query, place: int, by: tuple[Scalar, ...]) -> Query:
    """S with the spans in column ``place`` merged where the values ``by`` are equal."""
    width = s.arity
    extra = [k for k in dict.fromkeys(by) if not isinstance(k, Col)]
    if extra:
        columns: list[Scalar] = [Col(i) for i in range(width)]
        names = (*s.columns, *(f"_by{i}" for i in range(len(extra))))
        s = Project(s, (*columns, *extra), names)
    found = [k.index if isinstance(k, Col) else width + extra.index(k) for k in by]
    keys = tuple(k for k in dict.fromkeys(found) if k != place)
    start, end = (splice([Col(place), f".{field}"]) for field in ("start", "end"))
    before, first, last = (Col(s.arity + i) for i in range(3))

    def over(what: list[str | Scalar], partition: tuple[int, ...], frame: str) -> tuple[Any, ...]:
        rows: list[str | Scalar] = ["PARTITION BY ", *joined([Col(k) for k in partition])]
        order: list[str | Scalar] = [" ORDER BY ", start, " ASC NULLS FIRST", frame]
        inside = (rows if partition else []) + (order if frame else [])
        return (splice(["max(", *what, ") OVER (", *inside, ")"]),)

    alone: list[str | Scalar] = ["CASE WHEN ", before, " >= ", start, " THEN NULL ELSE ", start]
    query: Query = Window(s, keys, over([end], keys, _EARLIER), ("_before",))
    query = Window(query, keys, over([*alone, " END"], keys, _SO_FAR), ("_first",))
    session = (*keys, first.index)
    query = Window(query, session, over([end], session, ""), ("_last",))
    items: list[Scalar] = [Col(i) for i in range(width)]
    items[place] = splice(["named_struct('start', ", first, ", 'end', ", last, ")"])
    return Project(query, tuple(items), s.columns[:width])
