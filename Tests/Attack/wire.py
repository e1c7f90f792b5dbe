"""SIP over UDP, RTP and SRTP as bytes, because telephony libraries refuse to send what an attacker sends."""

from __future__ import annotations

import asyncio
import base64
import hmac
import math
import struct
from collections.abc import Callable, Iterable
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

FRAME = 160  # Samples of 20 ms at 8 kHz.
SUITE = "AES_CM_128_HMAC_SHA1_80"
MAGIC = "z9hG4bK"

Address = tuple[str, int]
Headers = Iterable[tuple[str, str]]
Hear = Callable[[bytes, Address], None]


# --- SIP --------------------------------------------------------------------------------------------------------------


class Message:
    """One SIP message: its first line, its headers in order, its body."""

    def __init__(self, first: str, headers: Headers, body: bytes = b"") -> None:
        self.first, self.headers, self.body = first, list(headers), body

    @classmethod
    def parse(cls, data: bytes) -> Message | None:
        """The message, or None if the data is not one."""
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("utf-8", "replace").split("\r\n")
        if "SIP/2.0" not in lines[0]:
            return None
        fields = (line.partition(":") for line in lines[1:] if ":" in line)
        return cls(lines[0], [(name.strip(), value.strip()) for name, _, value in fields], body)

    def __getitem__(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def status(self) -> int:
        """The code of a response; 0 of a request."""
        return int(self.first.split(" ")[1]) if self.first.startswith("SIP/2.0 ") else 0

    @property
    def method(self) -> str:
        return self["CSeq"].split(" ")[-1] if self.status else self.first.split(" ")[0]

    def data(self) -> bytes:
        lines = [self.first, *(f"{name}: {value}" for name, value in self.headers), f"Content-Length: {len(self.body)}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape") + self.body

    def answer(self, status: int, reason: str = "OK", headers: Headers = (), body: bytes = b"", tag: str | None = None) -> Message:
        """A response to this request."""
        to = self["To"] + (f";tag={tag}" if tag and ";tag=" not in self["To"] else "")
        copied = [
            *(("Via", via) for via in self.all("Via")),
            ("From", self["From"]),
            ("To", to),
            ("Call-ID", self["Call-ID"]),
            ("CSeq", self["CSeq"]),
        ]
        return Message(f"SIP/2.0 {status} {reason}", [*copied, *headers], body)


def request(
    method: str, uri: str, source: Address, branch: str, who: str, to: str, call: str, sequence: int, more: Headers = (), body: bytes = b""
) -> Message:
    """A request whose headers name `source`."""
    host = f"{source[0]}:{source[1]}"
    headers = [
        ("Via", f"SIP/2.0/UDP {host};branch={branch};rport"),
        ("Max-Forwards", "70"),
        ("From", who),
        ("To", to),
        ("Call-ID", call),
        ("CSeq", f"{sequence} {method}"),
        ("Contact", f"<sip:caller@{host}>"),
        *more,
    ]
    if body:
        headers.append(("Content-Type", "application/sdp"))
    return Message(f"{method} {uri} SIP/2.0", headers, body)


# --- SDP --------------------------------------------------------------------------------------------------------------


def offer(host: str, port: int, keys: bytes | None = None, more: Iterable[str] = ()) -> bytes:
    """G.711 µ-law and telephone keys, plain or with SDES."""
    profile = "RTP/SAVP" if keys else "RTP/AVP"
    lines = [
        "v=0",
        f"o=- 1 1 IN IP4 {host}",
        "s=-",
        f"c=IN IP4 {host}",
        "t=0 0",
        f"m=audio {port} {profile} 0 101",
        "a=rtpmap:0 PCMU/8000",
        "a=rtpmap:101 telephone-event/8000",
        "a=sendrecv",
    ]
    if keys:
        lines.append(f"a=crypto:1 {SUITE} inline:{base64.b64encode(keys).decode()}")
    return ("\r\n".join([*lines, *more]) + "\r\n").encode()


class Description:
    """The address where the author of a description receives media, and its keys."""

    def __init__(self, body: bytes) -> None:
        self.host, self.port, self.keys = "", 0, None
        for line in body.decode("utf-8", "replace").split("\r\n"):
            if line.startswith("c=IN IP4 "):
                self.host = line.split(" ")[2]
            elif line.startswith("m=audio "):
                self.port = int(line.split(" ")[1])
            elif line.startswith("a=crypto:") and "inline:" in line:
                self.keys = base64.b64decode(line.split("inline:")[1].split("|")[0].split(" ")[0])


# --- RTP and SRTP -----------------------------------------------------------------------------------------------------


def packet(sequence: int, timestamp: int, ssrc: int, payload: bytes, kind: int = 0, marker: bool = False) -> bytes:
    return struct.pack(">BBHII", 0x80, kind | marker << 7, sequence & 0xFFFF, timestamp & 0xFFFFFFFF, ssrc) + payload


class Keys:
    """SRTP with AES_CM_128_HMAC_SHA1_80 (RFC 3711), in one direction."""

    def __init__(self, master: bytes) -> None:
        self.key, self.salt = master[:16], int.from_bytes(master[16:30], "big")
        self.cipher, self.auth, self.mask = (self._derive(label, size) for label, size in ((0, 16), (1, 20), (2, 14)))
        self.control = [self._derive(label, size) for label, size in ((3, 16), (4, 20), (5, 14))]
        self.roll, self.last = {}, {}

    @staticmethod
    def _stream(key: bytes, start: int, size: int) -> bytes:
        encryptor = Cipher(algorithms.AES(key), modes.CTR((start % (1 << 128)).to_bytes(16, "big"))).encryptor()
        return encryptor.update(bytes(size))

    def _derive(self, label: int, size: int) -> bytes:
        return self._stream(self.key, (self.salt ^ label << 48) << 16, size)

    @staticmethod
    def _mix(data: bytes, stream: bytes) -> bytes:
        return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(data), "big")

    def _payload(self, ssrc: int, index: int, data: bytes) -> bytes:
        start = int.from_bytes(self.mask, "big") << 16 ^ ssrc << 64 ^ index << 16
        return self._mix(data, self._stream(self.cipher, start, len(data)))

    def protect(self, plain: bytes, roll: int = 0) -> bytes:
        sequence, ssrc = struct.unpack(">H4xI", plain[2:12])
        sealed = plain[:12] + self._payload(ssrc, roll << 16 | sequence, plain[12:])
        return sealed + hmac.digest(self.auth, sealed + struct.pack(">I", roll), "sha1")[:10]

    def protect_report(self, plain: bytes, index: int) -> bytes:
        """SRTCP, encrypted."""
        cipher, auth, mask = self.control
        ssrc = struct.unpack(">I", plain[4:8])[0]
        start = int.from_bytes(mask, "big") << 16 ^ ssrc << 64 ^ index << 16
        sealed = plain[:8] + self._mix(plain[8:], self._stream(cipher, start, len(plain) - 8))
        sealed += struct.pack(">I", 1 << 31 | index)
        return sealed + hmac.digest(auth, sealed, "sha1")[:10]

    def open(self, sealed: bytes) -> bytes | None:
        """The payload of a packet with a good tag, or None. Rolls over once a sequence number wraps."""
        if len(sealed) < 22:
            return None
        sequence, ssrc = struct.unpack(">H4xI", sealed[2:12])
        roll, last = self.roll.get(ssrc, 0), self.last.get(ssrc, sequence)
        if sequence < last - 0x8000:
            roll += 1
        body, tag = sealed[:-10], sealed[-10:]
        if hmac.digest(self.auth, body + struct.pack(">I", roll), "sha1")[:10] != tag:
            return None
        self.roll[ssrc], self.last[ssrc] = roll, sequence
        return self._payload(ssrc, roll << 16 | sequence, body[12:])


# --- Sound ------------------------------------------------------------------------------------------------------------


def _expand(code: int) -> float:
    """µ-law as a sample (ITU-T G.711)."""
    code = ~code & 0xFF
    size = ((code & 0x0F) << 3) + 0x84 << (code >> 4 & 7)
    return (0x84 - size if code & 0x80 else size - 0x84) / 32768


EXPANDED = [_expand(code) for code in range(256)]


def _compress(sample: float) -> int:
    value, sign = min(int(abs(sample) * 32768) + 0x84, 0x7FFF), 0x80 if sample < 0 else 0
    segment = max(value.bit_length() - 8, 0)
    return ~(sign | segment << 4 | value >> segment + 3 & 0x0F) & 0xFF


class Tone:
    """Frames of one frequency, a multiple of 50 Hz so that all frames are the same."""

    def __init__(self, hertz: int) -> None:
        assert hertz % 50 == 0, "a frame of 20 ms has whole periods of multiples of 50 Hz only"
        self.hertz = hertz
        self.frame = bytes(_compress(0.25 * math.sin(2 * math.pi * hertz * at / 8000)) for at in range(FRAME))
        self.waves = [(math.cos(2 * math.pi * hertz * at / 8000), math.sin(2 * math.pi * hertz * at / 8000)) for at in range(FRAME)]

    def share(self, payload: bytes) -> float:
        """The share of a frame's energy that this tone has; 0 of silence."""
        samples = [EXPANDED[code] for code in payload[:FRAME]]
        energy = sum(sample * sample for sample in samples)
        if len(samples) < FRAME or energy < 0.05:
            return 0.0
        real = sum(sample * wave[0] for sample, wave in zip(samples, self.waves))
        other = sum(sample * wave[1] for sample, wave in zip(samples, self.waves))
        return 2 * (real * real + other * other) / FRAME / energy


# --- Sockets ----------------------------------------------------------------------------------------------------------


class Socket(asyncio.DatagramProtocol):
    """A UDP socket at one of this machine's addresses. `hear` receives each datagram and its source."""

    def __init__(self, hear: Hear) -> None:
        self.hear = hear
        self.transport: asyncio.DatagramTransport | None = None

    @classmethod
    async def open(cls, host: str, hear: Hear = lambda data, source: None) -> Socket:
        _, socket = await asyncio.get_running_loop().create_datagram_endpoint(lambda: cls(hear), local_addr=(host, 0))
        return socket

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    @property
    def address(self) -> Address:
        return self.transport.get_extra_info("sockname")

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.hear(data, address)

    def error_received(self, error: Exception) -> None:
        pass  # The port is closed. If an answer is expected, its absence is noticed.

    def send(self, data: bytes, target: Address) -> None:
        self.transport.sendto(data[:65_507], target)

    def close(self) -> None:
        self.transport.close()
