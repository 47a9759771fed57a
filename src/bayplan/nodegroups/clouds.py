"""The names of cloud providers, the only thing about them outside their packages.

`bayplan.autoscaler.providers.<name>` opens a provider; the autoscaler's `--cloud-provider` and the
value `autoscaler.cloudProvider` of a deployment take these names.
"""

from __future__ import annotations

from typing import Literal

CloudName = Literal["externalgrpc", "clusterapi", "aws", "gce"]
