"""A telephone in Python whose media has faults: a registrar and a caller in one, with plain SIP over UDP and G.711."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Callable

FRAME = 160
# The seconds between 1900, where NTP begins, and 1970.
NTP = 2_208_988_800


def mulaw(sample: int) -> int:
    """The µ-law octet of a sample of 16 bits (ITU-T G.711)."""
    sign, magnitude = (0x80, min(-sample, 32_635)) if sample < 0 else (0, min(sample, 32_635))
    magnitude += 132
    exponent = max(0, magnitude.bit_length() - 8)
    return ~(sign | exponent << 4 | magnitude >> exponent + 3 & 0x0F) & 0xFF


TABLE = [mulaw(value - 32_768) for value in range(65_536)]


def encoded(samples: list[int]) -> bytes:
    return bytes(TABLE[sample + 32_768] for sample in samples)


def tone(index: int, level: int = 8_000, frequency: float = 440) -> bytes:
    """A frame of 20 ms of a tone."""
    first = index * FRAME
    return encoded([int(level * math.sin(2 * math.pi * frequency * (first + place) / 8_000)) for place in range(FRAME)])


def silence(index: int) -> bytes:
    return b"\xff" * FRAME


def noise(index: int) -> bytes:
    """Noise of −72 dBFS."""
    return bytes(random.choice((0xFF, 0xFE, 0x7E)) for _ in range(FRAME))


def clipped(index: int) -> bytes:
    """A tone of far too high a level: most of its samples are at full scale."""
    first = index * FRAME
    return encoded(
        [max(-32_768, min(32_767, int(400_000 * math.sin(2 * math.pi * 440 * (first + place) / 8_000)))) for place in range(FRAME)]
    )


@dataclasses.dataclass
class Media:
    """What the peer sends, and its faults."""

    sound: Callable[[int], bytes] = tone
    payload_type: int = 0
    # Ticks of the timestamp in a frame.
    step: int = FRAME
    # Seconds between packets.
    interval: float = 0.02
    # Which frames are sent, and how many seconds later than their turn.
    delays: Callable[[int], list[float]] = lambda index: [0]
    # From which frame on packets are sent to another port, and by how much it differs.
    misdirected: int = 0
    sources: Callable[[int], int] = lambda index: 0x1234_5678
    reports: bool = True
    # From which frame on it sends from another port.
    moves_at: int | None = None
    # The frames of a packet.
    frames: Callable[[int], int] = lambda index: 1
    # What is done with a packet before it is sent.
    change: Callable[[bytes], bytes] = lambda packet: packet
    sends: bool = True
    # Seconds that a packet needs in each direction, as far as round trips show them.
    latency: float = 0
    key: bytes | None = None


class Peer:
    """Registers the device, calls it, and is called by it."""

    def __init__(self, host: str, media: Media | None = None) -> None:
        self.host, self.media = host, media or Media()
        self.sip = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sip.bind((host, 5060))
        self.rtp, self.rtcp, self.other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
        for number, port in ((self.rtp, 4000), (self.rtcp, 4001), (self.other, 4020)):
            number.bind((host, port))
            number.setblocking(False)
        # How requests are answered: by method, a status line, None for silence, or a function of the request.
        self.answers: dict[str, str | None] = {}
        self.contact: str | None = None
        self.registered, self.answered, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.device: tuple[str, int] | None = None
        self.target: tuple[str, int] | None = None
        self.dialog: dict[str, str] = {}
        self.sequence, self.received, self.highest, self.first = 1, 0, 0, None
        self.their_source = 0
        # The device's newest sender report, and when it came.
        self.their_report: tuple[int, float] | None = None
        self.control: tuple[str, int] | None = None
        self.status: int | None = None
        self.offer = ""
        self.stopped = threading.Event()
        for loop in (self.serve, self.listen):
            threading.Thread(target=loop, daemon=True).start()

    # --- Signaling ---

    def serve(self) -> None:
        while not self.stopped.is_set():
            data, sender = self.sip.recvfrom(65_535)
            text = data.decode(errors="replace")
            if text.strip():
                self.device = sender
                (self.response if text.startswith("SIP/2.0") else self.request)(text, sender)

    def request(self, text: str, sender: tuple[str, int]) -> None:
        method = text.split(" ", 1)[0]
        if method == "ACK":
            return
        status = self.answers.get(method, "200 OK")
        if status is None:
            return
        if method == "INVITE" and status.startswith("200"):
            self.take_media(text)
            self.reply(text, sender, status, self.description())
            self.dialog = self.callee_dialog(text)
            threading.Thread(target=self.send, daemon=True).start()
            self.answered.set()
            return
        self.reply(text, sender, status)
        if method == "REGISTER" and status.startswith("200"):
            found = re.search(r"^Contact:[^<]*<([^>]+)>", text, re.M | re.I)
            self.contact = found[1] if found else None
            self.registered.set()
        elif method == "BYE":
            self.ended.set()

    def reply(self, text: str, sender: tuple[str, int], status: str, body: str = "") -> None:
        lines = [f"SIP/2.0 {status}"]
        for line in text.split("\r\n\r\n")[0].split("\r\n")[1:]:
            name = line.split(":", 1)[0].lower()
            if name == "to" and "tag=" not in line:
                line += ";tag=peer"
            if name in ("via", "from", "to", "call-id", "cseq"):
                lines.append(line)
            elif name == "contact" and text.startswith("REGISTER"):
                lines.append(re.sub(r";expires=\d+", "", line) + ";expires=600")
        if status.startswith("401"):
            lines.append(f'WWW-Authenticate: Digest realm="sip.test", nonce="{random.getrandbits(64):x}", algorithm=MD5, qop="auth"')
        if body:
            lines += [f"Contact: <sip:peer@{self.host}:5060>", "Content-Type: application/sdp"]
        self.sip.sendto("\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode(), sender)

    def response(self, text: str, sender: tuple[str, int]) -> None:
        status = int(text.split(" ")[1])
        if not re.search(r"^CSeq: \d+ INVITE", text, re.M | re.I) or status < 200:
            return
        tag = re.search(r"^To:.*", text, re.M | re.I)
        self.dialog["To"] = tag[0].strip().split(":", 1)[1].strip()
        self.say("ACK", sequence=int(re.search(r"^CSeq: (\d+)", text, re.M | re.I)[1]))
        self.status = status
        if status == 200 and not self.answered.is_set():
            contact = re.search(r"^Contact:[^<]*<([^>]+)>", text, re.M | re.I)
            self.dialog["uri"] = contact[1] if contact else self.dialog["uri"]
            self.take_media(text)
            threading.Thread(target=self.send, daemon=True).start()
        self.answered.set()

    def take_media(self, text: str) -> None:
        port, host = re.search(r"^m=audio (\d+)", text, re.M), re.search(r"^c=IN IP4 (\S+)", text, re.M)
        control = re.search(r"^a=rtcp:(\d+)", text, re.M)
        if port and host:
            self.target = (host[1], int(port[1]))
            self.control = (host[1], int(control[1]) if control else int(port[1]) + 1)

    def callee_dialog(self, text: str) -> dict[str, str]:
        def value(name: str) -> str:
            return re.search(rf"^{name}:(.*)", text, re.M | re.I)[1].strip()

        uri = re.search(r"^Contact:[^<]*<([^>]+)>", text, re.M | re.I)[1]
        return {"From": value("To") + ";tag=peer", "To": value("From"), "Call-ID": value("Call-ID"), "uri": uri}

    def description(self, direction: str = "sendrecv") -> str:
        if self.offer:
            return self.offer
        self.versions = getattr(self, "versions", 0) + 1
        profile = "RTP/SAVP" if self.media.key else "RTP/AVP"
        lines = ["v=0", f"o=- 1 {self.versions} IN IP4 {self.host}", "s=-", f"c=IN IP4 {self.host}", "t=0 0", f"m=audio 4000 {profile} 0"]
        if self.media.key:
            import base64

            lines.append(f"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{base64.b64encode(self.media.key).decode()}")
        return "\r\n".join([*lines, "a=rtpmap:0 PCMU/8000", f"a={direction}", ""])

    def call(self, user: str = "desk") -> None:
        """Calls the device, and waits until it has answered."""
        if not self.registered.wait(20):
            raise TimeoutError("the device has not registered")
        self.dialog = {
            "From": f"<sip:peer@{self.host}>;tag=a{random.getrandbits(32):x}",
            "To": f"<sip:{user}@sip.test>",
            "Call-ID": f"{random.getrandbits(64):x}@{self.host}",
            "uri": self.contact or "",
        }
        self.say("INVITE", self.description())
        self.answered.wait(15)

    def change(self, direction: str) -> None:
        """Describes the media again, such as for a hold."""
        self.sequence += 1
        self.say("INVITE", self.description(direction))

    def hang_up(self, reason: str = "") -> None:
        self.sequence += 1
        self.say("BYE", reason=reason)
        self.ended.wait(1)

    def say(self, method: str, body: str = "", sequence: int | None = None, reason: str = "") -> None:
        uri = self.dialog["uri"]
        lines = [
            f"{method} {uri} SIP/2.0",
            f"Via: SIP/2.0/UDP {self.host}:5060;branch=z9hG4bK{random.getrandbits(48):x};rport",
            "Max-Forwards: 70",
            *(f"{name}: {self.dialog[name]}" for name in ("From", "To", "Call-ID")),
            f"CSeq: {self.sequence if sequence is None else sequence} {method}",
            f"Contact: <sip:peer@{self.host}:5060>",
        ]
        lines += [f"Reason: {reason}"] if reason else []
        lines += ["Content-Type: application/sdp"] if body else []
        self.sip.sendto("\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode(), self.device)

    # --- Media ---

    def send(self) -> None:
        """Sends a frame every 20 ms until the end, with the faults that are wanted."""
        begin, index, sequence, waiting, made = time.monotonic(), 0, 1_000, [], 0
        while not self.stopped.is_set() and not self.ended.is_set() and self.media.sends:
            media, count = self.media, self.media.frames(index)
            payload = b"".join(media.sound(index + part) for part in range(count))
            header = struct.pack(
                "!BBHII", 0x80, media.payload_type, sequence & 0xFFFF, index * media.step & 0xFFFF_FFFF, media.sources(index)
            )
            for delay in media.delays(index):
                made += 1
                waiting.append((begin + index * media.interval + delay + media.latency, made, media.change(header + payload), index))
            if media.reports and index % 100 == 0:
                self.report(index, media)
            index, sequence = index + count, sequence + 1
            while True:
                waiting.sort()
                due = begin + index * media.interval
                moment = min([due, *(item[0] for item in waiting[:1])])
                time.sleep(max(0, moment - time.monotonic()))
                while waiting and waiting[0][0] <= time.monotonic():
                    self.transmit(waiting.pop(0))
                if time.monotonic() >= due:
                    break

    def transmit(self, item: tuple[float, int, bytes, int]) -> None:
        moved = self.media.moves_at is not None and item[3] >= self.media.moves_at
        host, port = self.target
        with contextlib.suppress(OSError):
            (self.other if moved else self.rtp).sendto(item[2], (host, port + self.media.misdirected))

    def report(self, index: int, media: Media) -> None:
        """A sender report with what was received of the device (RFC 3550 section 6.4)."""
        now = time.time() + NTP
        count = 1 if self.their_source else 0
        packet = struct.pack(
            "!BBHIIIIII",
            0x80 | count,
            200,
            6 + 6 * count,
            media.sources(index),
            int(now),
            int((now % 1) * 2**32),
            index * media.step & 0xFFFF_FFFF,
            index,
            index * FRAME,
        )
        if count:
            lost = max(0, self.highest - self.first + 1 - self.received)
            share = int(256 * lost / max(1, self.highest - self.first + 1))
            last, delay = 0, 0
            if self.their_report:
                last = self.their_report[0]
                delay = int(max(0, time.monotonic() - self.their_report[1] - 2 * media.latency) * 65_536)
            packet += struct.pack("!IIIIII", self.their_source, min(255, share) << 24 | lost, self.highest, 0, last, delay)
        packet += struct.pack("!BBHIBB", 0x81, 202, 2, media.sources(index), 1, 0) + b"\0\0"
        with contextlib.suppress(OSError):
            self.rtcp.sendto(packet, self.control)

    def listen(self) -> None:
        """Counts what comes from the device."""
        while not self.stopped.is_set():
            with contextlib.suppress(OSError):
                control = self.rtcp.recv(2_000)
                if len(control) >= 20 and control[1] == 200:
                    self.their_report = (struct.unpack("!I", control[10:14])[0], time.monotonic())
            try:
                data = self.rtp.recv(2_000)
            except BlockingIOError:
                time.sleep(0.005)
                continue
            except OSError:
                continue
            if len(data) < 12 or 192 <= data[1] <= 223:
                continue
            number, source = struct.unpack("!H", data[2:4])[0], struct.unpack("!I", data[8:12])[0]
            if source != self.their_source:
                self.their_source, self.first, self.highest, self.received = source, number, number, 0
            self.received += 1
            step = (number - self.highest) & 0xFFFF
            self.highest += step if step < 0x8000 else 0
