"""NodePorts: who has a port of the host."""

from __future__ import annotations

from bayplan.kube.meta import KubeObject
from tests.builders import (
    make_node,
    make_pod,
)
from tests.fit.plugins.details import details


def test_a_taken_port_names_its_holder() -> None:
    objects: list[KubeObject] = [make_node("n").obj(), make_pod("x").host_port(80).node("n").obj()]
    assert details(objects, make_pod("p").host_port(80)) == {
        "n": ("host port 80/TCP is taken by pod default/x",)
    }
