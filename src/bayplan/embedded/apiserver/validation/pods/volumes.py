"""A pod's volumes: one source each, said in full."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    required,
)
from bayplan.embedded.apiserver.validation.names import dns_label, name_problems, subdomain
from bayplan.embedded.apiserver.validation.paths import descending_problems
from bayplan.embedded.apiserver.validation.pods.choices import (
    Rule,
    needed,
    optional_name,
    required_choice,
    required_name,
)
from bayplan.embedded.apiserver.validation.pods.claimtemplates import claim_template_problems
from bayplan.embedded.apiserver.validation.pods.mounts import Volumes
from bayplan.embedded.apiserver.validation.pods.projections import (
    config_problems,
    downward_problems,
    projected_problems,
    secret_problems,
)
from bayplan.embedded.apiserver.validation.volumes import driver_name_problems
from bayplan.embedded.apiserver.validation.volumesources import (
    initiator_problems,
    lun_problems,
    source_rule,
)
from bayplan.kube.quantity import parse as amount

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_INITIATOR = "must be valid format starting with iqn, eui, or naa"


def volume_list_problems(spec: JsonObject, at: str, pod: str | None) -> tuple[Volumes, list[Cause]]:
    """The volumes that are in order, and what is wrong with the others.

    `pod` is the pod's name, after which its own claims are named; None for a template.
    """
    volumes = spec.get("volumes") or ()
    own = {
        f"{pod}-{one.get('name')}" for one in volumes if pod and one.get("ephemeral") is not None
    }
    good: Volumes = {}
    found: list[Cause] = []
    for index, volume in enumerate(volumes):
        place, name = f"{at}[{index}]", volume.get("name") or ""
        wrong = _source_problems(volume, place, pod)
        wrong += required_name(name, f"{place}.name", dns_label)
        if name in good:
            wrong.append(duplicate(f"{place}.name", name))
        if wrong:
            found += wrong
        else:
            good[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in own:
            why = "must not reference a PVC that gets created for an ephemeral volume"
            found.append(bad_value(f"{place}.persistentVolumeClaim.claimName", claim, why))
    return good, found


def _source_problems(volume: JsonObject, at: str, pod: str | None) -> list[Cause]:
    said = [kind for kind in volume if kind in _RULES and volume[kind] is not None]
    said.sort(key=_ORDER.index)
    if not said:
        return [required(at, "must specify a volume type")]
    first, *others = said
    found = []
    if first == "image" and pod is not None:
        found += needed("reference")(volume[first], f"{at}.image")
    found += _RULES[first](volume[first], f"{at}.{_FIELDS.get(first, first)}")
    why = "may not specify more than 1 volume type"
    found += [forbidden_field(f"{at}.{_SPELLED.get(kind, kind)}", why) for kind in others]
    if volume.get("iscsi") is not None:
        found += _portal_problems(volume, at)
    if first == "ephemeral" and pod and volume.get("name"):
        claim = f"{pod}-{volume['name']}"
        found += [
            bad_value(f"{at}.name", volume["name"], f'PVC name "{claim}": {why}')
            for why in subdomain(claim)
        ]
    return found


_FIELDS = {"gcePersistentDisk": "persistentDisk"}
_SPELLED = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Where kube-apiserver calls a field otherwise than the API does."""


def _empty_dir(source: JsonObject, at: str) -> list[Cause]:
    if amount(source.get("sizeLimit") or "0") >= 0:
        return []
    return [forbidden_field(f"{at}.sizeLimit", "SizeLimit field must be a valid resource quantity")]


def _git_repo(source: JsonObject, at: str) -> list[Cause]:
    found = needed("repository")(source, at)
    return found + descending_problems(source.get("directory") or "", f"{at}.directory")


def _iscsi(source: JsonObject, at: str) -> list[Cause]:
    found = needed("targetPortal", "iqn")(source, at)
    if source.get("iqn"):
        found += initiator_problems(source["iqn"], f"{at}.iqn", _INITIATOR)
    found += lun_problems(source.get("lun") or 0, at)
    chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if chap and source.get("secretRef") is None:
        found.append(required(f"{at}.secretRef"))
    if source.get("initiatorName") is not None:
        place = f"{at}.initiatorname"
        found += initiator_problems(source["initiatorName"], place, _INITIATOR)
    return found


def _portal_problems(volume: JsonObject, at: str) -> list[Cause]:
    source, name = volume["iscsi"], volume.get("name") or ""
    portal = f"{name}:{source.get('targetPortal') or ''}"
    if source.get("initiatorName") is None or len(portal) <= 64:
        return []
    why = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
        "iscsi.initiatorName is specified."
    )
    return [bad_value(f"{at}.name", name, why)]


def _cinder(source: JsonObject, at: str) -> list[Cause]:
    found = needed("volumeID")(source, at)
    if source.get("secretRef") is not None:
        found += needed("name")(source["secretRef"], f"{at}.secretRef")
    return found


def _storage_os(source: JsonObject, at: str) -> list[Cause]:
    found = required_name(source.get("volumeName"), f"{at}.volumeName", dns_label)
    found += optional_name(source.get("volumeNamespace"), f"{at}.volumeNamespace", dns_label)
    if source.get("secretRef") is not None:
        found += needed("name")(source["secretRef"], f"{at}.secretRef")
    return found


def _csi(source: JsonObject, at: str) -> list[Cause]:
    found = driver_name_problems(source.get("driver") or "", f"{at}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name")
        if not name:
            found.append(required(f"{at}.nodePublishSecretRef.name"))
        else:
            found += name_problems(subdomain, name, f"{at}.name")
    return found


def _ephemeral(source: JsonObject, at: str) -> list[Cause]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{at}.volumeClaimTemplate")]
    return claim_template_problems(template, f"{at}.volumeClaimTemplate")


def _image(source: JsonObject, at: str) -> list[Cause]:
    return required_choice(source.get("pullPolicy"), f"{at}.pullPolicy", PULL_POLICIES)


_OWN_RULES: dict[str, Rule] = {
    "emptyDir": _empty_dir,
    "gitRepo": _git_repo,
    "secret": secret_problems,
    "iscsi": _iscsi,
    "persistentVolumeClaim": needed("claimName"),
    "cinder": _cinder,
    "downwardAPI": downward_problems,
    "configMap": config_problems,
    "storageos": _storage_os,
    "projected": projected_problems,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
_ORDER = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs",
    "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte",
    "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO",
    "csi", "ephemeral", "image",
)  # fmt: skip
_RULES: dict[str, Rule] = {
    kind: _OWN_RULES[kind] if kind in _OWN_RULES else source_rule(kind, "") for kind in _ORDER
}
"""Every kind of volume, in the order in which they are looked at."""
