"""Whole clusters from files: JSON or YAML, one object or thousands, and never a traceback.

    loaded = load("cluster.json")
    for problem in loaded.problems: ...

A source is a file (`.json`, `.ndjson`, `.yaml`, each also with `.gz`), a directory of them, `-` for
standard input, or bytes. A file holds one object, a `List` as `kubectl get -o json` prints it, a
typed list such as `PodList`, several JSON objects one after another, or YAML documents.

Each object is decoded and checked by itself: a bad one is reported in `problems`, with its place,
and the rest still load. Text that cannot be read is reported there, and in `unreadable` as well:
what else it held is not known. Kinds that scheduling does not read are counted in `skipped`. Only a
source that cannot be opened at all raises, as LoadError.
"""

from bayplan.kube.loading.collector import Collector, DumpNotes, LeftOut, Loaded, Progress, Unseen
from bayplan.kube.loading.load import LoadError, load, plain_documents

__all__ = [
    "Collector",
    "DumpNotes",
    "LeftOut",
    "LoadError",
    "Loaded",
    "Progress",
    "Unseen",
    "load",
    "plain_documents",
]
