"""Requests to the `grpc` expander, and the answers that one loop has; no I/O.

As in Cluster Autoscaler, a call that fails, and an answer that names none of the options, keep all
options for the next expander; an answer without any option chooses none, so that nothing is scaled
up in this loop.

After a failed call, and after `MAX_CALLS`, no further answer is needed in a loop: all options are
kept. So a slow program delays a loop by a bounded time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bayplan.autoscaler.estimate.options import NodeGroupOption
from bayplan.autoscaler.plan import ExpanderNote
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

MAX_CALLS = 8
"""How often the program is called in one loop."""
FAILED = "GrpcExpanderFailed"
CHOSE_NONE = ExpanderNote(
    "GrpcExpanderChoseNone", "the grpc expander chose none of the options: nothing is scaled up"
)
TOO_MANY = ExpanderNote(
    FAILED, f"the grpc expander was called {MAX_CALLS} times in one loop: all options are kept"
)
Key = tuple[tuple[str, int, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class RemoteOption:
    """An option as the program receives it."""

    group: str
    nodes: int
    debug: str
    pods: tuple[Pod, ...]
    template: Node

    @classmethod
    def of(cls, option: NodeGroupOption) -> RemoteOption:
        """Return what the program receives of an option."""
        pods = tuple(pod for on_node in option.option.estimate.by_node() for pod in on_node)
        group = option.view.group
        return cls(group.id, option.nodes, group.debug, pods, option.template.node)


@dataclass(frozen=True, slots=True, eq=False)
class BestOptionsCall:
    """The options among which the program chooses."""

    options: tuple[RemoteOption, ...]

    @property
    def key(self) -> Key:
        """What distinguishes it from other calls of the same loop."""
        return tuple(
            (one.group, one.nodes, tuple(pod.metadata.uid or pod.key for pod in one.pods))
            for one in self.options
        )


@dataclass(frozen=True, slots=True)
class BestOptions:
    """The program's answer: the groups to keep, or why all are kept."""

    groups: frozenset[str] = frozenset()
    failure: str = ""

    def filter(
        self, options: Sequence[NodeGroupOption]
    ) -> tuple[list[NodeGroupOption], list[ExpanderNote]]:
        """Return the options that are kept, and a note if the answer could not be used."""
        if self.failure:
            return list(options), [ExpanderNote(FAILED, self.failure)]
        if not self.groups:
            return [], [CHOSE_NONE]
        kept = [one for one in options if one.view.id in self.groups]
        if not kept:
            named = ", ".join(sorted(self.groups)[:3])
            failure = f"the grpc expander returned no known node group but {named[:200]!r}"
            return list(options), [ExpanderNote(FAILED, failure)]
        return kept, []


class AnswerNeededError(Exception):
    """The decision needs an answer that the loop does not have yet."""

    def __init__(self, call: BestOptionsCall) -> None:
        super().__init__(f"the grpc expander has not chosen among {len(call.options)} options yet")
        self.call = call


@dataclass(slots=True, eq=False)
class RemoteAnswers:
    """The answers of one loop."""

    _by_call: dict[Key, BestOptions] = field(default_factory=dict)

    def filter(
        self, options: Iterable[NodeGroupOption]
    ) -> tuple[list[NodeGroupOption], list[ExpanderNote]]:
        """Keep the options that the program chose; AnswerNeededError if it has to be called."""
        left = list(options)
        call = BestOptionsCall(tuple(map(RemoteOption.of, left)))
        answer = self._by_call.get(call.key)
        if answer is not None:
            return answer.filter(left)
        if any(one.failure for one in self._by_call.values()):
            return left, []
        if len(self._by_call) >= MAX_CALLS:
            return left, [TOO_MANY]
        raise AnswerNeededError(call)

    def add(self, call: BestOptionsCall, answer: BestOptions) -> None:
        """Remember an answer for this loop."""
        self._by_call[call.key] = answer
