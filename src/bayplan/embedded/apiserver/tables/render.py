"""Tables: the columns of a kind, and its objects as rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.model import PrinterColumn, ServedKind
from bayplan.embedded.apiserver.tables import access, cluster, pods, workloads
from bayplan.embedded.apiserver.tables.columns import AGE, NAME, Column, age, read

COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": pods.POD,
    "deployments.apps": workloads.DEPLOYMENT,
    "replicasets.apps": workloads.REPLICA_SET,
    "replicationcontrollers": workloads.REPLICA_SET,
    "statefulsets.apps": workloads.STATEFUL_SET,
    "daemonsets.apps": workloads.DAEMON_SET,
    "jobs.batch": workloads.JOB,
    "cronjobs.batch": workloads.CRON_JOB,
    "nodes": cluster.NODE,
    "namespaces": cluster.NAMESPACE,
    "services": cluster.SERVICE,
    "persistentvolumes": cluster.VOLUME,
    "persistentvolumeclaims": cluster.CLAIM,
    "configmaps": cluster.CONFIG_MAP,
    "secrets": cluster.SECRET,
    "events": cluster.EVENT,
    "ingresses.networking.k8s.io": access.INGRESS,
    "ingressclasses.networking.k8s.io": access.INGRESS_CLASS,
    "networkpolicies.networking.k8s.io": access.NETWORK_POLICY,
    "horizontalpodautoscalers.autoscaling": access.AUTOSCALER,
    "endpoints": access.ENDPOINTS,
    "endpointslices.discovery.k8s.io": access.ENDPOINT_SLICE,
    "resourcequotas": access.QUOTA,
    "limitranges": access.CREATED_AT,
    "podtemplates": access.POD_TEMPLATE,
    "controllerrevisions.apps": access.REVISION,
    "csistoragecapacities.storage.k8s.io": access.CREATED_AT,
    "storageclasses.storage.k8s.io": cluster.STORAGE_CLASS,
    "csinodes.storage.k8s.io": cluster.CSI_NODE,
    "csidrivers.storage.k8s.io": cluster.CSI_DRIVER,
    "volumeattachments.storage.k8s.io": cluster.ATTACHMENT,
    "priorityclasses.scheduling.k8s.io": cluster.PRIORITY_CLASS,
    "runtimeclasses.node.k8s.io": cluster.RUNTIME_CLASS,
    "poddisruptionbudgets.policy": cluster.BUDGET,
    "leases.coordination.k8s.io": cluster.LEASE,
    "roles.rbac.authorization.k8s.io": access.CREATED_AT,
    "clusterroles.rbac.authorization.k8s.io": access.CREATED_AT,
    "rolebindings.rbac.authorization.k8s.io": access.BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": access.BINDING,
    "customresourcedefinitions.apiextensions.k8s.io": access.CREATED_AT,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": access.WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": access.WEBHOOKS,
}


def columns_of(kind: ServedKind) -> tuple[Column, ...]:
    """Return the columns of a kind."""
    if kind.custom is not None and kind.custom.columns:
        return (NAME, *map(_custom, kind.custom.columns))
    if kind.custom is not None:
        return (NAME, replace(AGE, type="date"))
    return COLUMNS.get(kind.storage, (NAME, AGE))


def _custom(printer: PrinterColumn) -> Column:
    def cell(obj: JsonObject, now: datetime) -> JsonValue:
        value = read(obj, printer.path)
        if printer.type == "date":
            return age(value, now) if value is not None else None
        if printer.type == "string" and value is not None:
            return str(value)
        return value

    path = f"Custom resource definition column (in JSONPath format): {printer.path}"
    description = printer.description or path
    return Column(printer.name, cell, printer.type, printer.format, printer.priority, description)


def table(
    kind: ServedKind, objects: Iterable[JsonObject], now: datetime, include: str
) -> JsonObject:
    """Return objects as a Table; `include` selects how much of each object a row has."""
    columns = columns_of(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [column.definition(kind.storage) for column in columns],
        "rows": [_row(columns, obj, now, include) | _conditions(kind, obj) for obj in objects]
        or _no_rows(kind),
    }


def _conditions(kind: ServedKind, obj: JsonObject) -> JsonObject:
    found = pods.pod_conditions(obj) if kind.storage == "pods" else []
    return {"conditions": found} if found else {}


def _no_rows(kind: ServedKind) -> list[JsonObject] | None:
    """Return an empty Table of a kind without own columns."""
    return None if COLUMNS.get(kind.storage) is access.CREATED_AT else []


def _row(columns: tuple[Column, ...], obj: JsonObject, now: datetime, include: str) -> JsonObject:
    row: JsonObject = {"cells": [_safe_cell(column, obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    else:
        row["object"] = None if include == "None" else partial(obj)
    return row


def _safe_cell(column: Column, obj: JsonObject, now: datetime) -> JsonValue:
    """Return a cell; an object of unexpected form must not break the table."""
    try:
        return column.cell(obj, now)
    except (AttributeError, KeyError, TypeError, ValueError):
        return "<unknown>"


def partial(obj: JsonObject, api_version: str = "meta.k8s.io/v1") -> JsonObject:
    """Return an object as PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": obj["metadata"],
    }
