"""The example clusters that the page is tested with, named from the repository's root."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path("examples")
SHOP = EXAMPLES / "cluster"
