"""As much of the runtime service as image clients call."""

from importlib.metadata import version

import msgspec

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.settings import Settings


class Runtime:
    """Says who answers and which handlers there are; it runs no containers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def version(self, _request: cri.VersionRequest) -> cri.VersionResponse:
        """Introduce ourselves."""
        return cri.VersionResponse(
            version="0.1.0",
            runtime_name="bayplan",
            runtime_version=version("bayplan"),
            runtime_api_version="v1",
        )

    async def status(self, request: cri.StatusRequest) -> cri.StatusResponse:
        """Say that images can be had, and for which handlers; the empty name is the default."""
        ready = [
            cri.RuntimeCondition(type="RuntimeReady", status=True),
            cri.RuntimeCondition(
                type="NetworkReady",
                status=False,
                reason="ImagesOnly",
                message="this service holds images and runs no containers",
            ),
        ]
        names = ["", *self._settings.handlers.names()]
        return cri.StatusResponse(
            status=cri.RuntimeStatus(conditions=ready),
            runtime_handlers=[cri.RuntimeHandler(name=name) for name in names],
            info={"config": self._configuration()} if request.verbose else {},
        )

    async def list_containers(
        self, _request: cri.ListContainersRequest
    ) -> cri.ListContainersResponse:
        """List no containers: there are none."""
        return cri.ListContainersResponse()

    def _configuration(self) -> str:
        handlers = self._settings.handlers
        matchers = {name: handlers.get(name).matcher for name in handlers.names()}
        details = {"defaultRuntimeName": handlers.default, "runtimes": matchers}
        return msgspec.json.encode(details).decode()
