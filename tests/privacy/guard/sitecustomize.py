"""Refuses what sockets do, below any library; processes of this machine may talk by files.

Python imports a module of this name as it starts, if its folder is on ``PYTHONPATH``: so are
processes guarded that a guarded one starts. An audit hook cannot be removed; this one acts while
the environment names a file in which it notes what it refused, for a library may pass over an
exception.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
NOTES = "DEEPTOBIT_REFUSED"
CALLS = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"}
CALLS |= {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


class NetworkError(AssertionError):
    """Somebody reached for a network."""


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """Note and refuse."""
    if event not in CALLS or NOTES not in os.environ:
        return
    if getattr(arguments[0], "family", None) == socket.AF_UNIX:
        return
    # urllib3, which nilearn imports, tries so whether there is IPv6; nothing is sent or awaited.
    if event == "socket.bind" and arguments[1] == ("::1", 0):
        return
    with open(os.environ[NOTES], "a", encoding="utf-8") as notes:
        notes.write(f"{event}{arguments}\n")
    raise NetworkError(f"{event}{arguments}")


sys.addaudithook(watch)
