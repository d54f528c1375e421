"""What a benchmark found: a JSON file, and a bar chart as SVG, without a library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

_WIDTH, _BAR, _GAP, _LEFT = 640, 26, 12, 130


def bars(title: str, values: Mapping[str, float], unit: str = " s") -> str:
    """Horizontal bars, each with its name and value.

    >>> bars("t", {"a": 1.0}).startswith("<svg")
    True
    """
    most = max(values.values(), default=1.0) or 1.0
    height = 50 + len(values) * (_BAR + _GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="13">',
        f'<text x="10" y="24" font-size="15">{escape(title)}</text>',
    ]
    for i, (name, value) in enumerate(values.items()):
        y = 42 + i * (_BAR + _GAP)
        length = max(1.0, (_WIDTH - _LEFT - 80) * value / most)
        lines += [
            f'<text x="10" y="{y + 18}">{escape(name)}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{length:.0f}" height="{_BAR}" fill="#4878a8"/>',
            f'<text x="{_LEFT + length + 6:.0f}" y="{y + 18}">{value:.2f}{unit}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def save(
    target: Path, found: Any, title: str, values: Mapping[str, float], unit: str = " s"
) -> None:
    """Writes what was found as JSON, and beside it the picture of some values."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(found, indent=2))
    target.with_suffix(".svg").write_text(bars(title, values, unit), encoding="utf-8")
    print(f"{target}, {target.with_suffix('.svg')}")
