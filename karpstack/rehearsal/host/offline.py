"""Takes the internet from a program before it starts: on Linux, it can make no socket for IPv4 or IPv6.

A filter of system calls (seccomp) does that, which needs no rights. On other systems and processors nothing is taken.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from typing import Final

#: Processor -> the number that seccomp has for it, and the number of the system call `socket`.
_KNOWN: Final = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2  # of prctl
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # instructions
_NUMBER, _PROCESSOR, _FIRST = 0, 4, 16  # where they are in a call's data
_IPV4, _IPV6 = 2, 10  # families of sockets
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # the error is EPERM


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _filter(processor: int, call: int) -> _Program:
    """The filter; the two numbers of a comparison are how many instructions are skipped if it is true, and if not."""
    steps = [
        (_LOAD, 0, 0, _PROCESSOR),
        (_EQUAL, 0, 6, processor),
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 0, 3, call),
        (_LOAD, 0, 0, _FIRST),
        (_EQUAL, 2, 0, _IPV4),
        (_EQUAL, 1, 0, _IPV6),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return _Program(len(steps), b"".join(struct.pack("=HBBI", *step) for step in steps))


# Made here: between fork and exec, as little as possible may happen.
_MADE: Final = (
    _filter(*_KNOWN[platform.machine()]) if sys.platform == "linux" and platform.machine() in _KNOWN else None
)
_LIBRARY: Final = ctypes.CDLL(None)


def take_internet() -> None:
    """Take it from this process and all that it starts; to be called between fork and exec."""
    if _MADE:
        _LIBRARY.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _LIBRARY.prctl(_SECCOMP, _FILTER, ctypes.byref(_MADE), 0, 0)
