"""Which kinds are served now: the built-in table and whatever CRDs have added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.kinds.model import Kind


class Catalog:
    """Finds kinds by the names in a URL or in an object."""

    def __init__(self) -> None:
        self.generation = 0
        """Counts changes, so that documents made from the catalog can be kept until it moves."""
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self._custom: dict[str, tuple[Kind, ...]] = {}
        self._primary: dict[str, Kind] = {}
        self._by_storage: dict[str, tuple[Kind, ...]] = {}
        self._rebuild()

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_path.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind behind `/apis/<group>/<version>/<plural>`."""
        return self._by_path.get((group, version, plural))

    def of_object(self, api_version: str, kind: str) -> Kind | None:
        """The kind that an object says it is."""
        return self._by_kind.get((api_version, kind))

    def stored(self, storage: str) -> Kind | None:
        """The kind whose form is the one kept under a storage name."""
        return self._primary.get(storage)

    def sharing(self, storage: str) -> tuple[Kind, ...]:
        """The kinds whose objects are kept under a storage name: versions of one, and views."""
        return self._by_storage.get(storage, ())

    def serves_group(self, group: str, version: str) -> bool:
        """Whether anything is served under a group and version."""
        return any(kind.group == group and kind.version == version for kind in self)

    def groups(self) -> dict[str, list[str]]:
        """Each group's versions, in the order in which they should be preferred."""
        found: dict[str, list[str]] = {}
        for kind in self:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return found

    def storages(self) -> Iterable[Kind]:
        """One kind for each place where objects are kept."""
        return self._primary.values()

    def set_custom(self, definition: str, kinds: tuple[Kind, ...]) -> None:
        """Serve what a CRD defines, in place of what it defined before; storage version first."""
        self._custom[definition] = kinds
        self._rebuild()

    def drop_custom(self, definition: str) -> None:
        """Stop serving what a CRD defined."""
        if self._custom.pop(definition, None) is not None:
            self._rebuild()

    def _rebuild(self) -> None:
        kinds = [*BUILTIN, *(kind for group in self._custom.values() for kind in group)]
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in kinds}
        self._by_kind = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._primary = {}
        sharing: dict[str, list[Kind]] = defaultdict(list)
        for kind in self:
            sharing[kind.storage].append(kind)
        self._by_storage = {storage: tuple(found) for storage, found in sharing.items()}
        for kind in kinds:
            if kind.verbs != ("create",):
                self._primary.setdefault(kind.storage, kind)
        self.generation += 1
