"""The command lines of a page: what stands behind each `$` of its console blocks, and below it.

A page that needs more than it shows (a cluster that runs, a file) says so in a comment that
readers do not see, with the same commands:

    <!-- first:
    $ bayplan up -f examples/day.yaml --kubeconfig kubeconfig &
    -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^(?P<indent> *)(?:```console\n(?P<shown>.*?)^ *```|<!-- first:\n(?P<hidden>.*?)^ *-->)$",
    re.DOTALL | re.MULTILINE,
)
_UNTIL_INTERRUPTED = re.compile(
    r"(\w+=\S+ )*(\S*/)?bayplan (apiserver|autoscaler|cri|node-agent|scheduler|ui|up|webhook)\b"
)
_ENDS = re.compile(r" --(for|help|compare|version)\b")


@dataclass(frozen=True)
class Step:
    """A command line, and what the page says that it prints."""

    command: str
    shown: tuple[str, ...] = ()

    @property
    def stays(self) -> bool:
        """Whether the command goes on until it is interrupted."""
        line = self.command
        return line.endswith("&") or bool(_UNTIL_INTERRUPTED.match(line) and not _ENDS.search(line))


def every_page() -> list[Path]:
    """All pages of the documentation."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md"]
    return found + sorted((ROOT / "docs").rglob("*.md"))


def pages() -> list[Path]:
    """Every page that has a command line to run."""
    return [page for page in every_page() if steps(page.read_text())]


def steps(text: str) -> list[Step]:
    """The steps of a page, in its order."""
    found: list[Step] = []
    for block in _BLOCK.finditer(text):
        indent = len(block["indent"] or "")
        lines = (block["shown"] or block["hidden"] or "").splitlines()
        found += _of_block([line[indent:] for line in lines])
    return found


def not_run_lines(text: str) -> Iterator[str]:
    """The lines of blocks that nobody runs: without a language, or plain text."""
    language: str | None = None
    for line in text.splitlines():
        if fence := re.match(r" *```(\w*)", line):
            language = fence[1] if language is None else None
        elif language in {"", "text", "sh", "bash", "shell"}:
            yield line


def _of_block(lines: list[str]) -> list[Step]:
    found: list[Step] = []
    for line in lines:
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ ").strip()))
        elif not found:
            raise ValueError(f"a console block begins with its output: {line}")
        elif found[-1].command.endswith("\\"):
            found[-1] = Step(f"{found[-1].command}\n{line.removeprefix('> ')}")
        else:
            found[-1] = Step(found[-1].command, (*found[-1].shown, line))
    return found


_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"/tmp/[^\s/]+"), "/tmp/FOLDER"),
    (re.compile(r"\b(\d+(\.\d+)?(ms|[dhms]))+\b"), "LONG"),
    (re.compile(r"[ \t]+"), " "),
)


def is_shown(shown: tuple[str, ...], printed: str, *, whole: bool) -> bool:
    """Whether a command has printed what the page shows: `…` stands for what was left out.

    Times, ports and the names of temporary folders may differ. Unless it must be the whole, each
    line has to be there, in any order among others, and may begin with more.
    """
    lines = [_pattern(line) for line in shown]
    if not whole:
        return all(re.search(line, _steady(printed)) for line in lines)
    pattern = "".join(r"(?:.*\n)*" if line == ".*" else rf"{line}\n" for line in lines)
    return bool(re.fullmatch(pattern, _steady(printed)))


def _pattern(line: str) -> str:
    return re.escape(_steady(line).strip()).replace("…", ".*")


def _steady(text: str) -> str:
    for varying, name in _VARYING:
        text = varying.sub(name, text)
    return "".join(f"{line.strip()}\n" for line in text.splitlines())
