"""`bayplan cloud`: the simulated cloud of a running `bayplan up`, for people.

Exit codes: 0 is "yes", 1 is "no" (the cloud refused, or does not answer), 2 is "the question was
wrong" (there is no such group), 130 is Ctrl-C.
"""

from __future__ import annotations

from cyclopts import App

from bayplan.cli.options.flags import FLAGS

_LIST = """List node groups with their bounds, sizes and prices, or the instances of one group.

Asks any provider that speaks Cluster Autoscaler's externalgrpc protocol."""
_RESIZE = """Buy or give back instances until a group has a size.

Instances that failed are given back first, then those that do not run yet, then the newest."""
_FAIL = """Let something go wrong in the simulated cluster, until `bayplan cloud recover`.

The kinds, and by what each can be aimed, are in docs/cluster-file.md. Faults are entries of the
ConfigMap kube-system/bayplan-faults of the cluster that the kubeconfig names."""
_RECOVER = """End faults that `bayplan cloud fail` began, or list those there are."""
COMMANDS = {
    "list": ("list:list_groups", _LIST),
    "resize": ("resize:resize", _RESIZE),
    "fail": ("faults:fail", _FAIL),
    "recover": ("faults:recover", _RECOVER),
}
"""Command name → the module and function it lives in, and its help, which imports nothing."""

app = App(name="cloud", help="List, resize and disturb the simulated cloud of `bayplan up`.")
for _name, (_target, _help) in COMMANDS.items():
    app.command(f"bayplan.cli.cloud.{_target}", name=_name, help=_help, default_parameter=FLAGS)
