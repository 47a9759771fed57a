"""Fluent builders of Kubernetes objects, so that a test shows what matters and nothing else.

    pod = make_pod("p").cpu("1").claim("data").labels(app="web").obj()
    node = make_node("n").capacity(cpu="4", memory="8Gi", pods=110).zone("z1").obj()

Each call changes the builder and returns it; `obj()` hands out the object. Nothing is checked: a
test may build what the API server would refuse.
"""

from tests.builders.base import DEFAULT, HOSTNAME, REGION, ZONE, Builder
from tests.builders.devices import (
    ResourceClaimBuilder,
    make_device_class,
    make_resource_claim,
)
from tests.builders.nodes import NodeBuilder, make_node
from tests.builders.pods import PodBuilder, make_pod
from tests.builders.queues import (
    PodGroupBuilder,
    QueueBuilder,
    make_pod_group,
    make_queue,
)
from tests.builders.selectors import (
    LabelOperator,
    NodeOperator,
    expression,
    name_term,
    node_term,
    selector,
)
from tests.builders.storage import (
    AttachmentBuilder,
    CapacityBuilder,
    CSIDriverBuilder,
    CSINodeBuilder,
    PVBuilder,
    PVCBuilder,
    StorageClassBuilder,
    make_attachment,
    make_capacity,
    make_csidriver,
    make_csinode,
    make_pv,
    make_pvc,
    make_storage_class,
)
from tests.builders.workloads import (
    PDBBuilder,
    RuntimeClassBuilder,
    make_daemon_set,
    make_namespace,
    make_pdb,
    make_priority_class,
    make_replica_set,
    make_replication_controller,
    make_runtime_class,
    make_service,
    make_stateful_set,
)

__all__ = [
    "DEFAULT",
    "HOSTNAME",
    "REGION",
    "ZONE",
    "AttachmentBuilder",
    "Builder",
    "CSIDriverBuilder",
    "CSINodeBuilder",
    "CapacityBuilder",
    "LabelOperator",
    "NodeBuilder",
    "NodeOperator",
    "PDBBuilder",
    "PVBuilder",
    "PVCBuilder",
    "PodBuilder",
    "PodGroupBuilder",
    "QueueBuilder",
    "ResourceClaimBuilder",
    "RuntimeClassBuilder",
    "StorageClassBuilder",
    "expression",
    "make_attachment",
    "make_capacity",
    "make_csidriver",
    "make_csinode",
    "make_daemon_set",
    "make_device_class",
    "make_namespace",
    "make_node",
    "make_pdb",
    "make_pod",
    "make_pod_group",
    "make_priority_class",
    "make_pv",
    "make_pvc",
    "make_queue",
    "make_replica_set",
    "make_replication_controller",
    "make_resource_claim",
    "make_runtime_class",
    "make_service",
    "make_stateful_set",
    "make_storage_class",
    "name_term",
    "node_term",
    "selector",
]
