"""The webhook as an ASGI application: reviews in, reviews out, whatever is sent.

What can be read as a review is answered by one, refusals and objects that make no sense included.
What cannot be read gets a plain sentence and a status that says whose fault it is: never a 500.

The rules need the queues there are. Until those are known, questions that hang on them wait a
little, and then are told to come back (503): what that means is for the failure policy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, TypeAlias

from bayplan.admission.bodies import JSON, Bodies, Receive, Refused, Reply
from bayplan.admission.metrics import AdmissionMetrics
from bayplan.admission.review import Fault, Question, ReviewError, Verdict, answer, read_question
from bayplan.admission.rules import NEED_QUEUES, AdmissionRules

Send: TypeAlias = Callable[[Any], Awaitable[None]]

QUEUES_SECONDS = 2.0

log = logging.getLogger(__name__)


class AdmissionApp:
    """Answers reviews."""

    def __init__(self, rules: AdmissionRules, metrics: AdmissionMetrics) -> None:
        self._rules = rules.by_path
        self._metrics = metrics
        self._bodies = Bodies()
        self.knows_queues = asyncio.Event()
        """Set once the rules' book has all queues."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        began = perf_counter()
        try:
            reply = await self._answer(scope, receive)
        except Refused as refused:
            reply = refused.reply
        path = scope["path"] if scope["path"] in self._rules else "other"
        self._metrics.answered(path, reply.status, perf_counter() - began)
        await _send(reply, send)

    async def _answer(self, scope: dict[str, Any], receive: Receive) -> Reply:
        path = scope["path"]
        if path not in self._rules:
            raise Refused(404, "reviews are answered at " + ", ".join(self._rules))
        if scope["method"] != "POST":
            raise Refused(405, "reviews are sent by POST")
        body = await self._bodies.read(scope, receive)
        try:
            question = read_question(body)
        except ReviewError as error:
            raise Refused(400, str(error)) from None
        await self._queues_known(path)
        verdict = self._judge(path, question)
        self._metrics.judged(path, question.operation, verdict)
        return Reply(200, answer(question, verdict), JSON)

    async def _queues_known(self, path: str) -> None:
        if path in NEED_QUEUES and not self.knows_queues.is_set():
            try:
                async with asyncio.timeout(QUEUES_SECONDS):
                    await self.knows_queues.wait()
            except TimeoutError:
                raise Refused(503, "the queues are not known yet") from None

    def _judge(self, path: str, question: Question) -> Verdict:
        try:
            verdict = self._rules[path](question)
        except ReviewError as error:
            verdict = Verdict((Fault("", str(error)),))
        except Exception:
            log.exception("%s: no answer to review %s", path, question.uid)
            raise Refused(503, "the review could not be judged; the log says why") from None
        if not verdict.allowed:
            what = f"{question.operation} {question.namespace}/{question.name}"
            log.info("%s: %s refused: %s", path, what, "; ".join(map(str, verdict.faults)))
        return verdict


async def _send(reply: Reply, send: Send) -> None:
    headers = [
        (b"content-type", reply.kind),
        (b"content-length", str(len(reply.body)).encode()),
    ]
    if reply.status in {408, 413}:
        headers.append((b"connection", b"close"))  # what is left of the body is nobody's
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
