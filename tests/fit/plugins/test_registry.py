"""One plugin, one file: what the registry knows, and that nobody else names a plugin."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import bayplan
from bayplan.fit import PluginSet, Snapshot, preemption
from bayplan.fit.plugins.plugin import SchedulerPlugin
from bayplan.fit.plugins.registry import BY_NAME, FILTERS, PLUGINS, is_same_node
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import ContainerImage, Node, Taint
from bayplan.kube.pods import Pod
from tests.builders import make_node, make_pod

SOURCE = Path(bayplan.__file__).parent
FOLDER = SOURCE / "fit" / "plugins"
NAMES = frozenset(BY_NAME) | {name for one in PLUGINS for name in one.other_names}
EXCEPT = {
    "recordings/privacy/wellknown.py",  # reasons of pods that a kubelet refuses
}


def module_of(plugin: SchedulerPlugin) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", plugin.name).lower()


def others() -> Iterator[Path]:
    for path in sorted(SOURCE.rglob("*.py")):
        if FOLDER not in path.parents and str(path.relative_to(SOURCE)) not in EXCEPT:
            yield path


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda one: one.name)
def test_each_plugin_is_a_module_or_folder_of_its_name(plugin: SchedulerPlugin) -> None:
    path = FOLDER / module_of(plugin)
    assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@pytest.mark.parametrize(
    "plugin",
    [one for one in (*PLUGINS, preemption.PLUGIN) if one.arguments],
    ids=lambda one: one.name,
)
def test_without_arguments_a_plugin_reads_the_defaults(plugin: SchedulerPlugin) -> None:
    assert plugin.arguments is not None
    compiled, warnings = plugin.arguments.read({}, "args")
    assert compiled == type(compiled)() == PluginSet().args_of(type(compiled))
    assert hash(compiled) == hash(type(compiled)())
    assert warnings == ()


def test_nobody_else_names_a_plugin() -> None:
    naming = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.value}"
        for path in others()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in NAMES
    ]
    assert naming == []


def test_nobody_else_imports_what_is_a_plugins_own() -> None:
    own = {f"bayplan.fit.plugins.{module_of(one)}" for one in PLUGINS}
    importing = [
        f"{path.relative_to(SOURCE)} {node.module}"
        for path in others()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and any(node.module == one or node.module.startswith(f"{one}.") for one in own)
    ]
    assert importing == []


def test_plugins_that_filter_say_what_may_help_and_which_fields_of_nodes_they_read() -> None:
    for plugin in PLUGINS:
        if plugin.filters:
            assert Node in plugin.hints
            assert plugin.node_fields or Pod in plugin.hints
        if plugin.default and plugin.filters and plugin.optional:
            assert plugin.name in FILTERS


def changes() -> dict[str, Node]:
    node = make_node("n").obj()
    meta, spec, status = node.metadata, node.spec, node.status
    image = ContainerImage(names=["a"], size_bytes=1)
    return {
        "metadata.labels": replace(node, metadata=replace(meta, labels={"a": "b"})),
        "spec.unschedulable": replace(node, spec=replace(spec, unschedulable=True)),
        "spec.taints": replace(
            node, spec=replace(spec, taints=[Taint(key="a", effect="NoSchedule")])
        ),
        "status.allocatable": replace(node, status=replace(status, allocatable={"cpu": "1"})),
        "status.declared_features": replace(node, status=replace(status, declared_features=["A"])),
        "status.images": replace(node, status=replace(status, images=[image])),
    }


@pytest.mark.parametrize("field", changes())
def test_a_change_of_what_a_plugin_reads_is_noticed(field: str) -> None:
    assert any(field in one.node_fields for one in PLUGINS)
    assert not is_same_node(make_node("n").obj(), changes()[field])


def test_a_heartbeat_changes_nothing() -> None:
    node = make_node("n").obj()
    beat = replace(node, metadata=replace(node.metadata, resource_version="2"))
    assert is_same_node(node, beat)
    snapshot = Snapshot([node, make_pod("p").obj()])
    before = snapshot.cluster.node_changes.end
    put(snapshot, beat)
    assert snapshot.cluster.node_changes.end == before
    put(snapshot, changes()["spec.unschedulable"])
    assert snapshot.cluster.node_changes.end > before


def put(snapshot: Snapshot, obj: KubeObject) -> None:
    snapshot.put(obj)
