"""Debian's containerd, run privately: a real CRI server that knows nothing of runtime handlers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.images.peers.process import running

CONFIG = """
version = 2
root = "{home}/root"
state = "{home}/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.overlayfs",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.tracing",
  "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = "{home}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{home}/cni/bin"
    conf_dir = "{home}/cni/conf"
"""


def why_not() -> str:
    """What keeps containerd from running here, for a skip that says so."""
    if shutil.which("containerd") is None:
        return "containerd, a Debian package, is not installed"
    return "" if os.geteuid() == 0 else "containerd runs as root only"


@contextmanager
def running_containerd(home: Path) -> Iterator[str]:
    """Run containerd with everything of its own under `home`; gives its socket."""
    (home / "cni" / "conf").mkdir(parents=True)
    config = home / "config.toml"
    config.write_text(CONFIG.format(home=home))
    with running(["containerd", "--config", str(config)], "containerd successfully booted"):
        yield str(home / "containerd.sock")
