"""`bayplan images`: crictl's image commands, with runtime handlers, against any CRI socket.

Exit codes: 0 is "yes" (it is there, it worked), 1 is "no" (it is not there, it failed, the runtime
does not answer), 2 is "the question was wrong", 130 is Ctrl-C.
"""

from __future__ import annotations

from cyclopts import App

COMMANDS = {
    "pull": ("pull:pull", "Pull an image for a runtime handler."),
    "list": ("listing:list_images", "List images, with the runtime handler each is for."),
    "status": ("status:status", "Say whether an image is there."),
    "info": ("info:info", "Show all about an image, about the runtime, or what an index offers."),
    "rm": ("remove:remove", "Remove images of one runtime handler."),
    "gc": ("collect:collect", "Remove images that nobody uses, if the disk is full enough."),
    "reset": ("reset:reset", "Clean up after RuntimeClassInImageCriApi was switched."),
}
"""Command name → the module and function it lives in, and its line in the help."""

app = App(name="images", help="Pull, list, inspect and remove images by runtime handler.")
for _name, (_target, _help) in COMMANDS.items():
    app.command(f"bayplan.cli.images.{_target}", name=_name, help=_help)
