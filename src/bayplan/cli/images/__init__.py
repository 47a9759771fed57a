"""`bayplan images`: crictl's image commands, with runtime handlers, against any CRI socket.

Exit codes: 0 is "yes" (it is there, it worked), 1 is "no" (it is not there, it failed, the runtime
does not answer), 2 is "the question was wrong", 130 is Ctrl-C.
"""

from __future__ import annotations

from cyclopts import App

COMMANDS = {
    "pull": "bayplan.cli.images.pull:pull",
    "list": "bayplan.cli.images.listing:list_images",
    "status": "bayplan.cli.images.status:status",
    "info": "bayplan.cli.images.info:info",
    "rm": "bayplan.cli.images.remove:remove",
    "gc": "bayplan.cli.images.collect:collect",
    "reset": "bayplan.cli.images.reset:reset",
}
"""Command name → where its function lives."""

app = App(name="images", help="Pull, list, inspect and remove images by runtime handler.")
for _name, _target in COMMANDS.items():
    app.command(_target, name=_name)
