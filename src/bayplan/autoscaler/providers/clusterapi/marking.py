"""Marks on machines that are to go first when their set gets smaller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from bayplan.autoscaler.providers.clusterapi.failing import translated
from bayplan.autoscaler.providers.clusterapi.kinds import Machine
from bayplan.autoscaler.providers.clusterapi.words import OLD_DELETE_MARK, Words
from bayplan.client import Client, Resource, deletion, merge
from bayplan.client.errors import ClientError, ConflictError, NotFoundError
from bayplan.kube.times import timestamp
from bayplan.nodegroups import RefusedError

log = logging.getLogger(__name__)


class Marks:
    """Writes and takes back marks, each only on the very machine that is meant."""

    def __init__(self, client: Client, resource: Resource[Machine], words: Words) -> None:
        self._client = client
        self._resource = resource
        self._words = words

    async def mark(self, machines: Sequence[Machine]) -> None:
        """Mark all of them; if one cannot be marked, none is."""
        moment = timestamp(self._client.clock.now())
        try:
            for one in machines:
                with translated():
                    await self._write(one, moment)
        except ConflictError as error:
            await self.unmark(machines)
            raise RefusedError(str(error)) from error
        except BaseException:
            await asyncio.shield(self.unmark(machines))
            raise

    async def unmark(self, machines: Sequence[Machine]) -> None:
        """Take the marks back; one that cannot be taken back is only told."""
        for one in machines:
            try:
                await self._write(one, None)
            except NotFoundError:
                continue
            except ClientError as error:
                log.warning("machine %s stays marked for deletion: %s", one.key, error)

    async def delete(self, machine: Machine) -> None:
        """Delete a machine itself, so that its set makes another."""
        with translated():
            await self._client.delete(
                self._resource,
                machine.namespace,
                machine.name,
                options=deletion(uid=machine.metadata.uid),
            )

    async def _write(self, machine: Machine, moment: str | None) -> None:
        marks = dict.fromkeys((self._words.delete_mark, OLD_DELETE_MARK), moment)
        change = merge({"metadata": {"uid": machine.metadata.uid, "annotations": marks}})
        await self._client.patch(self._resource, machine.namespace, machine.name, change=change)
