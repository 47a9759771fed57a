"""What a flag means, where the library that makes flags of parameters would offer more than that.

A list is empty unless something is given, and a switch is off unless it is: there is nothing that
`--empty-LIST` or `--no-SWITCH` could mean. Switches that are on have their `--no-…`, and so have
those of Cluster Autoscaler, which deployments say both ways.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from cyclopts import Parameter

Switch: TypeAlias = Annotated[bool, Parameter(negative=())]
FLAGS = Parameter(negative_iterable=())
"""For every command: the help page and what shells complete ask each by itself."""
