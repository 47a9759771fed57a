"""Leader election on a Lease, as Kubernetes' own controllers do it."""

from bayplan.client.election.elector import Elector, LeadershipLostError
from bayplan.client.election.locks import ClusterLease, LeaseLock
from bayplan.client.election.record import Timing

__all__ = ["ClusterLease", "Elector", "LeadershipLostError", "LeaseLock", "Timing"]
