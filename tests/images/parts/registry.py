"""A real registry: Debian's docker-registry on a free port of 127.0.0.1, filled by skopeo."""

import contextlib
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.images.parts.layouts import ImageBuilder
from tests.patience import PATIENCE

REGISTRY = "docker-registry"
_CONFIG = """
version: 0.1
log: {{level: info, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {root}}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:0"}}
{auth}
"""
_LISTENS = re.compile(r"listening on 127\.0\.0\.1:(\d+)")
USER, PASSWORD = "ann", "open-sesame"
_USERS = f"{USER}:$2b$04$abcdefghijklmnopqrstuuXcjcm5avyCiJoD2uS24xa2lb6fjMB3G\n"  # bcrypt


def missing() -> str:
    """What is not installed here, for a skip that says so."""
    return ", ".join(name for name in (REGISTRY, "skopeo") if shutil.which(name) is None)


class Registry:
    """A running registry."""

    def __init__(self, host: str, scratch: Path, login: str = "") -> None:
        self.host = host
        self._scratch = scratch
        self._login = ["--dest-creds", login] if login else []
        self._count = 0

    def push(self, builder: ImageBuilder, top: dict[str, object], name: str) -> str:
        """Fill a name by skopeo; gives the full reference."""
        self._count += 1
        layout = self._scratch / f"layout-{self._count}"
        builder.write_layout(layout, top, "it")
        reference = f"{self.host}/{name}"
        subprocess.run(
            [
                *("skopeo", "copy", "--quiet", "--all", "--dest-tls-verify=false"),
                *self._login,
                *("--preserve-digests", f"oci:{layout}:it", f"docker://{reference}"),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        return reference


@contextlib.contextmanager
def running_registry(scratch: Path, *, guarded: bool = False) -> Iterator[Registry]:
    """Start a registry, wait until it answers, and stop it by its pid."""
    config, log = scratch / "registry.yml", scratch / "registry.log"
    auth = _guard(scratch) if guarded else ""
    config.write_text(_CONFIG.format(root=scratch / "registry", auth=auth))
    command = [REGISTRY, "serve", str(config)]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            port = _wait_for_port(log, process)
            yield Registry(f"localhost:{port}", scratch, f"{USER}:{PASSWORD}" if guarded else "")
        finally:
            process.terminate()


def _guard(scratch: Path) -> str:
    """Let only one user in."""
    users = scratch / "users"
    users.write_text(_USERS)
    return f"auth: {{htpasswd: {{realm: tests, path: {users}}}}}"


def _wait_for_port(log: Path, process: "subprocess.Popen[bytes]") -> int:
    """Return the port on which the registry listens, as soon as it has logged it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := _LISTENS.search(log.read_text("utf-8")):
            return int(found.group(1))
        if process.poll() is not None:
            raise RuntimeError(f"the registry ended with {process.returncode}")
        time.sleep(0.05)  # another process is starting; there is nothing to wait on but time
    raise RuntimeError("the registry does not listen")
