"""Loading of objects from files: JSON or YAML, from one manifest to the dump of a cluster.

    loaded = load("cluster.json")
    for problem in loaded.problems: ...

A source is a file (`.json`, `.ndjson`, `.yaml`, each also with `.gz`), a directory of them, `-` for
standard input, or bytes. A file holds one object, a `List` as `kubectl get -o json` prints it, a
typed list such as `PodList`, several JSON objects one after another, or YAML documents.

Each object is decoded and checked by itself: an invalid one is reported in `problems`, with its
place, and the rest still load. Text that cannot be parsed is reported there and in `unreadable`,
since it is unknown which objects it had. Kinds that scheduling does not read are counted in
`skipped`. Only a source that cannot be opened raises, as LoadError.
"""

from bayplan.kube.manifests.collector import (
    Collector,
    DumpMetadata,
    LoadResult,
    OmittedObject,
    Progress,
    UnseenKind,
)
from bayplan.kube.manifests.load import LoadError, load, plain_documents

__all__ = [
    "Collector",
    "DumpMetadata",
    "LoadError",
    "LoadResult",
    "OmittedObject",
    "Progress",
    "UnseenKind",
    "load",
    "plain_documents",
]
