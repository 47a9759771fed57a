"""A pod's spec as a whole, be it of a pod or of a template of pods."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    out_of_range,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    label_problems,
    name_problems,
    qualified_name,
    subdomain,
)
from bayplan.embedded.apiserver.validation.pods.affinity import affinity_problems
from bayplan.embedded.apiserver.validation.pods.choices import (
    MOST_ID,
    choice,
    optional_name,
    required_choice,
)
from bayplan.embedded.apiserver.validation.pods.containers import (
    Surroundings,
    container_list_problems,
    image_problems,
)
from bayplan.embedded.apiserver.validation.pods.environment import file_volume_problems
from bayplan.embedded.apiserver.validation.pods.network import (
    alias_problems,
    dns_problems,
    host_name_problems,
    host_port_problems,
)
from bayplan.embedded.apiserver.validation.pods.projections import token_account_problems
from bayplan.embedded.apiserver.validation.pods.scheduling import (
    gate_problems,
    spread_problems,
    toleration_problems,
)
from bayplan.embedded.apiserver.validation.pods.security import (
    host_user_problems,
    pod_security_problems,
)
from bayplan.embedded.apiserver.validation.pods.totals import pod_level_problems
from bayplan.embedded.apiserver.validation.pods.volumes import volume_list_problems
from bayplan.embedded.apiserver.validation.pods.windows import (
    host_process_problems,
    system_problems,
)
from bayplan.embedded.apiserver.validation.resources import (
    container_resource_problems,
    requirement_problems,
)

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def pod_spec_problems(spec: JsonObject, at: str, pod: str | None = None) -> list[Cause]:
    """What is wrong with a pod's spec; `pod` is the name of the pod, None for a template."""
    found: list[Cause] = []
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        found.append(required(f"{at}.terminationGracePeriodSeconds"))
    volumes, wrong = volume_list_problems(spec, f"{at}.volumes", pod)
    claims = spec.get("resourceClaims") or []
    names = frozenset(one["name"] for one in claims if one.get("name"))
    policy, users = spec.get("restartPolicy") or "", spec.get("hostUsers") is not False
    around = Surroundings(volumes, names, grace, policy, users)
    return [
        *found,
        *wrong,
        *_claim_problems(claims, f"{at}.resourceClaims"),
        *container_list_problems(spec, at, around),
        *pod_level_problems(spec, at),
        *host_port_problems(spec, at, is_pod=pod is not None),
        *required_choice(policy, f"{at}.restartPolicy", RESTART_POLICIES),
        *required_choice(spec.get("dnsPolicy"), f"{at}.dnsPolicy", _DNS_POLICIES),
        *_rest_problems(spec, at),
    ]


def _rest_problems(spec: JsonObject, at: str) -> list[Cause]:
    found = label_problems(spec.get("nodeSelector") or {}, f"{at}.nodeSelector")
    found += pod_security_problems(spec, at)
    if spec.get("affinity"):
        found += affinity_problems(spec["affinity"], f"{at}.affinity")
    found += dns_problems(spec, f"{at}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        field = f"{at}.readinessGates[{index}].conditionType"
        found += name_problems(qualified_name, gate.get("conditionType") or "", field)
    found += gate_problems(spec.get("schedulingGates") or [], f"{at}.schedulingGates")
    spread = spec.get("topologySpreadConstraints") or []
    found += spread_problems(spread, f"{at}.topologySpreadConstraints")
    found += host_process_problems(spec, at)
    found += host_user_problems(spec, at)
    found += host_name_problems(spec, at)
    found += _name_problems(spec, at)
    if spec.get("overhead"):
        limits = {"limits": spec["overhead"]}
        found += requirement_problems(limits, f"{at}.overhead", container_resource_problems)
    found += system_problems(spec, at)
    return found + file_volume_problems(spec, at)


def _name_problems(spec: JsonObject, at: str) -> list[Cause]:
    found = optional_name(spec.get("serviceAccountName"), f"{at}.serviceAccountName", subdomain)
    found += optional_name(spec.get("nodeName"), f"{at}.nodeName", subdomain)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MOST_ID:
        found.append(out_of_range(f"{at}.activeDeadlineSeconds", deadline, 1, MOST_ID))
    found += optional_name(spec.get("hostname"), f"{at}.hostname", dns_label)
    found += optional_name(spec.get("subdomain"), f"{at}.subdomain", dns_label)
    found += toleration_problems(spec.get("tolerations") or [], f"{at}.tolerations")
    found += alias_problems(spec.get("hostAliases") or [], f"{at}.hostAliases")
    found += optional_name(spec.get("priorityClassName"), f"{at}.priorityClassName", subdomain)
    if spec.get("runtimeClassName") is not None:
        found += name_problems(subdomain, spec["runtimeClassName"], f"{at}.runtimeClassName")
    policy = spec.get("preemptionPolicy")
    if policy == "":
        found.append(required(f"{at}.preemptionPolicy"))
    else:
        choices = ("PreemptLowerPriority", "Never")
        found += choice(policy, f"{at}.preemptionPolicy", choices)
    return found


def _claim_problems(claims: list[JsonObject], at: str) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        place, name = f"{at}[{index}]", claim.get("name") or ""
        if not name:
            found.append(required(f"{place}.name"))
        elif name in seen:
            found.append(duplicate(f"{place}.name", name))
        else:
            found += name_problems(dns_label, name, f"{place}.name")
        seen.add(name)
        found += _claim_source_problems(claim, place)
    return found


def _claim_source_problems(claim: JsonObject, at: str) -> list[Cause]:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    said = [name for name in sources if claim.get(name) is not None]
    found = []
    if len(said) != 1:
        why = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            if said
            else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        )
        found.append(bad_value(at, internal_form(claim, "core.PodResourceClaim"), why))
    for name in said:
        found += name_problems(subdomain, claim[name], f"{at}.{name}")
    return found


def new_pod_problems(spec: JsonObject, at: str) -> list[Cause]:
    """What is asked of pods only, and not of templates."""
    found = token_account_problems(spec, at)
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            found += image_problems(container, f"{at}.{name}[{index}]")
    return found


def creation_problems(spec: JsonObject, at: str) -> list[Cause]:
    """What a pod cannot have from the beginning."""
    found = []
    if spec.get("ephemeralContainers"):
        found.append(forbidden_field(f"{at}.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        why = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden_field(f"{at}.nodeName", why))
    return found
