"""Queues and their quota, gangs, reservations, gates and scheduling turns. Pure computation."""

from bayplan.queues.accounts import Usage
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Gate, Member, TaskStatus, gate_of, group_key_of, wants_gate
from bayplan.queues.policies import QueuePolicy, QueuePolicyName
from bayplan.queues.problems import Problem, QueueReason, WaitCode
from bayplan.queues.queue_quota import Quota
from bayplan.queues.resources import NOTHING, UNLIMITED, Resources, pod_amounts, read_amounts
from bayplan.queues.tree import QueueNode, QueueTree

__all__ = [
    "NOTHING",
    "UNLIMITED",
    "Gate",
    "Group",
    "Ledger",
    "Member",
    "Problem",
    "QueueNode",
    "QueuePolicy",
    "QueuePolicyName",
    "QueueReason",
    "QueueTree",
    "Quota",
    "Resources",
    "TaskStatus",
    "Usage",
    "WaitCode",
    "gate_of",
    "group_key_of",
    "pod_amounts",
    "read_amounts",
    "wants_gate",
]
