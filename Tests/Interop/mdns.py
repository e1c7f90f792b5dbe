"""Names that are asked for and answered on the local link (multicast DNS, RFC 6762)."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

GROUP, PORT = "224.0.0.251", 5353


def read_name(data: bytes, place: int) -> tuple[str, int]:
    """The name at an offset of a message, and the offset after it; a limited number of pointers is followed."""
    labels, behind = [], None
    for _ in range(64):
        length = data[place]
        if length == 0:
            return ".".join(labels), behind or place + 1
        if length >= 192:
            behind = behind or place + 2
            place = struct.unpack_from(">H", data, place)[0] & 0x3FFF
        else:
            labels.append(data[place + 1 : place + 1 + length].decode("ascii", "replace"))
            place += 1 + length
    raise ValueError("a name without end")


class Listener:
    """Receives which names are asked for, and which are answered with an address."""

    def __init__(self) -> None:
        self.asked, self.answered = set(), set()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            self.socket.setsockopt(socket.SOL_SOCKET, option, 1)
        self.socket.bind((GROUP, PORT))
        for number, _ in socket.if_nameindex():
            # Not every interface takes part.
            with contextlib.suppress(OSError):
                self.socket.setsockopt(
                    socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("@4s4si", socket.inet_aton(GROUP), bytes(4), number)
                )
        self.socket.settimeout(0.2)
        self.isOpen = True
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        while self.isOpen:
            with contextlib.suppress(TimeoutError, IndexError, struct.error, ValueError):
                self._take(self.socket.recv(9000))

    def _take(self, data: bytes) -> None:
        questions, answers = struct.unpack_from(">HH", data, 4)
        place = 12
        for _ in range(questions):
            name, place = read_name(data, place)
            self.asked.add(name)
            place += 4
        for _ in range(answers):
            name, place = read_name(data, place)
            kind, _, _, length = struct.unpack_from(">HHIH", data, place)
            place += 10 + length
            if kind in (1, 28):
                self.answered.add(name)

    def close(self) -> None:
        self.isOpen = False
        self.thread.join(5)
        self.socket.close()
