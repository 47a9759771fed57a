"""`bayplan cloud`: commands for the simulated cloud of a running `bayplan up`.

Exit codes: 0 success, 1 the cloud refused or does not respond, 2 bad input such as an unknown
group, 130 Ctrl-C.
"""

from __future__ import annotations

from cyclopts import App

from bayplan.cli.options.flags import FLAGS

_LIST = """List node groups with their bounds, sizes and prices, or the instances of one group.

Works with any provider of Cluster Autoscaler's externalgrpc protocol."""
_RESIZE = """Add or remove instances until a node group has the given size.

Failed instances are removed first, then those that are still starting, then the newest."""
_FAIL = """Inject a fault into the simulated cluster, until `bayplan cloud recover`.

docs/cluster-file.md lists the kinds of faults and their targets. Faults are entries of the
ConfigMap kube-system/bayplan-faults of the cluster in the kubeconfig."""
_RECOVER = """End faults of `bayplan cloud fail`, or list the active ones."""
COMMANDS = {
    "list": ("list:list_groups", _LIST),
    "resize": ("resize:resize", _RESIZE),
    "fail": ("faults:fail", _FAIL),
    "recover": ("faults:recover", _RECOVER),
}
"""Command name → its module and function, and its help, so that nothing has to be imported."""

app = App(name="cloud", help="List and resize groups of a simulated cloud, and inject faults.")
for _name, (_target, _help) in COMMANDS.items():
    app.command(f"bayplan.cli.cloud.{_target}", name=_name, help=_help, default_parameter=FLAGS)
