"""A page for each story: its text, and what `bayplan demo` prints."""

from __future__ import annotations

from pathlib import Path

from bayplan.lab.stories.all import STORIES, AnyStory
from tests.docs.outputs import printed

FOLDER = Path(__file__).parents[2] / "docs" / "stories"


def pages() -> dict[Path, AnyStory]:
    """Return the page of each story."""
    return {FOLDER / f"{Path(story.file).stem}.md": story for story in STORIES}


def page(story: AnyStory) -> str:
    """Return the page of a story, after a run of it."""
    command = f"demo --story {story.number}"
    told, _ = printed(f"{command} --plain")
    return (
        f"{words(story)}\n```console\n$ bayplan {command}\n…\n{_end(told)}…\n```\n"
        "\nWith `--keep` the cluster stays up. Try:\n\n"
        + "".join(f"- `{command}`\n" for command in story.commands)
    )


def words(story: AnyStory) -> str:
    """Return the text of a page above its output."""
    return (
        f"# {story.number}. {story.title}\n\n{story.text}\n\n"
        f"**With `{story.gate}` off:** {story.before}\n\n"
        f"The cluster is [{story.file}]({_link(story)}), the gate is in the "
        "[table of gates](../reference/feature-gates.md).\n"
    )


def _link(story: AnyStory) -> str:
    return f"../../{story.cluster.relative_to(Path(__file__).parents[2])}"


def _end(told: str) -> str:
    """Return the output from the table of figures to the last check."""
    lines = told.splitlines()
    first = next(at for at, line in enumerate(lines) if line.split()[:2] == ["with", "Bayplan"])
    last = max(at for at, line in enumerate(lines) if line.startswith("✓"))
    return "".join(f"{line}\n" for line in lines[first : last + 1])
