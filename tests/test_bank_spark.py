"""Brandon's bank in small: random transfers from several processes, and no money made or lost."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import bank


@pytest.mark.spark
@pytest.mark.slow
def test_bank(tmp_path: Path) -> None:
    transfers = int(os.environ.get("VIEWKEEPER_TRANSFERS", "40"))
    found = bank.run(tmp_path / "lake", 4, transfers)
    assert found["transfers"] == transfers and found["entries"] >= transfers
