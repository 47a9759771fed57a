"""Asking webhooks: those that mutate one after the other, those that validate all at once."""

from __future__ import annotations

import asyncio
import logging

from bayplan.embedded.apiserver.admission.webhooks.matching import Configurations, Hook
from bayplan.embedded.apiserver.admission.webhooks.posting import CallFailed, Poster, ask
from bayplan.embedded.apiserver.admission.webhooks.review import (
    BadReview,
    Verdict,
    answer,
    question,
)
from bayplan.embedded.apiserver.errors import ApiError, bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.kinds.views import to_kept, to_shown
from bayplan.embedded.apiserver.patch.jsonpatch import PatchError, apply_json_patch
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest
from bayplan.embedded.apiserver.rest.conforming import conform
from bayplan.embedded.apiserver.rest.metadata import new_uid
from bayplan.embedded.apiserver.strategies.table import strategy_of

log = logging.getLogger(__name__)

_GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{_GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{_GROUP}"


class Webhooks:
    """The webhooks of one server."""

    def __init__(self, backend: Backend, poster: Poster) -> None:
        self._backend = backend
        self._poster = poster
        self._mutating = Configurations(backend, MUTATING)
        self._validating = Configurations(backend, VALIDATING)

    async def close(self) -> None:
        """Let go of all connections."""
        await self._poster.close()

    async def mutate(self, request: AdmissionRequest) -> None:
        """Ask mutating webhooks in order; those that wish are asked again after later changes."""
        hooks = self._mutating.matching(request)
        if not hooks:
            return
        again: list[Hook] = []
        asked: list[Hook] = []
        for hook in hooks:
            if await self._mutate(request, hook):
                again += [one for one in asked if _wants_again(one) and one not in again]
            asked.append(hook)
        for hook in again:
            await self._mutate(request, hook)

    async def validate(self, request: AdmissionRequest) -> None:
        """Ask validating webhooks all at once; the first refusal counts."""
        hooks = self._validating.matching(request)
        if not hooks:
            return
        verdicts = await asyncio.gather(*(self._ask(request, hook) for hook in hooks))
        for hook, verdict in zip(hooks, verdicts, strict=True):
            _accept(request, hook, verdict)

    async def _mutate(self, request: AdmissionRequest, hook: Hook) -> bool:
        """Ask one webhook and carry out its patch; says whether the object changed."""
        verdict = await self._ask(request, hook)
        _accept(request, hook, verdict)
        if verdict is None or not verdict.patch or request.object is None:
            return False
        before = request.object
        request.object = _patched(request, hook, verdict)
        return request.object != before

    async def _ask(self, request: AdmissionRequest, hook: Hook) -> Verdict | None:
        """A webhook's verdict; None if it could not be asked and that does not matter."""
        if request.call.dry_run and hook.hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        uid = new_uid(self._backend.rng)
        try:
            review = await ask(self._poster, hook.hook, question(request, hook, uid))
            return answer(review, uid)
        except (CallFailed, BadReview) as problem:
            if hook.hook.get("failurePolicy") == "Ignore":
                log.warning("webhook %s failed and is ignored: %s", hook.name, problem)
                return None
            raise _failed(hook, problem) from problem


def _wants_again(hook: Hook) -> bool:
    return hook.hook.get("reinvocationPolicy") == "IfNeeded"


def _failed(hook: Hook, problem: Exception) -> ApiError:
    message = (
        f'Internal error occurred: failed calling webhook "{hook.name}": '
        f"failed to call webhook: {problem}"
    )
    return ApiError(500, "InternalError", message, {"causes": [{"message": message}]})


def _accept(request: AdmissionRequest, hook: Hook, verdict: Verdict | None) -> None:
    if verdict is None:
        return
    for warning in verdict.warnings:
        request.call.warn(warning)
    if not verdict.allowed:
        message = f'admission webhook "{hook.name}" denied the request'
        told = f": {verdict.message}" if verdict.message else " without explanation"
        raise ApiError(verdict.code, verdict.reason, message + told)


def _patched(request: AdmissionRequest, hook: Hook, verdict: Verdict) -> JsonObject:
    shown = to_shown(hook.kind, clone(request.object))
    try:
        patched = apply_json_patch(shown, verdict.patch)
    except (PatchError, RecursionError) as problem:
        raise _failed(hook, problem) from problem
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise _failed(hook, PatchError("the patch does not leave an object with metadata"))
    kept = to_kept(hook.kind, patched)
    if request.call.kind is hook.kind:
        conform(request.call, kept)
    strategy_of(hook.kind.storage).default(kept)
    return kept
