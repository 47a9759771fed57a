"""The page over HTTP: read-only, for this machine unless there is a token."""

from bayplan.ui.serving.app import Serving, serve
from bayplan.ui.serving.guard import Guard, new_token

__all__ = ["Guard", "Serving", "new_token", "serve"]
