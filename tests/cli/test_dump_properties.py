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

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cli.explain_data import as_data
from bayplan.cli.main import run
from bayplan.cli.pending import explain_all
from bayplan.cli.whose import Bench
from bayplan.fit import Profile, Snapshot
from bayplan.fit.explanation.waiting import waiting_pods
from bayplan.kube.codec import encode
from bayplan.kube.loading import load
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.sharing import Pseudonyms
from tests.builders import make_node, make_pod_group, make_queue
from tests.fit.worlds import random_object, random_pod

COMMANDS = (
    ("explain", "--all-pending", "--no-fixes"),
    ("volumes",),
    ("queues",),
    ("queues", "--next"),
    ("plan",),
)
BY_NAME = frozenset({"fullest", "other"})
"""Where one is told of several that are equal, and names decide which."""
OF_ONE_THAT_FITS = frozenset({"node", "placed", "message", "why"})
SALT = "pepper"
WORD = re.compile(r"[A-Za-z0-9]+")
SECRET = "plantedsecret"


def world(seed: int) -> list[KubeObject]:
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
    """The value with all its lists in an order that does not depend on names."""
    if isinstance(value, dict):
        return {key: sorted_all(one) for key, one in sorted(value.items()) if key not in BY_NAME}
    if isinstance(value, list):  # of equal things, names decide which is first
        return sorted((sorted_all(one) for one in value), key=json.dumps)
    return value


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_dump_answers_as_the_cluster_does_and_under_other_names_alike(seed: int) -> None:
    objects = world(seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, plain, hidden = (Path(folder, f"{one}.json") for one in ("whole", "plain", "hidden"))
        items = b",".join(encode(one) for one in objects)
        whole.write_bytes(b'{"apiVersion":"v1","kind":"List","items":[' + items + b"]}")
        told = dumped(whole, plain)
        other = dumped(whole, hidden, "--anonymise", "--salt", SALT)
        assert SECRET.encode() not in told + other
        names = Pseudonyms(SALT.encode())
        words = {one for one in WORD.findall(whole.read_text()) if names.word(one) != one}
        real = {names.word(one): one for one in words}
        assert_hidden(objects, other.decode())
        for command in COMMANDS:
            expected = answer(command, whole)
            assert answer(command, plain) == expected
            if command[0] != "explain":
                code, said = answer(command, hidden)
                assert code == expected[0]
                assert essence(command, under(real, said)) == essence(command, expected[1])
        assert sorted_all(json.loads(under(real, each(hidden)))) == sorted_all(
            json.loads(each(whole))
        )


def under(real: dict[str, str], text: str) -> str:
    """The text with the names that pseudonyms stand for."""
    return WORD.sub(lambda found: real.get(found[0], found[0]), text)


def each(path: Path) -> str:
    """Every pod that waits, explained as if it were the only one: where it would go of equal nodes
    is decided by a hash of their names, and must not decide about the others.
    """
    snapshot = Snapshot.of(load(path), profile=Profile().by_scheduler())
    bench = Bench(snapshot, None, Profile().plugins)
    told = []
    for pod in waiting_pods(snapshot):
        (found,) = explain_all(snapshot, [pod], bench, with_fixes=False)
        unsure = OF_ONE_THAT_FITS if found.fits else frozenset()
        told.append({key: one for key, one in as_data(found).items() if key not in unsure})
    return json.dumps(told)


def essence(command: tuple[str, ...], said: str) -> Any:
    """What of an answer does not depend on names: a plan takes the first by name of equal nodes."""
    found = json.loads(said or "{}")
    if command == ("plan",) and found:
        found = {
            "add": (found["nodesToAdd"], found["nodesToAddBlindToVolumes"]),
            "fits": list(found["fits"]),
            "pending": [(one["pod"], one["cause"], one["driver"]) for one in found["pending"]],
        }
    return sorted_all(found)


def assert_hidden(objects: list[KubeObject], text: str) -> None:
    """Nobody's name is a word of the text."""
    said = set(WORD.findall(text))
    made_up = {one.name for one in objects if isinstance(one, Pod | Node)} | {"research", "gang"}
    made_up |= {"other", "fast", "slow"}
    assert not made_up & said
