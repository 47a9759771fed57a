"""Open volumes are found by where they can be reached, and as if every one were looked at."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import Snapshot
from bayplan.fit.volumes.available_volumes import (
    FEW_EMPTY,
    AvailableVolumes,
    smallest_volume,
    wanted_volume,
)
from bayplan.kube.nodes import Node, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.kube.selectors import compile_node_selector
from bayplan.kube.storage import PersistentVolume
from tests.builders import (
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    name_term,
    node_term,
    selector,
)

HOST = "kubernetes.io/hostname"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
NODES = [
    make_node(f"n{index}").label(HOST, f"n{index}").label("zone", "ab"[index % 2]).obj()
    for index in range(6)
]


def random_term(rng: random.Random) -> NodeSelectorTerm:
    """A term as local, zonal and odd volumes have them."""
    name = f"n{rng.randrange(7)}"
    odd = NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=[name])
    return rng.choice(
        [
            node_term(HOST, "In", name),
            node_term(HOST, "In", name, "n0"),
            node_term(HOST, "NotIn", name),
            node_term("zone", "In", rng.choice("abc")),
            node_term("zone", "Exists"),
            name_term(name),
            NodeSelectorTerm(match_fields=[odd]),
            NodeSelectorTerm(),
            NodeSelectorTerm(
                match_expressions=node_term("zone", "NotIn", "a").match_expressions,
                match_fields=name_term(name).match_fields,
            ),
        ]
    )


def random_volume(rng: random.Random, name: str) -> PersistentVolume:
    """An open volume, mostly."""
    volume = (
        make_pv(name).size(f"{rng.randrange(1, 4)}Gi").label("disk", rng.choice(["ssd", "hdd"]))
    )
    if rng.random() < 0.9:
        volume.available()
    terms = [random_term(rng) for _ in range(rng.randrange(3))]
    return volume.node_affinity(*terms).obj() if terms else volume.obj()


def is_reached(pv: PersistentVolume, node: Node) -> bool:
    """Whether a node matches a volume's affinity."""
    required = pv.spec.node_affinity.required if pv.spec.node_affinity else None
    return required is None or compile_node_selector(required).matches(node)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 400))
def test_the_smallest_volume_is_the_one_that_a_search_of_all_finds(seed: int, steps: int) -> None:
    rng = random.Random(seed)
    volumes, there = AvailableVolumes(), dict[str, PersistentVolume]()
    for index in range(steps):
        if there and rng.random() < 0.5:
            volumes.remove(there.pop(rng.choice(sorted(there))))
        else:
            pv = there[f"v{index}"] = random_volume(rng, f"v{index}")
            volumes.put(pv)
    claim = make_pvc("c").size(f"{rng.randrange(4)}Gi").obj()
    claim.spec.selector = rng.choice([None, selector(disk="ssd")])
    wanted, taken = wanted_volume(claim), set(rng.sample(sorted(there), len(there) // 4))
    assert len(volumes) == len(there)
    for node in NODES:
        fitting = [
            pv
            for pv in there.values()
            if pv.name not in taken and wanted.is_met_by(pv) and is_reached(pv, node)
        ]
        found = smallest_volume(volumes.sites_for(node), wanted, taken)
        sizes = {"1Gi": 1, "2Gi": 2, "3Gi": 3}
        assert found is min(
            fitting, key=lambda pv: (sizes[str(pv.spec.capacity["storage"])], pv.name), default=None
        )


def test_claims_that_ask_for_the_same_are_one_shape_and_take_volumes_in_turn() -> None:
    snapshot = Snapshot([*NODES, make_storage_class("local", NO_PROVISIONER).waits().obj()])
    for node in NODES:
        for number in range(2):
            volume = make_pv(f"{node.name}-{number}").size("10Gi").storage_class("local")
            snapshot.put(volume.available().node_affinity(node_term(HOST, "In", node.name)).obj())
    pods = [make_pod(f"p{index}").claim(f"c{index}").obj() for index in range(13)]
    for index in range(13):
        snapshot.put(make_pvc(f"c{index}").storage_class("local").size("5Gi").obj())
    evaluations = set()
    chosen = []
    for pod in pods[:12]:
        evaluations.add(id(snapshot.evaluation(pod)))
        chosen.append(snapshot.place(pod).node)
    assert len(evaluations) == 1
    assert sorted(map(str, chosen)) == sorted([node.name for node in NODES] * 2)
    assert snapshot.decide(pods[12]).node is None


def test_sites_that_stay_empty_are_forgotten() -> None:
    volumes = AvailableVolumes()
    kept = make_pv("kept").available().obj()
    volumes.put(kept)
    for index in range(FEW_EMPTY + 2):
        pv = make_pv("gone").available().node_affinity(node_term(HOST, "In", f"x{index}")).obj()
        volumes.put(pv)
        volumes.remove(pv)
    assert volumes.epoch == 1
    assert len(volumes.sites_for(NODES[0])) == 1
