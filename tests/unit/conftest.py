"""What unit tests of several packages need."""

import contextlib
import socket
import ssl
import threading

import pytest


@pytest.fixture(scope="session")
def tls_server():
    """``with tls_server(certificate, key) as port:`` shows the certificate to whoever connects, and says no more."""

    @contextlib.contextmanager
    def serve(certificate, key):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            thread = threading.Thread(target=_answer, args=(listening, context))
            thread.start()
            yield listening.getsockname()[1]
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()

    return serve


def _answer(listening, context):
    with contextlib.suppress(OSError):
        while True:
            client, _ = listening.accept()
            with contextlib.suppress(OSError), client, context.wrap_socket(client, server_side=True):
                pass
