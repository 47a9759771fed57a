"""Who may run next: queues and their quota, gangs, reservations and gates. It only reckons."""

from bayplan.queues.accounts import Usage
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Gate, Member, Status, gate_of, group_key_of, wants_gate
from bayplan.queues.policies import QueuePolicy, QueuePolicyName
from bayplan.queues.problems import NoRoom, Problem, Why
from bayplan.queues.quota import Quota
from bayplan.queues.resources import NOTHING, UNLIMITED, Resources, pod_amounts, read_amounts
from bayplan.queues.rules import OURS, VOLCANO, Rules
from bayplan.queues.tree import QueueNode, QueueTree

__all__ = [
    "NOTHING",
    "OURS",
    "UNLIMITED",
    "VOLCANO",
    "Gate",
    "Group",
    "Ledger",
    "Member",
    "NoRoom",
    "Problem",
    "QueueNode",
    "QueuePolicy",
    "QueuePolicyName",
    "QueueTree",
    "Quota",
    "Resources",
    "Rules",
    "Status",
    "Usage",
    "Why",
    "gate_of",
    "group_key_of",
    "pod_amounts",
    "read_amounts",
    "wants_gate",
]
