"""Certificates, good ones and others, and a server that has one."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from harness.serve import Server

PEM = serialization.Encoding.PEM
Pair = tuple[bytes, bytes]


class Authority:
    """Issues certificates."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.pem = self._signed(
            self._name, self._key, 30, x509.BasicConstraints(ca=True, path_length=None)
        ).public_bytes(PEM)

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, days: int, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=60)).not_valid_after(
            now + datetime.timedelta(days=days)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())

    def pair(self, days: int = 30, host: str | None = None) -> Pair:
        """A certificate for this machine, or another host, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "0.0.0.0")]
        names: list[x509.GeneralName] = [*addresses, x509.DNSName("localhost")]
        subject = x509.SubjectAlternativeName([x509.DNSName(host)] if host else names)
        certificate = self._signed(x509.Name([]), key, days, subject)
        private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return certificate.public_bytes(PEM), private


class TlsServer(Server):
    """A server whose port speaks TLS alone."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://127.0.0.1:{self.port}"

    def _answers(self) -> bool:
        return "listening on" in self.log()


def write(files: tuple[Path, Path], pair: Pair) -> None:
    """Puts a certificate and its key where a server looks."""
    for file, content in zip(files, pair, strict=True):
        file.write_bytes(content)
