"""The command gumbel: the package's C program, which takes this process over."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
from typing import NoReturn

PROGRAM = pathlib.Path(__file__).parent / "bin" / "gumbel"

# The first is where the wheel's libcurl, Debian's, looks by itself.
_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def main() -> NoReturn:
    if not PROGRAM.exists():
        sys.exit("gumbel: this package was built without the command (GUMBEL_COMMAND=OFF)")
    _find_certificates()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and the program would inherit that
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(PROGRAM, ["gumbel", *sys.argv[1:]])


def _find_certificates() -> None:
    found = next((path for path in _CERTIFICATES if os.path.exists(path)), None)
    if found and found != _CERTIFICATES[0]:
        os.environ.setdefault("SSL_CERT_FILE", found)
