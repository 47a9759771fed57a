"""The clouds that nodes are bought from: each answers `nodegroups.Provider`.

`registry` opens the one that the options name; `declared` lays over it what people say of its
groups in plain YAML, and is a provider of its own for planning.
"""

from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions

__all__ = ["ProviderOptionError", "ProviderOptions"]
