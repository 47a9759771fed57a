"""Validation of containers: names, images, ports, restarts, probes, lifecycle hooks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.validation.causes import (
    NEGATIVE,
    bad_value,
    duplicate,
    forbidden_field,
    missing,
    not_supported,
    out_of_range,
    required,
    too_many,
)
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    name_problems,
    too_many_letters,
    unmatched,
)
from bayplan.embedded.apiserver.validation.pods.choices import (
    choice,
    required_choice,
    required_name,
)
from bayplan.embedded.apiserver.validation.pods.environment import environment_problems
from bayplan.embedded.apiserver.validation.pods.security import container_security_problems
from bayplan.embedded.apiserver.validation.pods.volumes import (
    PULL_POLICIES,
    Volumes,
    mount_problems,
)
from bayplan.embedded.apiserver.validation.resources import (
    container_resource_problems,
    requirement_problems,
)

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
    "failureThreshold",
)  # fmt: skip
_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_HEADER = "[-A-Za-z0-9]+"
MAX_PORT = 65535


def port_name(name: str) -> list[str]:
    """Validate a port name."""
    found = [too_many_letters(15)] if len(name) > 15 else []
    if not re.fullmatch("[-a-z0-9]+", name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def port_problems(port: JsonValue, at: str) -> list[FieldCause]:
    """Return the problems of a port number or name."""
    if isinstance(port, str):
        return name_problems(port_name, port, at)
    number = port or 0
    return [] if 1 <= number <= MAX_PORT else [out_of_range(at, number, 1, MAX_PORT)]


def _header_name(name: str) -> list[str]:
    if re.fullmatch(_HEADER, name):
        return []
    detail = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [unmatched(detail, _HEADER, "X-Header-Name")]


def probe_problems(container: JsonObject, at: str, grace: int | None) -> list[FieldCause]:
    """Return the problems of a container's probes."""
    found: list[FieldCause] = []
    for name in PROBES:
        if container.get(name) is not None:
            found += _probe_problems(container[name], f"{at}.{name}", name, grace)
    return found


def _probe_problems(probe: JsonObject, at: str, name: str, grace: int | None) -> list[FieldCause]:
    found = _handler_problems(probe, at, _OF_PROBES, grace)
    for count in _COUNTS:
        if (probe.get(count) or 0) < 0:
            found.append(bad_value(f"{at}.{count}", probe[count], NEGATIVE))
    own, field = probe.get("terminationGracePeriodSeconds"), f"{at}.terminationGracePeriodSeconds"
    if own is not None and own <= 0:
        found.append(bad_value(field, own, "must be greater than 0"))
    if name == "readinessProbe":
        if own is not None:
            found.append(bad_value(field, own, "must not be set for readinessProbes"))
    elif (threshold := probe.get("successThreshold") or 0) != 1:
        found.append(bad_value(f"{at}.successThreshold", threshold, "must be 1"))
    return found


def lifecycle_problems(container: JsonObject, at: str, grace: int | None) -> list[FieldCause]:
    """Return the problems of lifecycle hooks."""
    found: list[FieldCause] = []
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            found += _handler_problems(lifecycle[name], f"{at}.lifecycle.{name}", _OF_HOOKS, grace)
    return found


def _handler_problems(
    handler: JsonObject, at: str, kinds: tuple[str, ...], grace: int | None
) -> list[FieldCause]:
    present = [kind for kind in kinds if handler.get(kind) is not None]
    if not present:
        return [required(at, "must specify a handler type")]
    found = _action_problems(present[0], handler[present[0]], f"{at}.{present[0]}", grace)
    detail = "may not specify more than 1 handler type"
    return found + [forbidden_field(f"{at}.{kind}", detail) for kind in present[1:]]


def _action_problems(kind: str, action: JsonObject, at: str, grace: int | None) -> list[FieldCause]:
    if kind == "exec":
        return [] if action.get("command") else [required(f"{at}.command")]
    if kind == "httpGet":
        return _request_problems(action, at)
    if kind == "sleep":
        return _sleep_problems(action.get("seconds") or 0, at, grace)
    return port_problems(action.get("port"), f"{at}.port")


def _request_problems(action: JsonObject, at: str) -> list[FieldCause]:
    found = [] if action.get("path") else [required(f"{at}.path")]
    found += port_problems(action.get("port"), f"{at}.port")
    found += choice(action.get("scheme") or "", f"{at}.scheme", ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        found += name_problems(_header_name, header.get("name") or "", f"{at}.httpHeaders")
    return found


def _sleep_problems(seconds: int, at: str, grace: int | None) -> list[FieldCause]:
    if grace is None or 0 <= seconds <= grace:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
    return [bad_value(at, seconds, detail)]


_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGES = ("File", "FallbackToLogsOnError")
_RESIZED = ("cpu", "memory")
_RESIZES = ("NotRequired", "RestartContainer")
_RESTARTS = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_NOT_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", *PROBES,
    "lifecycle",
)  # fmt: skip
_MAX_RULES = 20
_MAX_EXIT_CODES = 255


class PodContext(NamedTuple):
    """The fields of a pod that the validation of its containers needs."""

    volumes: Volumes
    claims: frozenset[str]
    grace: int | None
    restart_policy: str
    host_users: bool


def container_list_problems(spec: JsonObject, at: str, around: PodContext) -> list[FieldCause]:
    """Return the problems of the containers of a pod."""
    containers = spec.get("containers") or []
    if not containers:
        found = [required(f"{at}.containers")]
    else:
        found = _regular_problems(containers, f"{at}.containers", around)
    names = {one.get("name") or "" for one in containers}
    first = spec.get("initContainers") or []
    found += _init_problems(first, f"{at}.initContainers", around, set(names))
    if spec.get("ephemeralContainers"):
        names |= {one.get("name") or "" for one in first}
        found += _ephemeral_problems(
            spec["ephemeralContainers"], f"{at}.ephemeralContainers", around, names
        )
    return found


def _regular_problems(
    containers: list[JsonObject], at: str, around: PodContext
) -> list[FieldCause]:
    found: list[FieldCause] = []
    names: set[str] = set()
    for index, container in enumerate(containers):
        place, name = f"{at}[{index}]", container.get("name") or ""
        found += _common_problems(container, place, around)
        if name in names:
            found.append(duplicate(f"{place}.name", name))
        names.add(name)
        found += lifecycle_problems(container, place, around.grace)
        found += probe_problems(container, place, around.grace)
        found += _restart_problems(container, place)
    return found + _host_port_problems(enumerate(containers), at)


def _init_problems(
    containers: list[JsonObject], at: str, around: PodContext, names: set[str]
) -> list[FieldCause]:
    found: list[FieldCause] = []
    for index, container in enumerate(containers):
        place, name = f"{at}[{index}]", container.get("name") or ""
        found += _common_problems(container, place, around)
        found += _restart_problems(container, place, passing=True)
        if name in names:
            found.append(duplicate(f"{place}.name", name))
        elif name:
            names.add(name)
        found += _host_port_problems([(0, container)], at)
        if container.get("restartPolicy") == "Always":
            found += lifecycle_problems(container, place, around.grace)
            found += probe_problems(container, place, around.grace)
        else:
            found += _passing_problems(container, place)
    return found


def _passing_problems(container: JsonObject, at: str) -> list[FieldCause]:
    """Refuse probes, hooks and restarts of init containers that are not sidecars."""
    detail = "may not be set for init containers without restartPolicy=Always"
    found = [
        forbidden_field(f"{at}.{name}", detail)
        for name in ("lifecycle", *PROBES)
        if container.get(name) is not None
    ]
    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return found + [
        bad_value(f"{at}.resizePolicy[{index}].restartPolicy", "RestartContainer", detail)
        for index, one in enumerate(container.get("resizePolicy") or ())
        if one.get("restartPolicy") == "RestartContainer"
    ]


def _ephemeral_problems(
    containers: list[JsonObject], at: str, around: PodContext, others: set[str]
) -> list[FieldCause]:
    found: list[FieldCause] = []
    names, detail = set(others), "cannot be set for an Ephemeral Container"
    for index, container in enumerate(containers):
        place, name = f"{at}[{index}]", container.get("name") or ""
        found += _common_problems(container, place, around)
        found += image_problems(container, place)
        if name in names:
            found.append(duplicate(f"{place}.name", name))
        names.add(name)
        target = container.get("targetContainerName")
        if target and target not in others:
            found.append(missing(f"{place}.targetContainerName", target))
        found += [
            forbidden_field(f"{place}.{field}", detail)
            for field in _NOT_EPHEMERAL
            if container.get(field)
        ]
        found += [
            forbidden_field(f"{place}.volumeMounts[{number}].{field}", detail)
            for number, mount in enumerate(container.get("volumeMounts") or ())
            for field in ("subPath", "subPathExpr")
            if mount.get(field)
        ]
    return found


def image_problems(container: JsonObject, at: str) -> list[FieldCause]:
    """Refuse images with leading or trailing spaces."""
    image = container.get("image") or ""
    if image == image.strip():
        return []
    return [bad_value(f"{at}.image", image, "must not have leading or trailing whitespace")]


def _common_problems(container: JsonObject, at: str, around: PodContext) -> list[FieldCause]:
    found = required_name(container.get("name"), f"{at}.name", dns_label)
    if not container.get("image"):
        found.append(required(f"{at}.image"))
    message = container.get("terminationMessagePolicy")
    found += required_choice(message, f"{at}.terminationMessagePolicy", _MESSAGES)
    if container.get("ports"):
        found += _port_problems(container["ports"], f"{at}.ports")
    found += environment_problems(container, at)
    found += mount_problems(container, at, around.volumes)
    policy = container.get("imagePullPolicy")
    found += required_choice(policy, f"{at}.imagePullPolicy", PULL_POLICIES)
    resources = container.get("resources")
    if resources:
        found += requirement_problems(
            resources, f"{at}.resources", container_resource_problems, around.claims
        )
    found += _resize_problems(container, f"{at}.resizePolicy", around.restart_policy)
    context = container.get("securityContext")
    if context:
        found += container_security_problems(context, f"{at}.securityContext", around.host_users)
    return found


def _port_problems(ports: list[JsonObject], at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        place, name = f"{at}[{index}]", port.get("name") or ""
        wrong = port_name(name) if name else []
        found += [bad_value(f"{place}.name", name, detail) for detail in wrong]
        if name and not wrong and name in names:
            found.append(duplicate(f"{place}.name", name))
        elif not wrong:
            names.add(name)
        if not port.get("containerPort"):
            found.append(required(f"{place}.containerPort"))
        for field in ("containerPort", "hostPort"):
            number = port.get(field)
            if number and not 1 <= number <= MAX_PORT:
                found.append(out_of_range(f"{place}.{field}", number, 1, MAX_PORT))
        found += required_choice(port.get("protocol"), f"{place}.protocol", _PROTOCOLS)
    return found


def _host_port_problems(containers: Iterable[tuple[int, JsonObject]], at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    taken: set[str] = set()
    for index, container in containers:
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if key in taken:
                found.append(duplicate(f"{at}[{index}].ports[{number}].hostPort", key))
            taken.add(key)
    return found


def _resize_problems(container: JsonObject, at: str, restart_policy: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    seen: set[str] = set()
    for index, one in enumerate(container.get("resizePolicy") or ()):
        name, policy = one.get("resourceName") or "", one.get("restartPolicy") or ""
        if name in seen:
            found.append(duplicate(f"{at}[{index}]", name))
        seen.add(name)
        found += required_choice(name, at, _RESIZED)
        found += required_choice(policy, at, _RESIZES)
        if restart_policy == "Never" and policy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(bad_value(at, policy, detail))
    return found


def _restart_problems(container: JsonObject, at: str, *, passing: bool = False) -> list[FieldCause]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None and not rules:
        return []
    found = choice(policy, f"{at}.restartPolicy", _RESTARTS)
    if policy is None:
        detail = "must specify restartPolicy when restart rules are used"
        found.append(required(f"{at}.restartPolicy", detail))
        if passing:
            return found
    if len(rules) > _MAX_RULES:
        found.append(too_many(f"{at}.restartPolicyRules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        found += _rule_problems(rule, f"{at}.restartPolicyRules[{index}]")
    return found


def _rule_problems(rule: JsonObject, at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    if rule.get("action") not in _ACTIONS:
        found.append(not_supported(f"{at}.action", rule.get("action") or "", _ACTIONS))
    codes = rule.get("exitCodes")
    if codes is None:
        return [*found, required(f"{at}.exitCodes", "must be specified")]
    found += choice(codes.get("operator") or "", f"{at}.exitCodes.operator", ("In", "NotIn"))
    count = len(codes.get("values") or ())
    if count > _MAX_EXIT_CODES:
        found.append(too_many(f"{at}.exitCodes.values", count, _MAX_EXIT_CODES))
    return found
