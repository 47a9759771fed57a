"""A dump, plain or under other names, gives the answers of the cluster that it is of."""

from __future__ import annotations

import io
import json
import random
import re
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.cli.main import run
from bayplan.fit import Profile, Snapshot
from bayplan.fit.explanation.cause import list_pending_pods
from bayplan.kube.codec import encode
from bayplan.kube.manifests import load
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.recordings.privacy import Pseudonyms
from bayplan.reports.explain import explanation_data
from bayplan.reports.judgement import RulesComparison
from bayplan.reports.pending import EquivalentPods, explain_pods
from tests.builders import make_node, make_pod_group, make_queue
from tests.fit.random_clusters import random_object, random_pod

pytestmark = pytest.mark.whole


EXPLAIN = ("explain", "--all-pending", "--no-fixes")
CYCLE = ("queues", "--next")
PLAN = ("plan",)
FACTS: tuple[tuple[str, ...], ...] = (("volumes",), ("queues",))
"""Commands that decide nothing, so that no name does."""
LIST = re.compile(r"[\w./=-]+(?: \d+)?(?:, [\w./=-]+(?: \d+)?)+")
"""Names in a text, with their numbers if any, one after another."""
BY_NAME = frozenset({"fullest", "judged"})
"""Where one is told of several that are equal, and names decide which."""
OF_ONE_THAT_FITS = frozenset({"node", "placed", "message", "why"})
SALT = "pepper"
ADDRESS = re.compile(r"\b(?:\d+\.){3}\d+\b")
ELSEWHERE = re.compile(r"(?:on|to) node \S+?(?: instead)?(?=\.)")
WORD = re.compile(r"[A-Za-z0-9]+")
SECRET = "plantedsecret"


def random_cluster(seed: int) -> list[KubeObject]:
    """A random cluster of objects that are each there once; pods came one after another."""
    rng = random.Random(seed)
    drawn: list[KubeObject] = [make_node("n0").capacity(cpu="4", memory="8Gi", pods=10).obj()]
    drawn += [random_object(rng) for _ in range(rng.randrange(10, 60))]
    drawn += [random_pod(rng) for _ in range(rng.randrange(8))]
    drawn += [
        make_queue("research").capability(cpu=str(rng.randrange(1, 4))).obj(),
        make_pod_group("gang").queue("research").min_member(2).obj(),
    ]
    found = list({(type(one), one.key): one for one in drawn}.values())
    for number, one in enumerate(one for one in found if isinstance(one, Pod)):
        one.metadata.creation_timestamp = f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}Z"
        one.metadata.annotations["example.com/note"] = SECRET
        if rng.random() < 0.3:
            one.metadata.annotations["scheduling.k8s.io/group-name"] = "gang"
    return found


def answer(words: tuple[str, ...], path: Path) -> tuple[int, str]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = run([*words, "-o", "json", "-f", str(path)])
    return code, out.getvalue()


def dumped(source: Path, target: Path, *words: str) -> bytes:
    with redirect_stderr(io.StringIO()):
        assert run(["dump", "-f", str(source), "--to", str(target), *words]) == 0
    return target.read_bytes()


def sorted_all(value: Any) -> Any:
    """The value with all its lists, in texts too, in an order that does not depend on names."""
    if isinstance(value, dict):
        return {key: sorted_all(one) for key, one in sorted(value.items()) if key not in BY_NAME}
    if isinstance(value, list):  # of equal things, names decide which is first
        return sorted((sorted_all(one) for one in value), key=json.dumps)
    if isinstance(value, str):
        return LIST.sub(lambda found: ", ".join(sorted(found[0].split(", "))), value)
    return value


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1 << 32))
@example(46)  # a cycle has equally good nodes
@example(17156)  # where one pending pod goes, another is refused for something else
@example(100026)  # a text names several nodes
@example(300045)  # victims cost the same on two nodes
@example(300059)  # other rules choose among equally good nodes
@example(700108)  # a pod leaves a node that is gone
@example(100881)  # whether a pending pod fits rests on where another goes
def test_a_dump_answers_as_the_cluster_does_and_under_other_names_alike(seed: int) -> None:
    objects = random_cluster(seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, plain, hidden = (Path(folder, f"{one}.json") for one in ("whole", "plain", "hidden"))
        items = b",".join(encode(one) for one in objects)
        whole.write_bytes(b'{"apiVersion":"v1","kind":"List","items":[' + items + b"]}")
        told = dumped(whole, plain)
        other = dumped(whole, hidden, "--anonymise", "--salt", SALT)
        assert SECRET.encode() not in told + other
        real = real_names(whole.read_text())
        assert_hidden(objects, other.decode())
        for command in (EXPLAIN, *FACTS, CYCLE, PLAN):
            assert answer(command, plain) == answer(command, whole)
        for command in FACTS:
            (code, said), (expected, real_said) = answer(command, hidden), answer(command, whole)
            assert (code, facts(under(real, said))) == (expected, facts(real_said))
        assert_only_renamed(plain, hidden, real)
        assert cycle(hidden, real) == cycle(whole, {})
        assert_planned_alike(hidden, whole, real)
        assert facts(under(real, each(hidden))) == facts(each(whole))


def real_names(text: str) -> dict[str, str]:
    """By pseudonym the word of the text that it stands for."""
    names = Pseudonyms(SALT.encode())
    words = {one for one in WORD.findall(text) if names.word(one) != one}
    return {names.word(one): one for one in words}


def under(real: dict[str, str], text: str) -> str:
    """The text with the names that pseudonyms stand for."""
    return WORD.sub(lambda found: real.get(found[0], found[0]), text)


def each(path: Path) -> str:
    """Every pod that waits, explained as if it were the only one: where it would go of equal nodes
    is decided by a hash of their names, and must not decide about the others.
    """
    snapshot = Snapshot.of(load(path), profile=Profile().by_scheduler())
    bench = RulesComparison(snapshot, None, Profile().plugins)
    told = []
    for pod in list_pending_pods(snapshot):
        (found,) = explain_pods(snapshot, [pod], bench, with_fixes=False)
        unsure = OF_ONE_THAT_FITS if found.fits else frozenset()
        data = {key: one for key, one in explanation_data(found).items() if key not in unsure}
        data["rules"] = [found.judged.scheduler, found.judged.rules]
        told.append({**data, "notes": notes(found), "preemption": preemption(snapshot, found)})
    return json.dumps(told)


def notes(found: EquivalentPods) -> list[str]:
    """What else is said of a pod, but where it goes."""
    kept = (one for one in found.judged.notes if not (found.fits and ELSEWHERE.search(one)))
    return [ELSEWHERE.sub("on a node", one) for one in kept]


def preemption(snapshot: Snapshot, found: EquivalentPods) -> Any:
    """What it costs to make room for a pod: of nodes where that is the same, the first by name is
    taken.
    """
    chosen = found.explanation.preemption
    if chosen is None:
        return None
    victims = sorted(snapshot.priority(pod) for pod in chosen.victims)
    return victims, chosen.budgets_broken, chosen.message


def facts(said: str) -> Any:
    """An answer in which names only order what is told."""
    return sorted_all(json.loads(said or "{}"))


def assert_only_renamed(plain: Path, hidden: Path, real: dict[str, str]) -> None:
    """With the names put back, the hidden dump is the plain one: so all that is decided of the two
    differs by names at most.
    """
    back = hidden.with_name("back.json")
    text = under(real, hidden.read_text())
    for one in set(ADDRESS.findall(plain.read_text())):
        text = text.replace(Pseudonyms(SALT.encode()).address(one), one)
    back.write_text(text)
    assert by_key(back) == by_key(plain)


def by_key(path: Path) -> dict[tuple[str, str], KubeObject]:
    """The objects of a dump."""
    return {(type(one).__name__, one.key): one for one in load(path).objects}


def cycle(path: Path, real: dict[str, str]) -> Any:
    """What of a cycle does not depend on names: a hash of these chooses among nodes that are
    equally good, and where one pod goes may decide about the next.
    """
    found = facts(under(real, answer(CYCLE, path)[1]))
    if not found:
        return found
    moved = [*found["placed"], *found["pipelined"], *found["evicted"]]
    if len(moved) > 1:
        return {key: found[key] for key in ("admitted", "ungated")}
    for one in moved:
        del one["node"]
    return found


def assert_planned_alike(hidden: Path, whole: Path, real: dict[str, str]) -> None:
    """A plan helps every pod alike if it is the only one that waits. Of several, a hash of nodes'
    names decides who goes where; why a pod waits that no node would take anyway is the same.
    """
    one, other = alone(hidden, real), alone(whole, {})
    assert one == other
    causes, expected = pending(hidden, real), pending(whole, {})
    for pod in causes.keys() & expected.keys():
        if not other[pod]["fits"]:
            assert causes[pod] == expected[pod]


def alone(path: Path, real: dict[str, str]) -> dict[str, Any]:
    """By pod that waits, what is planned if no other one does."""
    dump = json.loads(path.read_text())
    waiting = [one for one in dump["items"] if waits(one)]
    there = [one for one in dump["items"] if not waits(one)]
    found: dict[str, Any] = {}
    for pod in waiting:
        target = path.with_name("alone.json")
        target.write_text(json.dumps({**dump, "items": [*there, pod]}))
        plan = json.loads(under(real, answer(PLAN, target)[1]) or "{}")
        metadata = pod["metadata"]
        key = under(real, f"{metadata['namespace']}/{metadata['name']}")
        found[key] = {
            "add": (plan["nodesToAdd"], plan["nodesToAddBlindToVolumes"]),
            "fits": bool(plan["fits"]),
            "cause": next(((one["cause"], one["driver"]) for one in plan["pending"]), None),
        }
    return found


def waits(item: dict[str, Any]) -> bool:
    return item["kind"] == "Pod" and not item["spec"].get("nodeName")


def pending(path: Path, real: dict[str, str]) -> dict[str, tuple[str, str]]:
    """By pod that no node has room for, why."""
    plan = json.loads(under(real, answer(PLAN, path)[1]) or '{"pending": []}')
    return {one["pod"]: (one["cause"], one["driver"]) for one in plan["pending"]}


def assert_hidden(objects: list[KubeObject], text: str) -> None:
    """Nobody's name is a word of the text."""
    said = set(WORD.findall(text))
    made_up = {one.name for one in objects if isinstance(one, Pod | Node)} | {"research", "gang"}
    made_up |= {"other", "fast", "slow"}
    assert not made_up & said
