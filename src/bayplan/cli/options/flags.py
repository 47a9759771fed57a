"""Types of flags without the negative forms that cyclopts adds.

Lists are empty and switches are off by default, so `--empty-LIST` and `--no-SWITCH` have no use.
Switches that are on by default have `--no-…`, and so have those of Cluster Autoscaler, which
deployments use in both forms.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from cyclopts import Parameter

Switch: TypeAlias = Annotated[bool, Parameter(negative=())]
FLAGS = Parameter(negative_iterable=())
"""The default parameter of every command; help and completion need it on each of them."""
