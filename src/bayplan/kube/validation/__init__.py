"""Validation of single objects, applied to everything that is loaded.

Types and ranges of integers are checked while decoding. Here is what a type cannot express: that
quantities parse, are not negative and fit 64 bits; that selectors compile; that names and labels
are valid. Readers of a validated object can rely on it.

Errors that the API server refuses but that cannot affect a decision are accepted.
"""

from bayplan.kube.validation.check import check, check_again, validate

__all__ = ["check", "check_again", "validate"]
