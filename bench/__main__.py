"""`python -m bench [PREFIX…]`: run the cases whose names start so, or all of them."""

from __future__ import annotations

import sys
from importlib import import_module

from bench.measure import line

SUITES = ("fit", "apiserver", "images", "simulation")


def main(prefixes: list[str]) -> None:
    """Print one JSON line a case."""
    for suite in SUITES:
        if prefixes and not any(prefix.split("/")[0] == suite for prefix in prefixes):
            continue
        for result in import_module(f"bench.{suite}").cases():
            if not prefixes or any(result.case.startswith(prefix) for prefix in prefixes):
                print(line(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
