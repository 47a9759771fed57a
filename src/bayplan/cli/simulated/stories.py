"""A story on a terminal, or as plain lines: what happens in words, both takes beside each other
while they run, what they came to, whether that is what was promised, and what to try.

On a terminal the takes are paced, so that a person can follow them; plain lines are written as fast
as they come, one for every change.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from textwrap import fill

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from bayplan.cli.text.output import hanging, printable, show, table, unwrapped
from bayplan.lab.stories import AnyStory, Check, Figures, Frame, Row

WITH = "with Bayplan"
SHOWN_SECONDS = 7.0
"""How long the takes of a story are to be seen."""
READING_SECONDS = 3.0
"""How long what they came to is left alone before the next story."""
_PLAIN_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Told:
    """A story that was told, both ways."""

    story: AnyStory
    on: Figures
    off: Figures

    @property
    def checks(self) -> tuple[Check, ...]:
        """What was promised, and whether it is so."""
        return self.story.judge(self.on, self.off)

    @property
    def is_as_promised(self) -> bool:
        """Whether it came out as it should."""
        return all(check.holds for check in self.checks)


class Teller:
    """Tells stories to a terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False)
        self._shown = 0.0

    def begin(self, story: AnyStory, of: int) -> None:
        """What it is about."""
        title = f"Story {story.number} of {of}: {story.title}"
        before = Text(f"With {gate(story)}: ", style="yellow").append(story.before, style="")
        show([Text(), Text(title, style="bold"), Text(story.text), before, Text()])

    def run(self, story: AnyStory) -> Told:
        """Both takes, beside each other."""
        with (
            Live(console=self._console, auto_refresh=False, transient=True) as screen,
            story.begin(on=True) as on,
            story.begin(on=False) as off,
        ):
            pause = SHOWN_SECONDS / max(on.length, 1)
            screen.update(Text("the clusters start …", style="dim"), refresh=True)
            while (left := on.step()) is not None and (right := off.step()) is not None:
                screen.update(beside(story, left, right), refresh=True)
                self._wait(pause)
            return Told(story, on.figures, off.figures)

    def _wait(self, pause: float) -> None:
        """Leave a picture for so long, the time that it took to make counted in."""
        time.sleep(max(0.0, self._shown + pause - time.monotonic()))
        self._shown = time.monotonic()

    def quietly(self, story: AnyStory) -> Told:
        """Both takes, without showing them."""
        with self._console.status(f"story {story.number}, for comparison"):
            return taken(story)

    def end(self, told: Told, *, last: bool) -> None:
        """What it came to."""
        show(came_to(told))
        if not last:
            time.sleep(READING_SECONDS)


class PlainTeller(Teller):
    """Tells stories to a log."""

    def begin(self, story: AnyStory, of: int) -> None:
        """What it is about."""
        before = f"With {gate(story)}: {story.before}"
        lines = [f"Story {story.number} of {of}: {story.title}", story.text, before]
        sys.stdout.write("\n" + "".join(f"{fill(one, _PLAIN_WIDTH)}\n" for one in lines) + "\n")

    def run(self, story: AnyStory) -> Told:
        """Both takes; a line for every change."""
        seen = {WITH: "", gate(story): ""}
        with story.begin(on=True) as on, story.begin(on=False) as off:
            while (left := on.step()) is not None and (right := off.step()) is not None:
                for name, frame in zip(seen, (left, right), strict=True):
                    if frame.log != seen[name]:
                        seen[name] = frame.log
                        sys.stdout.write(f"{frame.time:>6}  {name}: {printable(frame.log)}\n")
            sys.stdout.write("\n")
            return Told(story, on.figures, off.figures)

    def quietly(self, story: AnyStory) -> Told:
        """Both takes, without showing them."""
        return taken(story)

    def end(self, told: Told, *, last: bool) -> None:
        """What it came to."""
        del last
        show(came_to(told))
        sys.stdout.flush()


def taken(story: AnyStory) -> Told:
    """Both takes, from beginning to end."""
    with story.begin(on=True) as on, story.begin(on=False) as off:
        for take in (on, off):
            while take.step() is not None:
                pass
        return Told(story, on.figures, off.figures)


def gate(story: AnyStory) -> str:
    """The gate that is off beside it."""
    return f"{story.gate}=false"


def beside(story: AnyStory, left: Frame, right: Frame) -> RenderableType:
    """Both takes at one moment."""
    rows = _beside(left.rows, right.rows)
    return Group(Text(f"at {left.time}", style="bold cyan"), table(("", WITH, gate(story)), rows))


def came_to(told: Told) -> list[RenderableType]:
    """The figures of both takes, what was promised, and what to try."""
    story = told.story
    rows = [row for row in _beside(told.on.rows, told.off.rows) if row[1:] != ("0", "0")]
    blocks: list[RenderableType] = [table(("", WITH, gate(story)), rows), Text()]
    blocks += [_checked(check) for check in told.checks]
    blocks += [Text(), Text("See it for yourself:", style="bold")]
    keep = f"bayplan demo --story {story.number} --keep"
    blocks += [_command(typed(one)) for one in (keep, *story.commands)]
    return blocks


def typed(line: str, called: str = "", path: str | None = None) -> str:
    """A command line as it can be typed where we were called so: `make demo` calls us in a virtual
    environment that is not on the PATH.
    """
    program, _, rest = line.partition(" ")
    called = called or sys.argv[0]
    if program != "bayplan" or Path(called).name != program or which(program, path=path):
        return line
    here = min(os.path.relpath(called), str(Path(called).absolute()), key=len)
    return f"{shlex.quote(here)} {rest}"


def all_gates(told: Sequence[Told]) -> list[RenderableType]:
    """Every story, with its gate on and off."""
    rows = [(_title(one.story), one.story.gate, *_headlines(one)) for one in told]
    shown = table(("STORY", "GATE", "ON", "OFF"), rows)
    shown.columns[1].no_wrap = True  # a gate is one word, which somebody may want to copy
    return [Text(), Text("All gates, on and off", style="bold"), shown]


def _title(story: AnyStory) -> str:
    return f"{story.number}. {story.title}"


def _headlines(told: Told) -> tuple[str, str]:
    return told.on.headline, told.off.headline


def _beside(left: Sequence[Row], right: Sequence[Row]) -> list[tuple[str, str, str]]:
    theirs = dict(right)
    return [(name, value, theirs.get(name, "-")) for name, value in left]


def _checked(check: Check) -> RenderableType:
    mark, style = ("✓", "green") if check.holds else ("✗", "bold red")
    return hanging(mark, Text(printable(check.text), style=style))


def _command(line: str) -> Text:
    return unwrapped(Text(f"  {line}", style="cyan"))
