"""`bayplan images`: crictl's image commands, with runtime handlers, against any CRI socket.

Exit codes: 0 is "yes" (it is there, it worked), 1 is "no" (it is not there, it failed, the runtime
does not answer), 2 is "the question was wrong", 130 is Ctrl-C.
"""

from __future__ import annotations

from cyclopts import App

from bayplan.cli.options.flags import FLAGS

_GC = """Remove images that nobody uses, if the disk is full enough.

A command knows nothing of when images were last used, so it asks for no minimum age; an agent
(`bayplan node-agent --images`) does. Exits with 1 if a removal failed or too little could go."""
_INFO = """Show all about an image, about the runtime, or what an index offers.

With --platform, shows what the image's index in its registry would give each runtime handler,
without pulling it; exits with 1 if one of them would get nothing."""
_RESET = """Clean up after RuntimeClassInImageCriApi was switched.

Restarts the node's pods that have a runtime class, removes every image that is neither pinned nor
in use, whatever its handler, and forgets the records of their pulls. Exits with 1 if something is
left; the agent goes on warning then."""
COMMANDS = {
    "pull": ("pull:pull", "Pull an image for a runtime handler."),
    "list": ("list:list_images", "List images, with the runtime handler each is for."),
    "status": ("status:status", "Say whether an image is there; exits with 1 if it is not."),
    "info": ("info:info", _INFO),
    "rm": ("remove:remove", "Remove images, each with all its tags, of one runtime handler."),
    "gc": ("collect:collect", _GC),
    "reset": ("reset:reset", _RESET),
}
"""Command name → the module and function it lives in, and its help, which imports nothing."""

app = App(name="images", help="Pull, list, inspect, remove and collect images by runtime handler.")
for _name, (_target, _help) in COMMANDS.items():
    app.command(f"bayplan.cli.images.{_target}", name=_name, help=_help, default_parameter=FLAGS)
