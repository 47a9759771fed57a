"""The grpc expander leaves the choice to another process, and goes on without it if it must."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bayplan.autoscaler.estimate.options import ExpanderChoice, ExpanderRequest
from bayplan.autoscaler.expanders import (
    Chain,
    ExpanderContext,
    ExpanderError,
    check_expanders,
    parse_expanders,
)
from bayplan.autoscaler.expanders.chain import open_remote
from bayplan.autoscaler.expanders.grpcplugin.answers import (
    MAX_CALLS,
    AnswerNeededError,
    BestOptions,
    BestOptionsCall,
)
from bayplan.autoscaler.expanders.grpcplugin.client import GrpcExpander, RemoteExpander
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaleup.orchestrator import NONE_CHOSEN, decide
from bayplan.fit import Snapshot
from bayplan.nodegroups.externalgrpc.convert import read_node, read_pod
from tests.autoscaler.cluster_views import group, plain_template, view
from tests.autoscaler.expanders.grpc_program import FAILS, HANGS, Choose, Program, program
from tests.autoscaler.expanders.requests import machine, names, pods, request
from tests.builders import make_pod

SMALL, LARGE, LEAN = machine("small"), machine("large", "16", "64Gi"), machine("lean", "8", "8Gi")


def asked() -> ExpanderRequest:
    """Nine pods of two cpus and two GiB."""
    return request([SMALL, LARGE, LEAN], [pod.obj() for pod in pods(9, "2", "2Gi")])


def chain(expanders: str, remote: RemoteExpander | None, seed: int = 1) -> Chain:
    context = ExpanderContext(random.Random(seed), remote=remote)
    return Chain(parse_expanders(expanders), context)


async def chosen(expanders: str, remote: RemoteExpander) -> ExpanderChoice:
    found, options = chain(expanders, remote), asked()
    return await found.settle(lambda: found.choose(options))


@asynccontextmanager
async def connected(choose: Choose, folder: Path) -> AsyncIterator[tuple[Program, GrpcExpander]]:
    async with program(choose, folder) as served, GrpcExpander(served.config) as remote:
        yield served, remote


async def test_the_program_chooses(tmp_path: Path) -> None:
    async with connected(lambda _: ["small"], tmp_path) as (_, remote):
        choice = await chosen("grpc", remote)
        assert (names(choice), choice.notes) == (["small"], ())


async def test_the_next_expander_chooses_among_those_that_the_program_kept(tmp_path: Path) -> None:
    async with connected(lambda _: ["large", "small"], tmp_path) as (_, remote):
        assert names(await chosen("grpc,least-nodes", remote)) == ["large"]
        assert names(await chosen("grpc,least-waste", remote)) == ["small"]


async def test_the_program_chooses_among_those_that_are_left_to_it(tmp_path: Path) -> None:
    async with connected(lambda groups: groups, tmp_path) as (served, remote):
        assert names(await chosen("least-nodes,grpc", remote)) == ["large"]
        assert [[one.nodeGroupId for one in call.options] for call in served.calls] == [["large"]]


async def test_it_receives_options_pods_and_template_nodes(tmp_path: Path) -> None:
    wide = (
        make_pod("wide").uid("wide").labels(app="shop").cpu("12").memory("1Gi").node_selector(a="b")
    )
    labelled = replace(LARGE, group=replace(LARGE.group, debug="large (0:50)"))
    assert labelled.template is not None
    labelled.template.node.metadata.labels["a"] = "b"
    options = request([labelled], [wide.toleration("gpu").priority(7).obj()])
    async with connected(lambda groups: groups, tmp_path) as (served, remote):
        found = chain("grpc", remote)
        await found.settle(lambda: found.choose(options))
        (call,) = served.calls
        (option,) = call.options
        assert (option.nodeGroupId, option.nodeCount, option.debug) == ("large", 1, "large (0:50)")
        assert list(option.pod) == list(option.podBytes)
        assert dict(call.nodeMap) == dict(call.nodeBytesMap)
        pod, node = read_pod(option.podBytes[0]), read_node(call.nodeBytesMap["large"])
        assert (pod.name, pod.metadata.labels, pod.spec.priority) == ("wide", {"app": "shop"}, 7)
        assert pod.spec.containers[0].resources.requests["cpu"] == "12"
        assert pod.spec.node_selector == {"a": "b"}
        assert [one.key for one in pod.spec.tolerations] == ["gpu"]
        assert str(node.status.capacity["cpu"]) == "16"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([FAILS], "the grpc expander failed: internal: out of order"),
        (["unheard-of"], "the grpc expander returned no known node group but 'unheard-of'"),
    ],
)
async def test_without_a_usable_answer_the_next_expander_has_all(
    answer: list[str], problem: str, tmp_path: Path
) -> None:
    async with connected(lambda _: answer, tmp_path) as (_, remote):
        choice = await chosen("grpc,least-nodes", remote)
        assert names(choice) == ["large"]
        assert [one.message for one in choice.notes] == [problem]


async def test_groups_that_are_not_options_are_ignored_beside_one_that_is(tmp_path: Path) -> None:
    async with connected(lambda _: ["unheard-of", "lean"], tmp_path) as (_, remote):
        assert names(await chosen("grpc,least-nodes", remote)) == ["lean"]


async def test_a_program_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    async with (
        program(lambda _: [HANGS], tmp_path) as served,
        GrpcExpander(replace(served.config, timeout=0.3)) as remote,
    ):
        choice = await chosen("grpc,least-nodes", remote)
        assert names(choice) == ["large"]
        assert "deadline exceeded" in choice.notes[0].message


async def test_requests_have_a_largest_size(tmp_path: Path) -> None:
    async with (
        program(lambda groups: groups, tmp_path) as served,
        GrpcExpander(replace(served.config, max_message=500)) as remote,
    ):
        choice = await chosen("grpc,least-nodes", remote)
        assert names(choice) == ["large"]
        assert "at most 500 are sent" in choice.notes[0].message
        assert not served.calls


async def test_a_program_with_another_certificate_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with (
        program(lambda _: ["small"], tmp_path) as served,
        program(lambda _: ["small"], tmp_path / "other") as other,
        GrpcExpander(replace(served.config, certificate=other.config.certificate)) as remote,
    ):
        choice = await chosen("grpc,least-nodes", remote)
        assert names(choice) == ["large"]
        assert "unavailable" in choice.notes[0].message
        assert not served.calls


async def test_a_program_that_chooses_none_stops_the_scale_up(tmp_path: Path) -> None:
    waiting = [make_pod(f"p-{n}").uid(f"p-{n}").cpu("2").obj() for n in range(3)]
    cluster = view(Snapshot(), waiting, group("a"), group("b"), balance_similar_node_groups=True)
    async with connected(lambda _: [], tmp_path) as (_, remote):
        found = chain("grpc,cheapest-mix", remote)
        decision = await found.settle(lambda: decide(cluster, found))
    assert not decision.new_nodes
    assert {one.refused for one in decision.considered} == {NONE_CHOSEN}
    assert [dict(one.by_group) for one in decision.unschedulable] == [
        {"a": (NONE_CHOSEN,), "b": (NONE_CHOSEN,)}
    ] * 3
    assert [one.reason for one in decision.notes] == ["GrpcExpanderChoseNone"]


class Recorded:
    """Another process that answers at once, and how often it was called."""

    def __init__(self, answer: BestOptions | None = None) -> None:
        self.calls: list[BestOptionsCall] = []
        self._answer = answer

    async def best_options(self, call: BestOptionsCall) -> BestOptions:
        self.calls.append(call)
        return self._answer or BestOptions(frozenset(one.group for one in call.options[:1]))


async def test_every_round_of_a_decision_is_asked_about_once() -> None:
    waiting = [make_pod(f"p-{n}").uid(f"p-{n}").cpu("2").obj() for n in range(6)]
    snapshot = Snapshot()
    cluster = view(snapshot, waiting, group("a", most=1), group("b", most=1), group("c", most=1))
    remote = Recorded()
    found = chain("grpc", remote)
    decision = await found.settle(lambda: decide(cluster, found))
    assert [one.view.id for one in decision.new_nodes] == ["a", "b", "c"]
    groups = [[one.group for one in call.options] for call in remote.calls]
    assert groups == [["a", "b", "c"], ["b", "c"], ["c"]]
    assert not list(snapshot.objects())


async def test_the_same_chance_decides_when_a_decision_is_made_again() -> None:
    waiting = [make_pod(f"p-{n}").uid(f"p-{n}").cpu("2").obj() for n in range(8)]
    views = [group(f"g{n}", plain_template(), most=1) for n in range(6)]
    for seed in range(20):
        remote = Recorded(BestOptions(frozenset(one.id for one in views)))
        found = chain("grpc", remote, seed)
        cluster = view(Snapshot(), waiting, *views)
        decision = await found.settle(lambda: decide(cluster, found))  # noqa: B023
        assert len(remote.calls) == len(decision.new_nodes) == 4


async def test_a_program_that_failed_is_not_called_again_in_the_same_loop() -> None:
    waiting = [make_pod(f"p-{n}").uid(f"p-{n}").cpu("4").obj() for n in range(3)]
    cluster = view(Snapshot(), waiting, group("a", most=1), group("b", most=1), group("c", most=1))
    remote = Recorded(BestOptions(failure="it failed"))
    found = chain("grpc,most-pods", remote)
    decision = await found.settle(lambda: decide(cluster, found))
    assert (len(decision.new_nodes), len(remote.calls)) == (3, 1)
    assert [one.message for one in decision.notes] == ["it failed"]


async def test_the_calls_of_one_loop_are_limited() -> None:
    count = MAX_CALLS + 3
    waiting = [make_pod(f"p-{n:02}").uid(f"p-{n:02}").cpu("4").obj() for n in range(count)]
    cluster = view(Snapshot(), waiting, *[group(f"g{n:02}", most=1) for n in range(count)])
    remote = Recorded()
    found = chain("grpc", remote)
    decision = await found.settle(lambda: decide(cluster, found))
    assert (len(decision.new_nodes), len(remote.calls)) == (count, MAX_CALLS)


def test_without_a_program_nothing_can_be_chosen() -> None:
    with pytest.raises(AnswerNeededError, match="has not chosen among 3 options"):
        chain("grpc", None).choose(asked())


@pytest.mark.parametrize(
    ("url", "cert", "problem"),
    [
        ("", "x", "needs --grpc-expander-url"),
        ("127.0.0.1:1", "", "needs --grpc-expander-cert: it is called over TLS only"),
        ("127.0.0.1:1", "empty.crt", "the file has no certificate"),
    ],
)
def test_it_needs_an_address_and_a_certificate(
    url: str, cert: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.crt").write_text("nothing")
    options = AutoscalerOptions(expander="grpc", grpc_expander_url=url, grpc_expander_cert=cert)
    with pytest.raises(ExpanderError, match=problem):
        check_expanders(options)
    assert check_expanders(AutoscalerOptions(grpc_expander_cert=cert)) == ("least-waste",)


async def test_the_program_is_connected_only_if_it_is_an_expander(tmp_path: Path) -> None:
    async with program(lambda _: ["small"], tmp_path) as served:
        options = AutoscalerOptions(
            expander="grpc,least-waste",
            grpc_expander_url=f"127.0.0.1:{served.port}",
            grpc_expander_cert=str(served.certificate),
        )
        async with open_remote(options) as remote:
            assert remote is not None
            assert names(await chosen(options.expander, remote)) == ["small"]
        async with open_remote(replace(options, expander="price")) as remote:
            assert remote is None
