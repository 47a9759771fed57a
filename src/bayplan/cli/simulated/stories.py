"""Shows a story on a terminal or as plain lines: its text, both runs side by side, their figures,
whether the expected results hold, and commands to try.

On a terminal the runs are paced, so that they can be followed; plain lines are written without
delays, one for every change.
"""

from __future__ import annotations

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
from bayplan.lab.stories import AnyStory, Row, StoryCheck, StoryFigures, StoryFrame

WITH = "with Bayplan"
SHOWN_SECONDS = 7.0
"""How long the runs of a story are shown."""
READING_SECONDS = 3.0
"""The pause after the results, before the next story."""
_PLAIN_WIDTH = 100


@dataclass(frozen=True, slots=True)
class StoryResult:
    """The figures of a story's run with its feature gate on, and of the one with it off."""

    story: AnyStory
    on: StoryFigures
    off: StoryFigures

    @property
    def checks(self) -> tuple[StoryCheck, ...]:
        """The expected results, and whether they hold."""
        return self.story.check(self.on, self.off)

    @property
    def is_as_expected(self) -> bool:
        """Whether all expected results hold."""
        return all(check.holds for check in self.checks)


class StoryPresenter:
    """Shows stories on a terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False)
        self._shown = 0.0

    def begin(self, story: AnyStory, of: int) -> None:
        """Print the introduction of a story."""
        title = f"Story {story.number} of {of}: {story.title}"
        before = Text(f"With {gate(story)}: ", style="yellow").append(story.before, style="")
        show([Text(), Text(title, style="bold"), Text(story.text), before, Text()])

    def run(self, story: AnyStory) -> StoryResult:
        """Run both, and show them side by side."""
        with (
            Live(console=self._console, auto_refresh=False, transient=True) as screen,
            story.begin(on=True) as on,
            story.begin(on=False) as off,
        ):
            pause = SHOWN_SECONDS / max(on.length, 1)
            screen.update(Text("starting the clusters …", style="dim"), refresh=True)
            while (left := on.step()) is not None and (right := off.step()) is not None:
                screen.update(beside(story, left, right), refresh=True)
                self._wait(pause)
            return StoryResult(story, on.figures, off.figures)

    def _wait(self, pause: float) -> None:
        """Wait until the current picture was shown for `pause` seconds."""
        time.sleep(max(0.0, self._shown + pause - time.monotonic()))
        self._shown = time.monotonic()

    def quietly(self, story: AnyStory) -> StoryResult:
        """Run both without showing them."""
        with self._console.status(f"story {story.number}, for comparison"):
            return run_story(story)

    def end(self, result: StoryResult, *, last: bool) -> None:
        """Print the results of a story."""
        show(result_blocks(result))
        if not last:
            time.sleep(READING_SECONDS)


class PlainStoryPresenter(StoryPresenter):
    """Shows stories as plain lines."""

    def begin(self, story: AnyStory, of: int) -> None:
        """Print the introduction of a story."""
        before = f"With {gate(story)}: {story.before}"
        lines = [f"Story {story.number} of {of}: {story.title}", story.text, before]
        sys.stdout.write("\n" + "".join(f"{fill(one, _PLAIN_WIDTH)}\n" for one in lines) + "\n")

    def run(self, story: AnyStory) -> StoryResult:
        """Run both, and print a line for every change."""
        seen = {WITH: "", gate(story): ""}
        with story.begin(on=True) as on, story.begin(on=False) as off:
            while (left := on.step()) is not None and (right := off.step()) is not None:
                for name, frame in zip(seen, (left, right), strict=True):
                    if frame.log != seen[name]:
                        seen[name] = frame.log
                        sys.stdout.write(f"{frame.time:>6}  {name}: {printable(frame.log)}\n")
            sys.stdout.write("\n")
            return StoryResult(story, on.figures, off.figures)

    def quietly(self, story: AnyStory) -> StoryResult:
        """Run both without showing them."""
        return run_story(story)

    def end(self, result: StoryResult, *, last: bool) -> None:
        """Print the results of a story."""
        del last
        show(result_blocks(result))
        sys.stdout.flush()


def run_story(story: AnyStory) -> StoryResult:
    """Run both from beginning to end."""
    with story.begin(on=True) as on, story.begin(on=False) as off:
        for take in (on, off):
            while take.step() is not None:
                pass
        return StoryResult(story, on.figures, off.figures)


def gate(story: AnyStory) -> str:
    """Return the setting of the second run."""
    return f"{story.gate}=false"


def beside(story: AnyStory, left: StoryFrame, right: StoryFrame) -> RenderableType:
    """Return both runs at one time."""
    rows = _beside(left.rows, right.rows)
    return Group(Text(f"at {left.time}", style="bold cyan"), table(("", WITH, gate(story)), rows))


def result_blocks(result: StoryResult) -> list[RenderableType]:
    """Return the figures of both runs, the expected results, and commands to try."""
    story = result.story
    rows = [row for row in _beside(result.on.rows, result.off.rows) if row[1:] != ("0", "0")]
    blocks: list[RenderableType] = [table(("", WITH, gate(story)), rows), Text()]
    blocks += [_checked(check) for check in result.checks]
    blocks += [Text(), Text("Try it yourself:", style="bold")]
    keep = f"bayplan demo --story {story.number} --keep"
    blocks += [_command(typed(one)) for one in (keep, *story.commands)]
    return blocks


def typed(line: str, called: str = "", path: str | None = None, folder: Path | None = None) -> str:
    """Return a command line that works in a folder, by default the current one: `make demo` uses a
    virtual environment that is not on the PATH.
    """
    program, _, rest = line.partition(" ")
    called = called or sys.argv[0]
    if program != "bayplan" or Path(called).name != program or which(program, path=path):
        return line
    folder = folder or Path.cwd()
    there = folder / called
    here = there.relative_to(folder) if there.is_relative_to(folder) else there
    return f"{shlex.quote(str(here))} {rest}"


def all_gates(result: Sequence[StoryResult]) -> list[RenderableType]:
    """Return a table of all stories with their gates on and off."""
    rows = [(_title(one.story), one.story.gate, *_headlines(one)) for one in result]
    shown = table(("STORY", "GATE", "ON", "OFF"), rows)
    shown.columns[1].no_wrap = True  # so that a gate can be copied
    return [Text(), Text("All gates, on and off", style="bold"), shown]


def _title(story: AnyStory) -> str:
    return f"{story.number}. {story.title}"


def _headlines(result: StoryResult) -> tuple[str, str]:
    return result.on.headline, result.off.headline


def _beside(left: Sequence[Row], right: Sequence[Row]) -> list[tuple[str, str, str]]:
    theirs = dict(right)
    return [(name, value, theirs.get(name, "-")) for name, value in left]


def _checked(check: StoryCheck) -> RenderableType:
    mark, style = ("✓", "green") if check.holds else ("✗", "bold red")
    return hanging(mark, Text(printable(check.text), style=style))


def _command(line: str) -> Text:
    return unwrapped(Text(f"  {line}", style="cyan"))
