"""`bayplan images`: crictl's image commands, with runtime handlers, for any CRI socket.

Exit codes: 0 success (the image exists), 1 failure (it does not exist, or the runtime does not
respond), 2 bad input, 130 Ctrl-C.
"""

from __future__ import annotations

from cyclopts import App

from bayplan.cli.options.flags import FLAGS

_GC = """Remove unused images if the disk usage is over the threshold.

There is no minimum age, since the command does not know when images were last used; the agent
(`bayplan node-agent --images`) does. Exits with 1 if a removal failed or too little was freed."""
_INFO = """Show details of an image or of the runtime, or what an image index offers.

With --platform, shows which manifest of the image's index each runtime handler would get, without
pulling it; exits with 1 if there is none for one of them."""
_RESET = """Clean up after the feature gate RuntimeClassInImageCriApi was changed.

Restarts the node's pods with a runtime class, removes every image that is neither pinned nor in
use, of all handlers, and deletes the records of their pulls. Exits with 1 if something is left; the
agent keeps warning then."""
COMMANDS = {
    "pull": ("pull:pull", "Pull an image for a runtime handler."),
    "list": ("list:list_images", "List images with their runtime handlers."),
    "status": ("status:status", "Show whether an image exists; exits with 1 if it does not."),
    "info": ("info:info", _INFO),
    "rm": ("remove:remove", "Remove images, each with all its tags, of one runtime handler."),
    "gc": ("collect:collect", _GC),
    "reset": ("reset:reset", _RESET),
}
"""Command name → its module and function, and its help, so that nothing has to be imported."""

app = App(name="images", help="Pull, list, inspect, remove and collect images by runtime handler.")
for _name, (_target, _help) in COMMANDS.items():
    app.command(f"bayplan.cli.images.{_target}", name=_name, help=_help, default_parameter=FLAGS)
