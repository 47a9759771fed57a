"""The stories of the demo, each on a cluster in this process.

Their cluster files are in `clusters`, inside the package, so that an installed `bayplan` has them.
"""

from bayplan.lab.stories.all import BY_GATE, STORIES, AnyStory
from bayplan.lab.stories.cluster import STORY_DAEMONS
from bayplan.lab.stories.story import Row, Story, StoryCheck, StoryFigures, StoryFrame, StoryRun

__all__ = [
    "BY_GATE",
    "STORIES",
    "STORY_DAEMONS",
    "AnyStory",
    "Row",
    "Story",
    "StoryCheck",
    "StoryFigures",
    "StoryFrame",
    "StoryRun",
]
