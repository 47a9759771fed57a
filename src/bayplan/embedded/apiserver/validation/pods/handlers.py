"""What is done to a container while it lives: probes, and hooks when it starts and stops."""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.validation.causes import (
    NEGATIVE,
    bad_value,
    forbidden_field,
    out_of_range,
    required,
)
from bayplan.embedded.apiserver.validation.names import name_problems, too_many_letters, unmatched
from bayplan.embedded.apiserver.validation.pods.choices import choice

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
    "failureThreshold",
)  # fmt: skip
_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_HEADER = "[-A-Za-z0-9]+"
MOST_PORT = 65535


def port_name(name: str) -> list[str]:
    """Names of ports."""
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


def port_problems(port: JsonValue, at: str) -> list[Cause]:
    """A port by number or by name."""
    if isinstance(port, str):
        return name_problems(port_name, port, at)
    number = port or 0
    return [] if 1 <= number <= MOST_PORT else [out_of_range(at, number, 1, MOST_PORT)]


def _header_name(name: str) -> list[str]:
    if re.fullmatch(_HEADER, name):
        return []
    why = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [unmatched(why, _HEADER, "X-Header-Name")]


def probe_problems(container: JsonObject, at: str, grace: int | None) -> list[Cause]:
    """What is wrong with a container's probes."""
    found: list[Cause] = []
    for name in PROBES:
        if container.get(name) is not None:
            found += _probe_problems(container[name], f"{at}.{name}", name, grace)
    return found


def _probe_problems(probe: JsonObject, at: str, name: str, grace: int | None) -> list[Cause]:
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


def lifecycle_problems(container: JsonObject, at: str, grace: int | None) -> list[Cause]:
    """What is wrong with what is done when a container starts and before it stops."""
    found: list[Cause] = []
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            found += _handler_problems(lifecycle[name], f"{at}.lifecycle.{name}", _OF_HOOKS, grace)
    return found


def _handler_problems(
    handler: JsonObject, at: str, kinds: tuple[str, ...], grace: int | None
) -> list[Cause]:
    said = [kind for kind in kinds if handler.get(kind) is not None]
    if not said:
        return [required(at, "must specify a handler type")]
    found = _action_problems(said[0], handler[said[0]], f"{at}.{said[0]}", grace)
    why = "may not specify more than 1 handler type"
    return found + [forbidden_field(f"{at}.{kind}", why) for kind in said[1:]]


def _action_problems(kind: str, action: JsonObject, at: str, grace: int | None) -> list[Cause]:
    if kind == "exec":
        return [] if action.get("command") else [required(f"{at}.command")]
    if kind == "httpGet":
        return _request_problems(action, at)
    if kind == "sleep":
        return _sleep_problems(action.get("seconds") or 0, at, grace)
    return port_problems(action.get("port"), f"{at}.port")


def _request_problems(action: JsonObject, at: str) -> list[Cause]:
    found = [] if action.get("path") else [required(f"{at}.path")]
    found += port_problems(action.get("port"), f"{at}.port")
    found += choice(action.get("scheme") or "", f"{at}.scheme", ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        found += name_problems(_header_name, header.get("name") or "", f"{at}.httpHeaders")
    return found


def _sleep_problems(seconds: int, at: str, grace: int | None) -> list[Cause]:
    if grace is None or 0 <= seconds <= grace:
        return []
    why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
    return [bad_value(at, seconds, why)]
