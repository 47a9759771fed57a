"""The webhook's certificates: made and renewed here and shared by replicas, or read from files."""

from bayplan.admission.certificates.bundle import Bundle, Lives, renewed
from bayplan.admission.certificates.sources import CertificateFiles, Proof, SharedSecret, Source

__all__ = ["Bundle", "CertificateFiles", "Lives", "Proof", "SharedSecret", "Source", "renewed"]
