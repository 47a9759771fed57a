"""The lines that kube-scheduler 1.36.4 wrote into events, pod by pod: ours are the same.

`recorded/lines.ndjson.gz` has a cluster on each line (as an API server gave it), and for each pod
in it that fits nowhere the note of its FailedScheduling event.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from bayplan.fit import Profile, Snapshot
from bayplan.fit.explanation import explain
from bayplan.kube.codec import decode_object
from bayplan.kube.pods import Pod

RECORDED = Path(__file__).parent / "recorded" / "lines.ndjson.gz"


def test_every_line_is_the_one_that_kube_scheduler_wrote() -> None:
    asked, differ = 0, []
    for case in map(json.loads, gzip.decompress(RECORDED.read_bytes()).splitlines()):
        objects = [decode_object(one) for one in case["objects"]]
        snapshot = Snapshot(objects, profile=Profile().as_kube_scheduler())
        for key, line in case["lines"].items():
            pod = snapshot.get(Pod, key)
            assert pod is not None
            ours = explain(snapshot, pod, with_fixes=False).message
            asked += 1
            if ours != line:
                differ.append((case["id"], key, line, ours))
    assert differ == []
    assert asked > 200
