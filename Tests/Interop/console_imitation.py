"""An imitation of a device with any number of calls: the page's own files, and made-up answers of control over HTTP.

usage: console_imitation.py [PORT [CALLS]]
"""

from __future__ import annotations

import array
import contextlib
import functools
import http.server
import json
import math
import pathlib
import random
import re
import struct
import sys
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "Sources/Signaling"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; media-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
TOKEN = "a-control-token-0123456789"
HOSTILE = '<img src=x onerror="document.title=1">'
LOST = {
    "code": "loss_here",
    "side": "path_here",
    "whose": "the network to this device",
    "text": "Packets to this device were lost.",
    "because": "9.1 % of 3295 packets lost, 7.4 % of the sound concealed",
    "try": "Check this device's network, first Wi-Fi.",
}

# Records with something special, by their numbers: the others have 61 or 77 rows, and a WAV of two channels.
GONE, BARE, HOUR, OGG = 50, 51, 52, 53
RATE = 8000


def column(values: list[int]) -> str:
    """Counts as records have them, such as `50*12,0*5,49`."""
    parts: list[tuple[int, int]] = []
    for value in values:
        if parts and parts[-1][0] == value:
            parts[-1] = (value, parts[-1][1] + 1)
        else:
            parts.append((value, 1))
    return ",".join(str(value) if count == 1 else f"{value}*{count}" for value, count in parts)


def timeline(begins: int, rows: int, step: int) -> dict[str, Any]:
    """Counters with a burst of loss, a gap of six rows, and a jitter buffer that grows and shrinks."""
    wave = [math.sin(row / 5) for row in range(rows)]
    quiet = range(rows // 2, rows // 2 + 6)
    lost = [(6 if row % 2 else 4) * step if rows // 4 <= row < rows // 4 + 5 else 0 for row in range(rows)]
    received = [0 if row in quiet else 50 * step - lost[row] for row in range(rows)]
    return {
        "begins": begins,
        "step_s": step,
        "rows": rows,
        "received": column(received),
        "lost": column(lost),
        "sent": column([50 * step] * rows),
        "concealed_ms": column([20 * lost[row] + (120 * step if row in quiet else 0) for row in range(rows)]),
        "silent_ms": column([(880 * step if row in quiet else 200 * step if row % 9 == 4 else 0) for row in range(rows)]),
        "decelerated_ms": column([12 if lost[row] else 0 for row in range(rows)]),
        "accelerated_ms": column([4 if row % 11 == 10 else 0 for row in range(rows)]),
        "jitter_ms": column([round(6 + 3 * value) for value in wave]),
        "delay_ms": column([round(55 + 20 * value) for value in wave]),
        "target_delay_ms": column([60 + 20 * (row * 6 // rows % 3) for row in range(rows)]),
        "sent_level": column([round(72 + 12 * value) for value in wave]),
        "received_level": column([0 if row in quiet else round(70 - 14 * wave[row]) for row in range(rows)]),
    }


@functools.cache
def wav(seconds: int) -> bytes:
    """A recording of two channels: a tone that swells and fades, and one that comes and goes."""
    second = [math.sin(2 * math.pi * 440 * index / RATE) for index in range(RATE)]
    samples = array.array("h")
    for number in range(seconds):
        left, right = 20_000 * (0.5 + 0.5 * math.sin(number / 3)), 12_000 if number % 4 < 2 else 0
        samples.extend(int(value * level) for value in second for level in (left, right))
    data = samples.tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 2, RATE, 4 * RATE, 4, 16)
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVE" + form + b"data" + struct.pack("<I", len(data)) + data


def page_of_ogg(flags: int, position: int, number: int, packets: list[bytes]) -> bytes:
    """A page of Ogg (RFC 3533) with whole packets of less than 255 bytes."""
    head = struct.pack("<4sBBqIIIB", b"OggS", 0, flags, position, 1, number, 0, len(packets))
    page = bytearray(head + bytes(len(packet) for packet in packets) + b"".join(packets))
    rest = 0
    for byte in page:
        rest ^= byte << 24
        for _ in range(8):
            rest = (rest << 1 ^ 0x04C11DB7) & 0xFFFFFFFF if rest & 0x80000000 else rest << 1
    page[22:26] = struct.pack("<I", rest)
    return bytes(page)


@functools.cache
def ogg(seconds: int) -> bytes:
    """Ogg Opus with noise: frames of 20 ms whose bytes are random."""
    noise = random.Random(7)
    head = struct.pack("<8sBBHIhB", b"OpusHead", 1, 1, 312, 48_000, 0, 0)
    pages = [page_of_ogg(2, 0, 0, [head]), page_of_ogg(0, 0, 1, [b"OpusTags" + struct.pack("<II", 0, 0)])]
    for number in range(seconds):
        packets = [b"\xf8" + noise.randbytes(40) for _ in range(50)]
        pages.append(page_of_ogg(4 if number == seconds - 1 else 0, 48_000 * (number + 1), number + 2, packets))
    return b"".join(pages)


class Imitation:
    """What the device knows."""

    def __init__(self, calls: int) -> None:
        self.began = time.monotonic()
        self.calls: dict[int, dict[str, Any]] = {}
        self.ended: list[dict[str, Any]] = []
        self.events: list[tuple[int, str, dict[str, Any]]] = []
        self.changed = threading.Condition()
        for number in range(1, calls + 1):
            peer = HOSTILE if number == 3 else f"caller-{number}@example.org"
            self.calls[number] = {
                "call": number,
                "invite": f"invite-{number}",
                "peer": peer,
                "incoming": number % 3 != 0,
                "held": False,
                "state": "ringing" if number == 2 else "talking",
                "muted": False,
            }

    def listed(self, after: int) -> dict[str, Any]:
        rest = [self.shown(call) for number, call in sorted(self.calls.items()) if number > after]
        page: dict[str, Any] = {"calls": rest[:64]}
        if len(rest) > 64:
            page["next"] = rest[63]["call"]
        return page

    def shown(self, call: dict[str, Any]) -> dict[str, Any]:
        found = {name: value for name, value in call.items() if name != "muted"}
        if call["state"] == "talking":
            now = time.monotonic() - self.began
            found["duration_s"] = round(now + 3 * call["call"], 1)
            found["media"] = self.media(call["call"], now)
        return found

    @staticmethod
    def media(number: int, now: float) -> dict[str, Any]:
        wave = math.sin(now / 3 + number)
        bad = 6 if number % 17 == 0 else 0.2
        received = int(50 * (now + 60))
        return {
            "sent": received,
            "received": received,
            "lost": int(received * bad / 100),
            "late": 3,
            "discarded": 0,
            "remote_lost": 2,
            "frames_skipped": 0,
            "round_trip_ms": round(40 + 8 * wave, 1),
            "jitter_ms": round(4 + 2 * wave, 1),
            "delay_ms": round(45 + 12 * wave, 1),
            "target_delay_ms": 40 + 20 * int(now / 8 + number) % 60,
            "played_ms": received * 20,
            "concealed_ms": int(received * 20 * bad / 200),
            "silent_ms": 120,
            "accelerated_ms": int(now) * 4,
            "decelerated_ms": int(now * 6),
            "sent_dbfs": round(-30 + 12 * math.sin(now + number), 1),
            "received_dbfs": round(-28 + 14 * math.sin(1.7 * now), 1),
        }

    def happen(self, event: str, **members: Any) -> None:
        with self.changed:
            data = {"at_ms": int(time.time() * 1000), "event": event, **members}
            self.events.append((len(self.events) + 1, event, data))
            self.changed.notify_all()

    def act(self, number: int, action: str, body: dict[str, Any]) -> dict[str, Any] | None:
        call = self.calls.get(number)
        if call is None:
            return None
        if action == "hangup":
            del self.calls[number]
            self.ended.insert(0, self.record(number, call))
            self.happen("ended", call=number, peer=call["peer"], invite=call["invite"], reason="completed", ended_by="local", duration_s=1)
        elif action == "answer":
            call["state"] = "talking"
            self.happen("answered", call=number)
        elif action in ("conference_mute", "conference_unmute"):
            call["muted"] = action == "conference_mute"
        elif action == "record":
            self.happen("recording", call=number, state="started" if body.get("start") else "ended", path="/tmp/talk.opus")
        return {"call": number}

    @staticmethod
    def record(number: int, call: dict[str, Any]) -> dict[str, Any]:
        now = int(time.time() * 1000)
        bad = number % 2 == 1
        length_ms = 80_000 if bad else 64_300  # A whole number of the axis' steps, and not.
        if number == HOUR:
            length_ms = 3_843_050
        duration_ms = length_ms - 3_050
        return {
            "record": f"record-{number}",
            "invite": call["invite"],
            "peer": call["peer"],
            "incoming": call["incoming"],
            "began_ms": now - length_ms,
            "ended_ms": now,
            "answered_after_ms": 2_900,
            "established_after_ms": 3_050,
            "media_after_ms": 3_210,
            "duration_ms": duration_ms,
            "reason": "completed",
            "ended_by": "local",
            "outcome": f"The call from {call['peer']} lasted {duration_ms / 1000:.1f} s; this side hung up.",
            "findings": [LOST] if bad else [],
            **({} if bad else {"remark": "Nothing went wrong that this side can see."}),
        }

    @staticmethod
    def whole(record: dict[str, Any]) -> dict[str, Any]:
        """What only the record itself has, and no list."""
        number = int(record["record"].removeprefix("record-"))
        if number == BARE:
            return {}
        began, seconds = record["began_ms"], record["duration_ms"] // 1000
        at = began + record["media_after_ms"]
        kinds = ["answered", "established", "first_packet", "flowing", "path_lost", "path_back", "program_failed"]
        times = [2_900, 3_050, 3_190, 3_210, 3_050 + 500 * seconds, 3_050 + 500 * seconds + 6_000, 3_050 + 900 * seconds]
        happened: list[dict[str, Any]] = [{"at": began + time, "kind": kind} for kind, time in zip(kinds, times, strict=True)]
        happened[-1]["text"] = HOSTILE
        step = 16 if number == HOUR else 1
        ending = "opus" if number == OGG else "wav"
        recordings = [{"number": 1, "file": f"/var/lib/handset/{record['record']}.{ending}", "began_ms": at}]
        return {
            "media": Imitation.FIGURES if number != HOUR else {**Imitation.FIGURES, "quiet_ms": 20},
            "timeline": timeline(began + 3_050, seconds // step, step),
            "moments": happened,
            "recordings": recordings,
        }

    @staticmethod
    def recording(record: dict[str, Any]) -> tuple[str, bytes] | None:
        number = int(record["record"].removeprefix("record-"))
        if number in (GONE, BARE):
            return None
        return ("audio/ogg", ogg(20)) if number == OGG else ("audio/wav", wav(60))

    FIGURES = {
        "sent": 3050,
        "received": 2995,
        "lost": 300,
        "late": 12,
        "reordered": 3,
        "remote_lost": 4,
        "played_ms": 61_000,
        "concealed_ms": 4514,
        "silent_ms": 240,
        "buffered_ms": 52,
        "buffered_p95_ms": 95,
        "round_trip_ms": 41,
        "frames": 3050,
        "frames_skipped": 0,
        "sent_peak_dbfs": -9,
        "received_peak_dbfs": -12,
        "quiet_ms": 5_400,
    }


def make_handler(device: Imitation) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def send(self, status: int, value: Any, kind: str = "application/json", more: dict[str, str] | None = None) -> None:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            for name, text in (more or {}).items():
                self.send_header(name, text)
            # A page that shows something else by now has left.
            with contextlib.suppress(OSError):
                self.end_headers()
                self.wfile.write(body)

        def problem(self, status: int, code: str, detail: str) -> None:
            self.send(status, {"code": code, "detail": detail, "status": status}, "application/problem+json")

        def allowed(self) -> bool:
            if self.headers.get("Authorization") == f"Bearer {TOKEN}":
                return True
            self.problem(401, "unauthorized", "send Authorization: Bearer with the token")
            return False

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if self.file(url.path) or not self.allowed():
                return
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            parts = url.path.strip("/").split("/")
            if parts[:2] == ["v1", "status"]:
                self.send(200, {"device": "front desk", "sound": {"muted": False}, "events": {"cursor": f"{len(device.events)}"}})
            elif url.path == "/v1/calls":
                self.send(200, device.listed(int(query.get("after", 0))))
            elif url.path == "/v1/conferences":
                members = [{"call": n, "peer": c["peer"], "speaks": False, "muted": c["muted"]} for n, c in list(device.calls.items())[:4]]
                self.send(200, {"conferences": [{"room": "team", "members": members}]})
            elif url.path == "/v1/history":
                self.history(query)
            elif parts[:2] == ["v1", "history"]:
                found = [record for record in device.ended if record["record"] == parts[2]]
                if found and parts[3:] == ["recording"]:
                    self.recording(found[0])
                elif found:
                    self.send(200, {**found[0], **device.whole(found[0])})
                else:
                    self.problem(404, "no_such_call", f"there is no record {parts[2]}")
            elif url.path == "/v1/events":
                self.stream(int(self.headers.get("Last-Event-ID") or 0))
            else:
                self.problem(404, "not_found", "there is no such path")

        def recording(self, record: dict[str, Any]) -> None:
            sound = device.recording(record)
            if sound is None:
                self.problem(404, "no_such_recording", "the recording is not there")
                return
            kind, data = sound
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            if asked is None:
                self.send(200, data, kind)
                return
            first = int(asked[1])
            part = data[first : int(asked[2]) + 1 if asked[2] else len(data)]
            self.send(206, part, kind, {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(data)}"})

        def file(self, path: str) -> bool:
            folder, _, name = path.lstrip("/").rpartition("/")
            place = SOURCES / {"console": "WebConsole", "phone": "WebPhone"}.get(folder, "WebConsole") / "Page" / (name or "index.html")
            if folder not in ("", "console", "phone") or (not folder and name) or not place.is_file():
                return False
            self.send(200, place.read_bytes(), TYPES[place.suffix])
            return True

        def history(self, query: dict[str, str]) -> None:
            wanted = query.get("search", "").lower()
            found = [r for r in device.ended if wanted in (r["record"] + r["invite"] + r["peer"]).lower()]
            if "outcome" in query:
                found = [r for r in found if r["reason"] == query["outcome"]]
            if query.get("findings") == "true":
                found = [r for r in found if r["findings"]]
            begin = int(query.get("before", 0))
            end = begin + int(query.get("limit", 64))
            self.send(200, {"history": found[begin:end], **({"next": str(end)} if len(found) > end else {})})

        def stream(self, after: int) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"retry: 1000\n\n")
            while True:
                with device.changed:
                    device.changed.wait_for(lambda: len(device.events) > after, 10)
                    new = device.events[after:]
                try:
                    for number, event, data in new:
                        self.wfile.write(f"id: {number}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode())
                        after = number
                    self.wfile.write(b"" if new else b": here\n\n")
                    self.wfile.flush()
                except OSError:
                    return

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            if not self.allowed():
                return
            parts = self.path.strip("/").split("/")
            if parts[:2] == ["v1", "sound"]:
                sound = {"muted": parts[2] == "mute", "volume_db": 0, "microphone_db": 0}
                self.send(200, sound)
                return
            if parts[3] == "play":
                self.problem(422, "file_unusable", f'cannot play "{body.get("file")}": there is no such file')
                return
            answer = device.act(int(parts[2]), parts[3], body)
            if answer is None:
                self.problem(404, "no_such_call", f"there is no call {parts[2]}")
            else:
                self.send(200, answer)

    return Handler


def serve(calls: int, port: int = 0) -> tuple[Imitation, http.server.ThreadingHTTPServer]:
    """Begins to serve, and returns at once."""
    device = Imitation(calls)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), make_handler(device))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return device, server


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    _, running = serve(given[1] if len(given) > 1 else 12, given[0] if given else 8600)
    print(f"http://127.0.0.1:{running.server_address[1]}/ with the token {TOKEN}")
    threading.Event().wait()
