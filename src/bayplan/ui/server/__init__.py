"""The HTTP server of the page: read-only, and local unless there is a token."""

from bayplan.ui.server.app import PageServerOptions, serve
from bayplan.ui.server.guard import Guard, new_token

__all__ = ["Guard", "PageServerOptions", "new_token", "serve"]
