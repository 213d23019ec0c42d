"""A merchant's shop: an HTTPS server that takes webhooks, and keeps those whose signature a foreign library finds right."""

from __future__ import annotations

import json
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

NAME = "shop.example"
ADDRESS = "93.184.215.14"
"""A public address, as a prod stage demands. Functions connect to it, and come to this machine: nothing is ever sent there."""


class Shop:
    """Listens on 127.0.0.1 with a certificate for NAME. `secret` is what the service signs with, once it was told."""

    def __init__(self, folder: Path) -> None:
        self.secret = ""
        self.events: list[dict[str, Any]] = []
        """Bodies of events that are genuine."""
        self.refused: list[str] = []
        """Why others were refused."""
        self.certificate = folder / "shop.pem"
        key = folder / "shop-key.pem"
        _certify(self.certificate, key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="shop", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What the merchant registers."""
        return f"https://{NAME}/hook"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def _take(self, headers: dict[str, str], body: bytes) -> bool:
        try:
            Webhook(self.secret).verify(body, headers)
        except (WebhookVerificationError, RuntimeError) as error:  # RuntimeError: there is no secret yet
            self.refused.append(str(error))
            return False
        self.events.append(json.loads(body))
        return True

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                taken = shop._take({name.lower(): value for name, value in self.headers.items()}, body)
                self.send_response(204 if taken else 401)
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                """Say nothing."""

        return Handler


def _certify(certificate: Path, key: Path) -> None:
    """A certificate of its own for NAME, for a day."""
    private, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.touch(mode=0o600)
    no = serialization.NoEncryption()
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, no))
