"""What is counted about the webhook's certificates, by whoever keeps them."""

from cryptography import x509
from prometheus_client import Counter, Gauge

from certs.issue import Issued

EXPIRY = Gauge(
    "signalbox_certificate_expiry_timestamp_seconds",
    "When a stored certificate expires (ca, server)",
    ["certificate"],
)
FAILURES = Counter("signalbox_certificate_failures_total", "Passes over the webhook's certificates that failed")
REPAIRS = Counter(
    "signalbox_ca_bundle_repairs_total", "Times a caBundle that somebody else changed was put right", ["configuration"]
)
CONTESTED = Gauge("signalbox_ca_bundle_contested", "1 while somebody else changes a caBundle again and again")


def expires(issued: Issued) -> None:
    """Sets the gauge from what is stored."""
    for name, pem in (("ca", issued.ca_pem), ("server", issued.cert_pem)):
        EXPIRY.labels(name).set(x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp())
