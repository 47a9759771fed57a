"""Label selectors: requirements that must all hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bayplan.kube.meta import LabelSelector
from bayplan.kube.selectors.requirement import Operator, Requirement, requirement


class Selector:
    """Requirements that labels must all meet, or the selector of nothing."""

    __slots__ = ("_equal", "_hash", "_others", "requirements")

    requirements: tuple[Requirement, ...] | None
    """Sorted and said once; None for the selector that matches nothing."""

    def __init__(self, requirements: Collection[Requirement] | None) -> None:
        self.requirements = None if requirements is None else tuple(sorted(set(requirements)))
        self._hash = hash(self.requirements)
        listed = self.requirements or ()
        # Nearly all requirements are one key with one value: kept apart, they need no dispatch.
        self._equal = tuple((r.key, r.values[0]) for r in listed if _is_equality(r))
        self._others = tuple(r for r in listed if not _is_equality(r))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet every requirement."""
        if self.requirements is None:
            return False
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        return all(other.matches(labels) for other in self._others)

    def with_requirement(
        self, key: str, operator: Operator, values: Collection[str] = ()
    ) -> Selector:
        """This selector and one requirement more; the selector of nothing stays that."""
        if self.requirements is None:
            return self
        return Selector((*self.requirements, requirement(key, operator, values)))

    @property
    def matches_nothing(self) -> bool:
        """Whether it is the selector of nothing, which comes of no selector at all."""
        return self.requirements is None

    @property
    def matches_everything(self) -> bool:
        """Whether it has no requirements."""
        return self.requirements == ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Selector({self.requirements!r})"


def compile_selector(selector: LabelSelector | None) -> Selector:
    """A label selector ready to match; SelectorError if Kubernetes would refuse it."""
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    wanted = [requirement(key, "In", [value]) for key, value in selector.match_labels.items()]
    wanted += [requirement(e.key, e.operator, e.values) for e in selector.match_expressions]
    return Selector(wanted)


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """The selector of all that have these labels; unchecked, as Kubernetes takes such maps."""
    return Selector([Requirement(key, "In", (value,)) for key, value in labels.items()])


def _is_equality(wanted: Requirement) -> bool:
    return wanted.operator == "In" and len(wanted.values) == 1


NOTHING = Selector(None)
EVERYTHING = Selector(())
