"""Validation of the spec of a pod or of a pod template."""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.addresses import address_problems
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    out_of_range,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    label_problems,
    name_problems,
    qualified_name,
    subdomain,
    too_many_letters,
    unmatched,
)
from bayplan.embedded.apiserver.validation.pods.choices import (
    MAX_ID,
    choice,
    optional_name,
    required_choice,
)
from bayplan.embedded.apiserver.validation.pods.containers import (
    PodContext,
    container_list_problems,
    image_problems,
)
from bayplan.embedded.apiserver.validation.pods.environment import (
    file_volume_problems,
    token_account_problems,
)
from bayplan.embedded.apiserver.validation.pods.resources import pod_level_problems
from bayplan.embedded.apiserver.validation.pods.scheduling import (
    affinity_problems,
    gate_problems,
    spread_problems,
    toleration_problems,
)
from bayplan.embedded.apiserver.validation.pods.security import (
    host_process_problems,
    host_user_problems,
    pod_security_problems,
    system_problems,
)
from bayplan.embedded.apiserver.validation.pods.volumes import volume_list_problems
from bayplan.embedded.apiserver.validation.resources import (
    container_resource_problems,
    requirement_problems,
)

_MAX_SERVERS = 3
_MAX_SEARCHES = 32
_MAX_LETTERS = 2048
_MAX_HOST_LENGTH = 64
_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = rf"{_LABEL}(\.{_LABEL})*"


def _search_domain(name: str) -> list[str]:
    found = [too_many_letters(253)] if len(name) > 253 else []
    if re.fullmatch(_SEARCH, name):
        return found
    detail = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', "
        "'-' or '.', and must start and end with an alphanumeric character"
    )
    return [*found, unmatched(detail, _SEARCH, "example.com")]


def dns_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of a pod's DNS settings."""
    config = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(at, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not servers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{at}.nameservers", detail)]
    if config is None:
        return []
    found = []
    if len(servers) > _MAX_SERVERS:
        detail = f"must not have more than {_MAX_SERVERS} nameservers"
        found.append(bad_value(f"{at}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        found += address_problems(server, f"{at}.nameservers[{index}]")
    found += _search_problems(config.get("searches") or [], f"{at}.searches")
    return found + [
        required(f"{at}.options[{index}]", "must not be empty")
        for index, option in enumerate(config.get("options") or ())
        if not option.get("name")
    ]


def _search_problems(searches: list[str], at: str) -> list[FieldCause]:
    found = []
    if len(searches) > _MAX_SEARCHES:
        detail = f"must not have more than {_MAX_SEARCHES} search paths"
        found.append(bad_value(at, searches, detail))
    if len(" ".join(searches)) > _MAX_LETTERS:
        detail = (
            f"must not have more than {_MAX_LETTERS} characters (including spaces) in the search "
            "list"
        )
        found.append(bad_value(at, searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            found += name_problems(_search_domain, search.removesuffix("."), f"{at}[{index}]")
    return found


def host_port_problems(spec: JsonObject, at: str, *, is_pod: bool) -> list[FieldCause]:
    """Require host ports to equal container ports on the host's network."""
    if not spec.get("hostNetwork"):
        return []
    found = []
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host, inner = port.get("hostPort") or 0, port.get("containerPort") or 0
            if (is_pod or host) and host != inner:
                field = f"{at}.containers[{index}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                found.append(bad_value(field, host, detail))
    return found


def host_name_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of hostnameOverride."""
    name = spec.get("hostnameOverride")
    if name is None:
        return []
    field = f"{at}.hostnameOverride"
    found = []
    if spec.get("setHostnameAsFQDN"):
        detail = "may not be specified when setHostnameAsFQDN is true"
        found.append(forbidden_field(field, detail))
    if spec.get("hostNetwork"):
        found.append(forbidden_field(field, "may not be specified when hostNetwork is true"))
    if len(name) > _MAX_HOST_LENGTH:
        found.append(too_long(field, _MAX_HOST_LENGTH))
    return found + name_problems(subdomain, name, field)


def alias_problems(aliases: list[JsonObject], at: str) -> list[FieldCause]:
    """Return the problems of host aliases."""
    found: list[FieldCause] = []
    for index, alias in enumerate(aliases):
        found += address_problems(alias.get("ip") or "", f"{at}[{index}].ip")
        for number, name in enumerate(alias.get("hostnames") or ()):
            found += name_problems(subdomain, name, f"{at}[{index}].hostnames[{number}]")
    return found


RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def pod_spec_problems(spec: JsonObject, at: str, pod: str | None = None) -> list[FieldCause]:
    """Return the problems of a pod's spec; `pod` is the name of the pod, None for a template."""
    found: list[FieldCause] = []
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        found.append(required(f"{at}.terminationGracePeriodSeconds"))
    volumes, wrong = volume_list_problems(spec, f"{at}.volumes", pod)
    claims = spec.get("resourceClaims") or []
    names = frozenset(one["name"] for one in claims if one.get("name"))
    policy, users = spec.get("restartPolicy") or "", spec.get("hostUsers") is not False
    around = PodContext(volumes, names, grace, policy, users)
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


def _rest_problems(spec: JsonObject, at: str) -> list[FieldCause]:
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


def _name_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    found = optional_name(spec.get("serviceAccountName"), f"{at}.serviceAccountName", subdomain)
    found += optional_name(spec.get("nodeName"), f"{at}.nodeName", subdomain)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_ID:
        found.append(out_of_range(f"{at}.activeDeadlineSeconds", deadline, 1, MAX_ID))
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


def _claim_problems(claims: list[JsonObject], at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
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


def _claim_source_problems(claim: JsonObject, at: str) -> list[FieldCause]:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    present = [name for name in sources if claim.get(name) is not None]
    found = []
    if len(present) != 1:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            if present
            else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        )
        found.append(bad_value(at, internal_form(claim, "core.PodResourceClaim"), detail))
    for name in present:
        found += name_problems(subdomain, claim[name], f"{at}.{name}")
    return found


def new_pod_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems that only pods have, not templates."""
    found = token_account_problems(spec, at)
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            found += image_problems(container, f"{at}.{name}[{index}]")
    return found


def creation_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Return the fields that a new pod cannot have."""
    found = []
    if spec.get("ephemeralContainers"):
        found.append(forbidden_field(f"{at}.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden_field(f"{at}.nodeName", detail))
    return found
