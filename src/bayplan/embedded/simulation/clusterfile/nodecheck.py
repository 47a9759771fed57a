"""Whether the API server would take the nodes of a group: better said of the file than never."""

from __future__ import annotations

from bayplan.base.configfiles import FieldProblem
from bayplan.embedded.apiserver.rest import metadata
from bayplan.embedded.apiserver.strategies.table import strategy_of
from bayplan.embedded.control.storages import NODES
from bayplan.embedded.nodes.machines import Instance, NodeGroup
from bayplan.embedded.nodes.objects import node_object

_MOST = 99_999
"""Numbers of nodes go on beyond a group's maximum, since none is used twice."""
_NEVER = "1970-01-01T00:00:00Z"


def check_nodes(group: NodeGroup, path: str) -> None:
    """A node of the group in each of its zones has to be one that can be registered."""
    strategy = strategy_of(NODES)
    for zone in group.zones:
        node = node_object(Instance(f"{group.name}-{_MOST}", group, zone, 0.0, None), _NEVER)
        for cause in (*metadata.problems(node, strategy), *strategy.validate(node)):
            said = f"its nodes would be refused: {cause.field}: {cause.message}"
            raise FieldProblem(path, said)
