"""Values that hardly anybody has, and that must do nevertheless."""

from __future__ import annotations

from typing import Any

AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["system"]}]}
            ]
        }
    },
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "bayplan"}},
                },
            }
        ]
    },
}
WORDS = [
    "--missing-driver=opt-in",
    "--scheduler-name=a,b c",
    "--scheduler-name=\"quoted\" 'once' `twice`",
    "--scheduler-name={{ .Values.image }} #",
    "--scheduler-name=Zürich 港 😀 \\ \t end",
    "--scheduler-name=$(POD_NAMESPACE): - yes",
]
EACH = ("scheduler", "autoscaler", "webhook", "nodeLimits")
ODD: dict[str, dict[str, Any]] = {
    "one replica": {one: {"replicas": 1} for one in EACH},
    "no replica": {one: {"replicas": 0} for one in EACH},
    "cert-manager": {"webhook": {"certManager": True}},
    "nothing is refused without a webhook": {"webhook": {"failurePolicy": "Ignore"}},
    "words": {"scheduler": {"extraArgs": WORDS}},
    "where it may run": {
        one: {
            "nodeSelector": {"kubernetes.io/os": "linux", "empty": ""},
            "tolerations": [
                {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
                {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 30},
            ],
            "affinity": AFFINITY,
        }
        for one in EACH
    },
    "a registry of one's own": {
        "image": "registry.example.com:5000/a/b@sha256:" + "0" * 64,
        "imagePullPolicy": "Always",
        "imagePullSecrets": [{"name": "one"}, {"name": "two.secrets"}],
    },
    "no priority": {one: {"priorityClassName": ""} for one in (*EACH, "nodeAgent")},
    "another priority": {one: {"priorityClassName": "mine"} for one in EACH},
    "no requests": {one: {"resources": {"requests": None}} for one in EACH},
    "limits": {
        one: {"resources": {"requests": {"cpu": 1, "memory": None}, "limits": {"memory": "1Gi"}}}
        for one in EACH
    },
    "monitored and shut": {
        "monitoring": {"enabled": True, "labels": {"release": "yes"}, "interval": "1m30s"},
        "networkPolicies": {"enabled": True},
        "nodeLimits": {"enabled": True},
    },
    "monitored alone": {
        "monitoring": {"enabled": True},
        "scheduler": {"enabled": False},
        "autoscaler": {"enabled": False},
        "webhook": {"enabled": False},
    },
    "many names": {"scheduler": {"schedulerNames": ["bayplan", "default-scheduler", "a.b-c"]}},
    "gates off": {
        "featureGates": "VolumeLimitScaling=false,AttachVolumeLimit=false,"
        "RuntimeClassInImageCriApi=false,QueueAllocationGate=false"
    },
    "in the place of kube-scheduler": {
        "scheduler": {"schedulerNames": ["default-scheduler"], "lease": "kube-scheduler"}
    },
    "no cloud": {"autoscaler": {"cloudConfigSecret": "", "cloudProvider": "clusterapi",
                                "clusterApi": True}},
    "agents": {"nodeAgent": {"enabled": True, "images": True, "stateFolder": "/var/lib/a b/.c"}},
    "agents and one for all": {
        "nodeAgent": {"enabled": True, "images": True, "limits": False, "tolerations": []},
        "nodeLimits": {"enabled": True, "limits": "csi:\n  d: {'*': 8}  # é\n\n"},
    },
    "limits without an end of line": {
        "nodeLimits": {"enabled": True, "limits": "  \n\naws-ebs: {m5.large: 20}"}
    },
    "another world": {"listenAddress": "[::]", "logFormat": "text",
                      "scheduler": {"podAnnotations": {"a.example.com/b": "- {x: 'y'}\n\n"}}},
}  # fmt: skip
