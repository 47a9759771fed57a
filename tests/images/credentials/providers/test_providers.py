"""Plugins are run, believed for as long as they say, and passed over when they fail."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.images.credentials.keyring import Credential, ServiceAccountSource
from bayplan.images.credentials.providers.config import ProviderSettings
from bayplan.images.credentials.providers.provider import (
    CredentialPlugin,
    CredentialProvider,
    CredentialProviders,
    RequestingPod,
    ServiceAccountToken,
    TokenUnavailableError,
)
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.runtime.objects import PodIdentity
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.secrets import ServiceAccount
from tests.clocks import VirtualClock

V1 = "credentialprovider.kubelet.k8s.io/v1"
ASKER = RequestingPod(PodIdentity("web", "team", "uid-web"), "robot")
IMAGE = "registry.example/team/app:1"
TOKENS = {
    "serviceAccountTokenAudience": "registry",
    "requireServiceAccount": True,
    "cacheType": "ServiceAccount",
}
PROGRAM = """#!{python}
import json, os, sys
log = open({log!r}, "a")
request = json.load(sys.stdin)
log.write(json.dumps([sys.argv[1:], os.environ.get("HINT", ""), request]) + "\\n")
log.close()
answer = {answer!r}
token = request.get("serviceAccountToken", "")
print(json.dumps(answer).replace("TOKEN", token))
"""


@dataclass
class Accounts:
    """Service accounts by name, with numbered tokens."""

    annotations: dict[str, str] = field(default_factory=dict)
    given: list[tuple[str, str, str]] = field(default_factory=list)
    problem: str = ""

    async def service_account(self, namespace: str, name: str) -> ServiceAccount:
        meta = ObjectMeta(
            name=name, namespace=namespace, uid=f"uid-{name}", annotations=self.annotations
        )
        return ServiceAccount(metadata=meta)

    async def token(
        self, account: ServiceAccount, audience: str, pod: PodIdentity
    ) -> ServiceAccountToken:
        if self.problem:
            raise TokenUnavailableError(self.problem)
        self.given.append((account.key, audience, pod.uid))
        return ServiceAccountToken(f"t0ken-{len(self.given)}", 3600)


class PluginFixture:
    """A directory of plugins, and what they were asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "asked.log"
        self.clock = VirtualClock()
        self.accounts = Accounts()
        self.registry = CollectorRegistry()
        self._metrics = ImageMetrics(self.registry)

    def plugin(self, name: str = "plugin", text: str = "", **answer: Any) -> None:
        whole: dict[str, Any] = {
            "apiVersion": V1,
            "kind": "CredentialProviderResponse",
            "cacheKeyType": "Image",
        }
        whole |= {"auth": {"registry.example": {"username": "ann", "password": "s3cret"}}, **answer}
        program = text or PROGRAM.format(python=sys.executable, log=str(self.log), answer=whole)
        path = self.folder / name
        path.write_text(program)
        path.chmod(0o755)

    def providers(self, *names: str, impatient: str = "", **more: Any) -> CredentialProviders:
        settings = {
            "apiVersion": V1,
            "matchImages": ["registry.example", "*.registry.example"],
            "defaultCacheDuration": "10m",
            **more,
        }
        made: Iterable[ProviderSettings] = (
            msgspec.convert({"name": name, **settings}, ProviderSettings)
            for name in names or ("plugin",)
        )
        return CredentialProviders(
            [
                CredentialProvider(
                    CredentialPlugin(
                        one,
                        self.folder,
                        {"PATH": "/usr/bin:/bin"},
                        0.3 if one.name == impatient else 60.0,
                    ),
                    self.clock,
                    self.accounts,
                    self._metrics,
                )
                for one in made
            ]
        )

    def asked(self) -> list[Any]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines]

    def counted(self) -> str:
        return generate_latest(self.registry).decode()


@pytest.fixture
def plugins(tmp_path: Path) -> PluginFixture:
    return PluginFixture(tmp_path)


def users(found: list[Credential]) -> list[str]:
    return [one.auth.username for one in found]


async def test_a_plugin_is_told_the_repository_and_its_answer_is_used(
    plugins: PluginFixture,
) -> None:
    plugins.plugin()
    hint: dict[str, Any] = {"args": ["get", "--all"], "env": [{"name": "HINT", "value": "told"}]}
    (found,) = await plugins.providers(**hint).credentials(IMAGE, ASKER)
    assert (found.auth.username, found.auth.password, found.source) == ("ann", "s3cret", None)
    request = {"apiVersion": V1, "kind": "CredentialProviderRequest"}
    wanted = {**request, "image": "registry.example/team/app"}
    assert plugins.asked() == [[["get", "--all"], "told", wanted]]
    assert 'plugin_duration_count{plugin_name="plugin"} 1.0' in plugins.counted()


async def test_a_plugin_is_not_asked_about_images_of_others(plugins: PluginFixture) -> None:
    plugins.plugin()
    assert await plugins.providers().credentials("other.example/app", ASKER) == []
    assert plugins.asked() == []


@pytest.mark.parametrize(
    ("kind", "also_good_for"),
    [
        ("Image", {"registry.example/team/app:2"}),
        ("Registry", {"registry.example/team/app:2", "registry.example/other"}),
        (
            "Global",
            {"registry.example/team/app:2", "registry.example/other", "eu.registry.example/x"},
        ),
    ],
)
async def test_an_answer_is_good_for_what_it_says(
    plugins: PluginFixture, kind: str, also_good_for: set[str]
) -> None:
    plugins.plugin(cacheKeyType=kind)
    images = ["registry.example/team/app:2", "registry.example/other", "eu.registry.example/x"]
    for image in images:
        plugins.log.unlink(missing_ok=True)
        providers = plugins.providers()
        await providers.credentials(IMAGE, ASKER)
        await providers.credentials(image, ASKER)
        assert len(plugins.asked()) == (1 if image in also_good_for else 2)


@pytest.mark.parametrize(
    ("said", "seconds"), [({}, 600), ({"cacheDuration": "5m"}, 300), ({"cacheDuration": "0s"}, 0)]
)
async def test_an_answer_is_good_as_long_as_it_says(
    plugins: PluginFixture, said: dict[str, str], seconds: int
) -> None:
    plugins.plugin(**said)
    providers = plugins.providers()
    await providers.credentials(IMAGE, ASKER)
    await plugins.clock.advance(max(0, seconds - 1))
    await providers.credentials(IMAGE, ASKER)
    assert len(plugins.asked()) == (1 if seconds else 2)
    await plugins.clock.advance(2)
    await providers.credentials(IMAGE, ASKER)
    assert len(plugins.asked()) == (2 if seconds else 3)


async def test_who_asks_at_the_same_time_waits_for_one_answer(plugins: PluginFixture) -> None:
    plugins.plugin()
    providers = plugins.providers()
    await asyncio.gather(*(providers.credentials(IMAGE, ASKER) for _ in range(5)))
    assert len(plugins.asked()) == 1


BAD = {
    "missing": None,
    "garbage": "#!/bin/sh\necho s3cret is no JSON",
    "nothing": "#!/bin/sh\n",
    "failing": '#!/bin/sh\necho \'{"password": "s3cret"}\'\nexit 3\n',
    "endless": "#!/bin/sh\nexec yes s3cret\n",
    "hanging": "#!/bin/sh\nsleep 600 &\nsleep 600\n",
    "left-behind": "#!/bin/sh\nsleep 600 &\nexit 0\n",
}
BAD_ANSWERS: dict[str, dict[str, Any]] = {
    "other version": {"apiVersion": f"{V1}beta1"},
    "other kind": {"kind": "CredentialProviderRequest"},
    "no cache key": {"cacheKeyType": "Cluster"},
    "no duration": {"cacheDuration": "s3cret"},
    "unknown field": {"s3cret": 1},
    "no logins": {"auth": {"registry.example": "s3cret"}},
}


@pytest.mark.parametrize("kind", [*BAD, *BAD_ANSWERS])
async def test_a_plugin_that_fails_is_told_of_and_passed_over(
    plugins: PluginFixture, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    plugins.plugin("good")
    if kind in BAD_ANSWERS:
        plugins.plugin("bad", **BAD_ANSWERS[kind])
    elif text := BAD[kind]:
        plugins.plugin("bad", text)
    hurried = "bad" if kind in {"hanging", "left-behind"} else ""
    with caplog.at_level(logging.DEBUG):
        found = await plugins.providers("bad", "good", impatient=hurried).credentials(IMAGE, ASKER)
    assert users(found) == ["ann"]
    assert "credential provider bad: " in caplog.text
    assert "s3cret" not in caplog.text
    assert 'plugin_errors_total{plugin_name="bad"} 1.0' in plugins.counted()


async def test_a_failure_is_not_remembered(plugins: PluginFixture) -> None:
    plugins.plugin(text="#!/bin/sh\nexit 1\n")
    providers = plugins.providers()
    assert await providers.credentials(IMAGE, ASKER) == []
    plugins.plugin()
    assert users(await providers.credentials(IMAGE, ASKER)) == ["ann"]


async def test_all_that_fit_are_used_and_the_most_specific_comes_first(
    plugins: PluginFixture,
) -> None:
    login = {"username": "bob", "password": "x"}
    plugins.plugin("one")
    plugins.plugin("two", auth={"registry.example/team": login, "other.example": login})
    assert users(await plugins.providers("one", "two").credentials(IMAGE, ASKER)) == ["bob", "ann"]


async def test_a_plugin_with_tokens_is_asked_for_the_pods_account(plugins: PluginFixture) -> None:
    plugins.accounts.annotations = {"team/role": "reader", "team/note": "n", "other": "x"}
    keys = {
        "requiredServiceAccountAnnotationKeys": ["team/role"],
        "optionalServiceAccountAnnotationKeys": ["team/note", "team/absent"],
    }
    plugins.plugin()
    (found,) = await plugins.providers(tokenAttributes={**TOKENS, **keys}).credentials(IMAGE, ASKER)
    assert found.source == ServiceAccountSource("team", "robot", "uid-robot")
    request = plugins.asked()[0][2]
    assert request["serviceAccountToken"] == "t0ken-1"
    assert request["serviceAccountAnnotations"] == {"team/role": "reader", "team/note": "n"}
    assert plugins.accounts.given == [("team/robot", "registry", "uid-web")]


async def test_what_one_account_was_given_is_not_anothers(plugins: PluginFixture) -> None:
    plugins.plugin(cacheKeyType="Global")
    providers = plugins.providers(tokenAttributes=TOKENS)
    await providers.credentials(IMAGE, ASKER)
    same = RequestingPod(PodIdentity("other", "team", "uid-other"), "robot")
    await providers.credentials(IMAGE, same)
    assert len(plugins.asked()) == 1
    await providers.credentials(IMAGE, RequestingPod(same.pod, "another"))
    assert len(plugins.asked()) == 2
    plugins.accounts.annotations = {"a": "changed"}
    keyed = {**TOKENS, "optionalServiceAccountAnnotationKeys": ["a"]}
    await plugins.providers(tokenAttributes=keyed).credentials(IMAGE, ASKER)
    assert len(plugins.asked()) == 3


async def test_with_the_cache_type_token_an_answer_is_one_pods(plugins: PluginFixture) -> None:
    plugins.plugin(auth={"registry.example": {"username": "oauth", "password": "TOKEN"}})
    providers = plugins.providers(tokenAttributes={**TOKENS, "cacheType": "Token"})
    (first,) = await providers.credentials(IMAGE, ASKER)
    await providers.credentials(IMAGE, ASKER)
    assert first.auth.password == "t0ken-1"
    assert len(plugins.asked()) == 1
    other = RequestingPod(PodIdentity("other", "team", "uid-other"), "robot")
    (second,) = await providers.credentials(IMAGE, other)
    assert second.auth.password == "t0ken-2"


async def test_a_token_handed_through_is_not_kept_for_an_account(
    plugins: PluginFixture, caplog: pytest.LogCaptureFixture
) -> None:
    plugins.plugin(auth={"registry.example": {"username": "oauth", "password": "TOKEN"}})
    assert await plugins.providers(tokenAttributes=TOKENS).credentials(IMAGE, ASKER) == []
    assert "only cacheType Token may" in caplog.text
    assert "t0ken" not in caplog.text


async def test_without_an_account_it_depends_on_the_plugin(plugins: PluginFixture) -> None:
    plugins.plugin()
    nobody = RequestingPod(ASKER.pod)
    assert await plugins.providers(tokenAttributes=TOKENS).credentials(IMAGE, nobody) == []
    assert plugins.asked() == []
    lax = {**TOKENS, "requireServiceAccount": False}
    (found,) = await plugins.providers(tokenAttributes=lax).credentials(IMAGE, nobody)
    assert found.source is None
    assert "serviceAccountToken" not in plugins.asked()[0][2]


async def test_an_account_that_has_not_opted_in_is_passed_over_in_silence(
    plugins: PluginFixture, caplog: pytest.LogCaptureFixture
) -> None:
    plugins.plugin()
    wish = {**TOKENS, "requiredServiceAccountAnnotationKeys": ["team/role"]}
    assert await plugins.providers(tokenAttributes=wish).credentials(IMAGE, ASKER) == []
    assert plugins.asked() == []
    assert caplog.text == ""


async def test_a_token_that_cannot_be_had_leaves_the_others(
    plugins: PluginFixture, caplog: pytest.LogCaptureFixture
) -> None:
    plugins.plugin()
    plugins.accounts.problem = "the server does not give tokens"
    assert await plugins.providers(tokenAttributes=TOKENS).credentials(IMAGE, ASKER) == []
    assert "the server does not give tokens" in caplog.text
    assert plugins.asked() == []


async def test_a_token_is_used_for_most_of_its_time(plugins: PluginFixture) -> None:
    plugins.plugin(cacheDuration="0s")
    providers = plugins.providers(tokenAttributes=TOKENS)
    for wait, tokens in ((0, 1), (2800, 1), (200, 2)):
        await plugins.clock.advance(wait)
        await providers.credentials(IMAGE, ASKER)
        assert len(plugins.accounts.given) == tokens
