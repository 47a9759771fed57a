"""The example clusters that the page is tested with."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"
SHOP = EXAMPLES / "cluster"
