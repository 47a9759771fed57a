"""Starting a gang: the pods that quota and nodes both take, or those that quota alone takes.

Every scheduling turn is decided by these functions: in the scheduler, one group at a time as things
change, and in a cycle over a still picture (`actions.allocate`).

- `Trial`: pods are tried one after the other, each beside those that were placed before it. A pod
  that no node takes is tried again once others have been placed since: spreading and affinity may
  allow then what they refused.
- `select_by_quota`: which pods quota has room for together, so that the gang can start. These lose
  their gates although no nodes take them all, and hold their quota until nodes are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

from bayplan.queues.groups import Group
from bayplan.queues.members import Member
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.resources import NOTHING, Resources
from bayplan.queues.session import Session, Statement
from bayplan.queues.status import said_of

RefusalOf = Callable[[Member], NoRoom | None]
"""Why a pod is not to be tried now; None if it is."""
RoomFor = Callable[[Resources, Resources], NoRoom | None]
"""Why there is no room for a request, of which so much is held already; None if there is."""


class Trial:
    """Pods of a group that needs them to start, tried on nodes together.

    What was placed stands in `statement`, to be committed or discarded.
    """

    def __init__(self, session: Session, group: Group, refusal_of: RefusalOf) -> None:
        self.statement = Statement(session)
        self.taken: list[Member] = []
        self.unfit: list[Member] = []
        """Those that no node takes beside the others."""
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
        return self._group.is_pipelined

    def one(self, member: Member) -> bool:
        """Try one pod more of a group that has started, or needs no others to start."""
        self.unfit = [] if self._refusal_of(member) or self._take(member, set()) else [member]
        return bool(self.taken)

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
        like = self._placement.likeness(member)
        choice = self._placement.choose(member) if like not in hopeless else None
        if choice is None:
            hopeless.add(like)
            return False
        self.statement.take(member, choice)
        self.taken.append(member)
        return True


def select_by_quota(
    group: Group, pods: Sequence[Member], room_for: RoomFor, refusal_of: RefusalOf = lambda _: None
) -> tuple[Member, ...] | NoRoom:
    """The first pods that quota has room for together and with which a group can start; why not,
    if there are too few of them.
    """
    chosen: list[Member] = []
    request = own = NOTHING
    refusal: NoRoom | None = None
    for member in pods:
        if is_enough(group, chosen):
            break
        asked = request + member.request
        held = own + member.request if member.reserved else own
        refused = room_for(asked, held) or refusal_of(member)
        if refused is None:
            chosen.append(member)
            request, own = asked, held
        refusal = refusal or refused
    if is_enough(group, chosen):
        return tuple(chosen)
    return refusal or NoRoom(Why.FOREIGN_GATE, group.queue, said_of(group, Why.FOREIGN_GATE))


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
