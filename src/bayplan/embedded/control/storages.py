"""The names under which the API server keeps the kinds that the simulation works with."""

from bayplan.kube.kinds import names_of

PODS = names_of("Pod").resource
NODES = names_of("Node").resource
LEASES = names_of("Lease").resource
CSI_NODES = names_of("CSINode").resource
CSI_DRIVERS = names_of("CSIDriver").resource
ATTACHMENTS = names_of("VolumeAttachment").resource
CLASSES = names_of("StorageClass").resource
CLAIMS = names_of("PersistentVolumeClaim").resource
VOLUMES = names_of("PersistentVolume").resource
EVENTS = names_of("Event").resource
CONFIG_MAPS = names_of("ConfigMap").resource
DEPLOYMENTS = names_of("Deployment").resource
REPLICA_SETS = names_of("ReplicaSet").resource
STATEFUL_SETS = names_of("StatefulSet").resource
DAEMON_SETS = names_of("DaemonSet").resource
JOBS = names_of("Job").resource
BUDGETS = names_of("PodDisruptionBudget").resource
