"""Certificates for localhost, made on the spot."""

import subprocess
from pathlib import Path


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    kind = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    files = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(["openssl", *kind.split(), *files], check=True, capture_output=True)
    return cert, key
