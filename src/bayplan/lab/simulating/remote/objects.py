"""The objects of simulations on a cluster, as the API has them."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from bayplan.client import Untyped

LABELS = {"app.kubernetes.io/name": "bayplan", "app.kubernetes.io/component": "simulate"}
FOLDER, FILE = "/inputs", "inputs.json.zst"
RESULT = "result.json.zst"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
TTL_SECONDS = 3600
TRIES = 3
"""How often each run may fail, on average, before all is given up."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where it runs, and as what."""

    namespace: str
    name: str
    image: str
    runs: int
    parallelism: int
    service_account: str = ""
    """One that is there already; empty to have one made."""
    memory: str = "1Gi"

    @property
    def account(self) -> str:
        """The account of the pods."""
        return self.service_account or self.name

    def result(self, index: int) -> str:
        """The ConfigMap that waits for the result of a run."""
        return f"{self.name}-{index}"


def job(place: Place) -> Untyped:
    """The Job; it waits until everything else is there."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": place.name, "namespace": place.namespace, "labels": LABELS},
        "spec": {
            "suspend": True,
            "completionMode": "Indexed",
            "completions": place.runs,
            "parallelism": place.parallelism,
            "backoffLimit": place.runs * (TRIES - 1),
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": {"metadata": {"labels": LABELS}, "spec": _pod(place)},
        },
    }


def _pod(place: Place) -> Untyped:
    inputs = f"{FOLDER}/{FILE}"
    return {
        "restartPolicy": "Never",
        "serviceAccountName": place.account,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "simulate",
                "image": place.image,
                "command": ["bayplan"],
                "args": [
                    "simulate-worker",
                    f"--inputs={inputs}",
                    f"--namespace={place.namespace}",
                    f"--results={place.name}",
                    "--index=$(INDEX)",
                ],
                "env": [{"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}],
                "resources": {"requests": {"cpu": "1", "memory": place.memory}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "inputs", "mountPath": FOLDER, "readOnly": True}],
            }
        ],
        "volumes": [{"name": "inputs", "configMap": {"name": place.name}}],
    }


def belongings(place: Place, uid: str, inputs: bytes) -> list[Untyped]:
    """Everything beside the Job, which owns it: inputs, places for results, and who may fill these
    in.
    """
    data = {FILE: base64.b64encode(inputs).decode()}
    made = [_config_map(place, uid, place.name, {"binaryData": data})]
    made += [_config_map(place, uid, place.result(index), {}) for index in range(place.runs)]
    return made if place.service_account else [*_account(place, uid), *made]


def _config_map(place: Place, uid: str, name: str, content: Untyped) -> Untyped:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(place, uid, name), **content}


def _account(place: Place, uid: str) -> list[Untyped]:
    """An account that may fill in the results, and nothing else."""
    group = "rbac.authorization.k8s.io"
    meta = _meta(place, uid, place.name)
    rule = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [place.result(index) for index in range(place.runs)],
        "verbs": ["patch"],
    }
    subject = {"kind": "ServiceAccount", "name": place.name, "namespace": place.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": place.name},
            "subjects": [subject],
        },
    ]


def _meta(place: Place, uid: str, name: str) -> Untyped:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": place.name, "uid": uid}
    labels: Untyped = {**LABELS}
    return {
        "name": name,
        "namespace": place.namespace,
        "labels": labels,
        "ownerReferences": [owner],
    }
