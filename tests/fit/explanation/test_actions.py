"""Fixes as actions: what is changed, by which patch and which command, at which risk."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.fit import Snapshot
from bayplan.fit.explanation import FixKind, Risk, Step, explain
from bayplan.kube.meta import KubeObject
from tests.builders import (
    PodBuilder,
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
)

ZONE = "topology.kubernetes.io/zone"


def step(objects: Sequence[KubeObject], pod: PodBuilder, kind: FixKind) -> Step:
    """The step of the first fix of one step of that kind."""
    found = explain(Snapshot(objects), pod.obj()).fixes
    return next(fix.steps[0] for fix in found if fix.kinds == (kind,))


def test_a_cordoned_node_is_uncordoned() -> None:
    found = step([make_node("n").unschedulable().obj()], make_pod("p"), FixKind.UNCORDON)
    assert found.target == ("Node", "", "n")
    assert found.patch == {"spec": {"unschedulable": None}}
    assert found.command == "kubectl uncordon n"
    assert found.risks == (Risk.OPENS_A_NODE,)


def test_a_toleration_is_merged_into_the_deployment_that_made_the_pod() -> None:
    pod = make_pod("web-5d8-x").owner("ReplicaSet", "web-5d8")
    pod.labels({"pod-template-hash": "5d8"})
    found = step([make_node("n").taint("gpu", "a").obj()], pod, FixKind.TOLERATION)
    assert found.target == ("Deployment", "default", "web")
    asked = [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]
    assert found.patch == {"spec": {"template": {"spec": {"tolerations": asked}}}}
    assert found.command.startswith("kubectl -n default patch deployment web --type=strategic -p ")
    assert found.risks == (Risk.RELAXES_A_RULE, Risk.RESTARTS)


def test_a_pod_of_nobody_is_tolerated_in_place_and_otherwise_made_anew() -> None:
    tolerated = step([make_node("n").taint("gpu").obj()], make_pod("p"), FixKind.TOLERATION)
    assert tolerated.command.startswith("kubectl -n default patch pod p --type=strategic")
    small = make_node("n").capacity(cpu="2").obj()
    asked = step([small], make_pod("p").cpu("3"), FixKind.SMALLER_REQUEST)
    assert asked.target == ("Pod", "default", "p")
    assert asked.patch == {
        "spec": {"containers": [{"name": "c0", "resources": {"requests": {"cpu": "2"}}}]}
    }
    assert asked.command.startswith("kubectl -n default get pod p -o json | kubectl patch --local")
    assert asked.command.endswith(" -o json | kubectl replace --force -f -")
    assert asked.risks == (Risk.RUNS_WITH_LESS,)


def test_a_constraint_is_replaced_among_all_there_are() -> None:
    objects: list[KubeObject] = [make_node("a").zone("a").obj()]
    objects += [make_node("b").zone("b").taint("t").obj()]
    objects += [make_pod("x").labels(app="w").node("a").obj()]
    pod = make_pod("p").labels(app="w").spread(ZONE)
    patch = msgspec.json.encode(step(objects, pod, FixKind.RELAX_SPREAD).patch).decode()
    assert '{"topologySpreadConstraints":[{"$patch":"replace"},{"maxSkew":2,' in patch


def test_what_goes_is_deleted_and_what_is_missing_is_created() -> None:
    volume = make_storage_class("fast", "d").waits().obj()
    made = step([make_node("n").obj(), volume], make_pod("p").claim("c"), FixKind.CREATE_CLAIM)
    assert made.target == ("PersistentVolumeClaim", "default", "c")
    assert made.patch["kind"] == "PersistentVolumeClaim"
    assert made.command.startswith("kubectl apply -f - <<'EOF'\n{")
    objects: list[KubeObject] = [make_node("n").obj()]
    objects += [make_pod("holder").claim("c").node("n").obj(), make_pv("v").bound_to("c").obj()]
    objects.append(make_pvc("c").volume("v").access("ReadWriteOncePod").obj())
    gone = step(objects, make_pod("p").claim("c"), FixKind.STOP_POD)
    assert gone.target == ("Pod", "default", "holder")
    assert gone.patch == {}
    assert gone.command == "kubectl -n default delete pod holder"
    assert gone.risks == (Risk.EVICTS,)


def test_a_claim_is_created_as_a_person_would_and_bound_by_its_provisioner() -> None:
    objects: list[KubeObject] = [make_node("n").obj(), make_csinode("n").driver("d", 4).obj()]
    objects.append(make_storage_class("now", "d").obj())
    made = step(objects, make_pod("p").claim("c"), FixKind.CREATE_CLAIM)
    assert made.target == ("PersistentVolumeClaim", "default", "c")
    assert "volumeName" not in made.command
    assert 'PersistentVolume"' not in made.command
    objects.append(make_pvc("c").storage_class("now").terminating().obj())
    again = step(objects, make_pod("p").claim("c"), FixKind.CREATE_CLAIM)
    assert again.command.startswith(
        "kubectl -n default delete persistentvolumeclaim c && kubectl apply -f - <<'EOF'\n"
    )


def test_a_claim_without_a_class_is_made_anew_with_one() -> None:
    objects: list[KubeObject] = [make_node("n").obj(), make_pvc("c").obj()]
    objects.append(make_storage_class("fast", "d").waits().obj())
    found = step(objects, make_pod("p").claim("c"), FixKind.SET_CLASS)
    assert found.patch == {"spec": {"storageClassName": "fast"}}
    assert found.command.endswith(" -o json | kubectl replace --force -f -")


def test_a_volume_for_a_claim_that_nobody_serves_is_created_on_the_node() -> None:
    objects: list[KubeObject] = [make_node("n").label("kubernetes.io/hostname", "n").obj()]
    objects.append(make_storage_class("local", "kubernetes.io/no-provisioner").waits().obj())
    objects.append(make_pvc("c").storage_class("local").size("5Gi").obj())
    found = step(objects, make_pod("p").claim("c"), FixKind.ADD_VOLUME)
    assert found.target.kind == "PersistentVolume"
    assert '"local":{"path":"/mnt/disks/pv-for-default-c"}' in found.command
    assert '"key":"kubernetes.io/hostname","operator":"In","values":["n"]' in found.command
