"""The stories of the design, told on a cluster in this process; their cluster files are in
`clusters`, inside the package, so that an installed `bayplan` can tell them, too.
"""

from bayplan.lab.stories.all import BY_GATE, STORIES, AnyStory
from bayplan.lab.stories.cluster import AT_WORK
from bayplan.lab.stories.story import Check, Figures, Frame, Row, Story, Take

__all__ = [
    "AT_WORK",
    "BY_GATE",
    "STORIES",
    "AnyStory",
    "Check",
    "Figures",
    "Frame",
    "Row",
    "Story",
    "Take",
]
