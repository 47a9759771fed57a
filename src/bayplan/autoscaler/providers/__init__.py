"""Cloud providers: each implements `nodegroups.Provider`.

`registry` opens the one that the options name; `declared` overlays declarations in YAML, and is a
provider of its own for planning.
"""

from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions

__all__ = ["ProviderOptionError", "ProviderOptions"]
