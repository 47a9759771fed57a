"""A page for each story: its words, and what telling it prints."""

from __future__ import annotations

from pathlib import Path

from bayplan.lab.stories.all import STORIES, AnyStory
from tests.docs.outputs import printed

FOLDER = Path(__file__).parents[2] / "docs" / "stories"


def pages() -> dict[Path, AnyStory]:
    """Each story's page."""
    return {FOLDER / f"{Path(story.file).stem}.md": story for story in STORIES}


def page(story: AnyStory) -> str:
    """The page of a story, told anew."""
    command = f"demo --story {story.number}"
    told, _ = printed(f"{command} --plain")
    return (
        f"{words(story)}\n```console\n$ bayplan {command}\n…\n{_end(told)}…\n```\n"
        "\nWith `--keep` its cluster stays up, to be asked:\n\n"
        + "".join(f"- `{command}`\n" for command in story.commands)
    )


def words(story: AnyStory) -> str:
    """What a page says before anything is run."""
    return (
        f"# {story.number}. {story.title}\n\n{story.text}\n\n"
        f"**With `{story.gate}` off:** {story.before}\n\n"
        f"The cluster is [{story.file}]({_link(story)}), the gate in the "
        "[table of gates](../reference/feature-gates.md).\n"
    )


def _link(story: AnyStory) -> str:
    return f"../../{story.cluster.relative_to(Path(__file__).parents[2])}"


def _end(told: str) -> str:
    """From the table of figures to the last thing that was promised."""
    lines = told.splitlines()
    first = next(at for at, line in enumerate(lines) if line.split()[:2] == ["with", "Bayplan"])
    last = max(at for at, line in enumerate(lines) if line.startswith("✓"))
    return "".join(f"{line}\n" for line in lines[first : last + 1])
