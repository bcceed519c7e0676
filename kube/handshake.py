"""Whether a TLS server shows a certificate that a CA bundle vouches for, asked as the API server asks a webhook."""

import enum
import socket
import ssl

SECONDS = 2.0
UNTRUSTED = frozenset({2, 7, 18, 19, 20, 21})
"""OpenSSL's words for "no such issuer" and "not signed by it"; an expired certificate is another matter."""


class Trust(enum.Enum):
    """What a handshake proved."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    UNKNOWN = "unknown"
    """Nobody answered, or it failed for another reason: nothing is proven."""


def trust(
    host: str,
    port: int,
    bundle: bytes,
    *,
    name: str | None = None,
    asked_name: str | None = None,
    seconds: float = SECONDS,
) -> Trust:
    """Shake hands with ``host``; ``bundle`` is PEM. With ``name`` the certificate must also be for that name.

    ``asked_name`` is sent to the server and not compared with anything; not together with ``name``.
    """
    try:
        context = _context(bundle, check_name=name is not None)
    except (ssl.SSLError, ValueError):
        return Trust.UNKNOWN  # not a bundle
    try:
        with (
            socket.create_connection((host, port), timeout=seconds) as plain,
            context.wrap_socket(plain, server_hostname=name or asked_name or host),
        ):
            return Trust.TRUSTED
    except ssl.SSLCertVerificationError as error:
        return Trust.UNTRUSTED if error.verify_code in UNTRUSTED else Trust.UNKNOWN
    except OSError:
        return Trust.UNKNOWN


def _context(bundle: bytes, *, check_name: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = check_name
    context.load_verify_locations(cadata=bundle.decode("ascii"))
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as Go: whatever is in the bundle is a root
    return context
