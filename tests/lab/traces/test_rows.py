"""Traces become pods at their times; what cannot be read is named by line and column."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.lab.simulation.pool import run_simulation
from bayplan.lab.traces.rows import TraceClaim, TraceError, TraceRow, parse_rows, read_trace
from tests.lab.simulation.runs import run_spec, variant

pytestmark = pytest.mark.whole


CLUSTER = b"""
csiDrivers: [{name: disk.csi.example.com}]
storageClasses: [{name: disks, driver: disk.csi.example.com, default: true}]
instanceTypes: [{name: small, cpu: 4, memory: 8Gi, price: 1.0}]
nodeGroups:
  - name: workers
    instanceType: small
    count: 2
    min: 2
    max: 6
    labels: {team: shop}
    drivers: [{name: disk.csi.example.com, limit: 8}]
"""
TRACE = """arrival,duration,cpu,memory,replicas,gang,claims,queue,priority,nodeSelector,name
1m,5m,500m,1Gi,3,,,,,,
90,60,1,,1,,2*disks:5Gi,,100,team=shop,import

10m,,250m,256Mi,2,,1,,,,web
"""


def test_every_column_is_read() -> None:
    first, second, third = parse_rows(TRACE)
    assert first == TraceRow(60.0, 300.0, (("cpu", "500m"), ("memory", "1Gi")), replicas=3)
    assert second.claims == (TraceClaim(2, "5Gi", "disks"),)
    assert (second.arrival, second.priority, second.name) == (90.0, 100, "import")
    assert second.node_selector == (("team", "shop"),)
    assert (third.duration, third.claims) == (None, (TraceClaim(1, "10Gi"),))


def test_work_arrives_at_its_time_and_leaves_when_it_is_done() -> None:
    asked = msgspec.structs.replace(run_spec(variant(CLUSTER)), trace=TRACE)
    found = run_simulation(asked)
    assert (found.figures["podsCreated"], found.figures["podsRan"]) == (6, 6)
    running = found.series["pods/running"]
    assert (running[0], max(running), running[-1]) == (0, 4, 2)
    assert max(found.series["volumes/disk.csi.example.com"]) > 1
    halved = run_simulation(msgspec.structs.replace(asked, trace_scale=0.5))
    assert halved.series["pods/running"][1] > 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "trace:1: no column 'arrival'"),
        ("arival\n1", "trace:1: there is no column 'arival'; did you mean 'arrival'?"),
        ("arrival,arrival\n", "trace:1: duplicate column 'arrival'"),
        ("arrival,cpu\n1,x", "trace:2: cpu: quantity 'x'"),
        ("arrival,cpu\n1,-1", "trace:2: cpu: -1 is negative"),
        ("arrival,cpu\n,1", "trace:2: arrival: is empty"),
        ("arrival\nsoon", "trace:2: arrival: "),
        ("arrival\nnan", "trace:2: arrival: "),
        ("arrival\n5\n4", "trace:3: arrival: earlier than the row before it"),
        ("arrival\n1,2", "trace:2: 2 cells for 1 columns"),
        ("arrival,replicas\n1,0", "trace:2: replicas: '0' is not a whole number from 1 to 10000"),
        ("arrival,gang\n1,2", "trace:2: gang: 2 of 1 replicas cannot start together"),
        ("arrival,claims\n1,9*big", "trace:2: claims: '9*big' is not a claim"),
        ("arrival,claims\n1,5000", "trace:2: claims: 5000 is more than 100"),
        ("arrival,nodeSelector\n1,zone", "trace:2: nodeSelector: 'zone' is not written as"),
        ("arrival,queue\n1,No!", "trace:2: queue: 'No!' is not a valid queue name"),
        ("arrival,name\n1,<script>", "trace:2: name: '<script>' cannot be"),
        ("arrival,priority\n1,9999999999", "trace:2: priority: "),
        ('arrival\n"1', "trace:2: not CSV: "),
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str) -> None:
    with pytest.raises(TraceError) as caught:
        list(parse_rows(text))
    assert str(caught.value).startswith(said)


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "odd.csv").write_bytes(b"arrival\n\xff")
    with pytest.raises(TraceError, match="not UTF-8"):
        read_trace(tmp_path / "odd.csv")


@given(st.text(max_size=200))
def test_no_text_does_anything_but_be_read_or_refused(text: str) -> None:
    for head in ("", "arrival,duration,cpu,claims,replicas,nodeSelector\n"):
        try:
            found = list(parse_rows(head + text))
        except TraceError:
            continue
        assert all(one.arrival >= 0 for one in found)
