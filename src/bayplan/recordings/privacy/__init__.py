"""Objects as they can be shown to others: without fields that no decision reads, and anonymised.

    scrub(obj)                        # removes unused annotations, names of secrets, messages
    Anonymiser(Pseudonyms(key))(obj)  # replaces names, labels and addresses that users chose

Typed objects have only the fields that Bayplan reads, so most private data (environments,
arguments, commands, managed fields) is dropped already when an object is decoded.
"""

from bayplan.recordings.privacy.anonymise import NOT_ANONYMISABLE, Anonymiser, release_of
from bayplan.recordings.privacy.pseudonyms import Pseudonyms
from bayplan.recordings.privacy.scrub import KEPT_ANNOTATIONS, scrub

__all__ = [
    "KEPT_ANNOTATIONS",
    "NOT_ANONYMISABLE",
    "Anonymiser",
    "Pseudonyms",
    "release_of",
    "scrub",
]
