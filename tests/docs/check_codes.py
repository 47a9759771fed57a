"""What `bayplan check` may find, as docs/check.md has it below what is written by hand."""

from __future__ import annotations

from bayplan.checks import KINDS, CheckKind
from tests.docs.outputs import ROOT

PAGE = ROOT / "docs" / "check.md"
BEGIN = "<!-- what follows is written by `make docs` -->"


def page_with_codes(page: str) -> str:
    """The page with its list of codes renewed."""
    by_hand, marker, _ = page.partition(BEGIN)
    if not marker:
        raise ValueError(f"{PAGE} has no line {BEGIN}")
    return f"{by_hand}{BEGIN}\n\n" + "\n".join(map(_section, KINDS.values()))


def _section(kind: CheckKind) -> str:
    needs = ", ".join(one.__name__ for one in kind.needs)
    needed = f" Needs: {needs}." if needs else ""
    return (
        f"### {kind.code}\n\n*{kind.severity.value}*: {kind.what}.{needed}\n\n"
        f"{kind.why}\n\nNext: {kind.advice}\n"
    )
