"""Starting a gang: the pods that fit quota and nodes, or those that fit quota alone.

Every scheduling turn is decided by these functions: in the scheduler, one group at a time as things
change, and in a cycle over a still picture (`actions.turns`).

- `PlacementTrial`: pods are tried one after the other, each beside those that were placed before
  it. A pod that fits nowhere is tried again once others have been placed since: spreading and
  affinity may allow then what they refused.
- `select_by_quota`: the pods that quota admits together, so that the gang can start. These lose
  their gates although they do not all fit on nodes, and reserve quota until there are nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Member
from bayplan.queues.problems import QueueReason, WaitCode
from bayplan.queues.requests import GroupRequest
from bayplan.queues.resources import NOTHING, Resources
from bayplan.queues.session import Session, Statement
from bayplan.queues.status import wait_text

RefusalOf = Callable[[Member], QueueReason | None]
"""Returns why a pod is not to be tried now; None if it is."""
QuotaCheck = Callable[[Resources, Resources], QueueReason | None]
"""Returns why quota refuses a request, of which so much is reserved; None if it does not."""


class PlacementTrial:
    """Pods of a group that needs them to start, tried on nodes together.

    What was placed stands in `statement`, to be committed or discarded.
    """

    def __init__(self, session: Session, group: Group, refusal_of: RefusalOf) -> None:
        self.statement = Statement(session)
        self.taken: list[Member] = []
        self.is_complete = False
        """Whether all that are needed have a node, now or once others have left."""
        self.unfit: list[Member] = []
        """The pods that fit on no node beside the others."""
        self._placement = session.placement
        self._group = group
        self._refusal_of = refusal_of

    def run(self, pods: Sequence[Member]) -> bool:
        """Try pods until the group can start; whether it can, now or once others have left."""
        left = list(pods)
        while left and not self._group.is_ready:
            before = len(self.taken)
            left = self._tried(left)
            if len(self.taken) == before:
                break
        self.unfit = left
        self.is_complete = self._group.is_pipelined
        return self.is_complete

    def one(self, member: Member) -> bool:
        """Try one pod more of a group that has started, or needs no others to start."""
        self.unfit = [] if self._refusal_of(member) or self._take(member, set()) else [member]
        self.is_complete = bool(self.taken)
        return self.is_complete

    def _tried(self, pods: Sequence[Member]) -> list[Member]:
        """Try each of these pods once; returns those that no node took."""
        group, unfit = self._group, list[Member]()
        hopeless: set[Hashable] = set()
        reachable = group.placed_count + len(pods)
        for member in pods:
            if group.is_ready or reachable < group.min_member:
                break
            if self._refusal_of(member) is not None:
                reachable -= 1
            elif not self._take(member, hopeless):
                unfit.append(member)
        return unfit

    def _take(self, member: Member, hopeless: set[Hashable]) -> bool:
        signature = self._placement.equivalence_class(member)
        choice = self._placement.choose(member) if signature not in hopeless else None
        if choice is None:
            hopeless.add(signature)
            return False
        self.statement.take(member, choice)
        self.taken.append(member)
        return True


def try_nodes(
    session: Session, group: Group, pods: Sequence[Member], *, is_gang: bool
) -> PlacementTrial:
    """Try pods of a group that quota takes on nodes: as many as it needs to start, or the first."""
    trial = PlacementTrial(session, group, session.ledger.may_allocate)
    try:
        if is_gang:
            trial.run(pods)
        else:
            trial.one(pods[0])
    except BaseException:
        trial.statement.discard()
        raise
    return trial


def pods_without_nodes(
    ledger: Ledger,
    group: Group,
    requested: GroupRequest,
    chosen: Sequence[Member],
    fitting: Sequence[Member],
) -> Sequence[Member]:
    """Return the pods that hold quota until nodes take them all: those that fit first, and at worst
    those chosen by quota.
    """
    if not requested.spare:
        return chosen
    pods = with_first(fitting, with_first(chosen, requested.pods))
    found = select_by_quota(group, pods, ledger.quota_check_of(group))
    return chosen if isinstance(found, QueueReason) else found


def select_by_quota(
    group: Group,
    pods: Sequence[Member],
    quota_check_of: QuotaCheck,
    refusal_of: RefusalOf = lambda _: None,
) -> tuple[Member, ...] | QueueReason:
    """Return the first pods that quota admits together and with which a group can start; why not,
    if there are too few of them.
    """
    chosen: list[Member] = []
    request = own = NOTHING
    refusal: QueueReason | None = None
    for member in pods:
        if is_enough(group, chosen):
            break
        requested = request + member.request
        held = own + member.request if member.reserved else own
        refused = quota_check_of(requested, held) or refusal_of(member)
        if refused is None:
            chosen.append(member)
            request, own = requested, held
        refusal = refusal or refused
    if is_enough(group, chosen):
        return tuple(chosen)
    return refusal or QueueReason(
        WaitCode.FOREIGN_GATE, group.queue, wait_text(group, WaitCode.FOREIGN_GATE)
    )


def is_enough(group: Group, more: Sequence[Member]) -> bool:
    """Whether a group could start with these of its pods on nodes, too."""
    if group.placed_count + len(more) < group.min_member:
        return False
    if not group.counts_roles or not group.min_of_role:
        return True
    reached = group.role_counts(ready_only=False) + Counter(one.role for one in more)
    return all(reached[role] >= least for role, least in group.min_of_role.items())


def with_first(first: Sequence[Member], pods: Iterable[Member]) -> list[Member]:
    """Some pods, then the others in their order."""
    return list(dict.fromkeys((*first, *pods)))
