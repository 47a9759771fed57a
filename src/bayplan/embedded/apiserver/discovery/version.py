"""Which Kubernetes this server's API is that of."""

from __future__ import annotations

import platform

from bayplan.embedded.apiserver.jsontypes import JsonObject

MAJOR, MINOR = "1", "36"
_OURS = "+bayplan"


def version_info() -> JsonObject:
    """The answer of `/version`."""
    release = f"v{MAJOR}.{MINOR}.0"
    return {
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": f"{release}{_OURS}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def is_embedded(git_version: str) -> bool:
    """Whether a server that says this of itself is one of these."""
    return git_version.endswith(_OURS)
