"""What attackers send: names, sizes, values and frames, good and bad, all chosen by a seeded generator."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any

from raw import BINARY, CLOSE, PING, PONG, TEXT, frame

UNSEEN = [
    "\0",
    "\n",
    "\x1b",
    "\x7f",
    "\u0085",
    "\u00ad",
    "\u200b",
    "\u200d",
    "\u2028",
    "\u202e",
    "\u2066",
    "\ufe0f",
    "\ufeff",
    "\ufffe",
    "\u00a0",
    "\u2007",
    "\u2800",
    "\u3000",
    "\ue000",
    "\U000e0041",
    "\U0010ffff",
]
METHODS = [
    "session.renew",
    "session.end",
    "device.register",
    "device.unregister",
    "invite.send",
    "invite.accept",
    "invite.reject",
    "invite.cancel",
    "invite.modify",
    "invite.list",
    "call.signal",
    "call.probe",
    "call.end",
    "room.join",
    "room.leave",
    "room.signal",
    "group.create",
    "group.join",
    "group.leave",
    "group.dismiss",
    "group.members",
    "group.list",
    "presence.subscribe",
    "presence.unsubscribe",
    "ping",
]
REASONS = [
    "completed",
    "declined",
    "busy",
    "noAnswer",
    "cancelled",
    "acceptedElsewhere",
    "declinedElsewhere",
    "dialFailed",
    "acceptFailed",
    "connectionLost",
    "disconnected",
    "internalError",
]


def bad_name(random: random.Random, base: str) -> Any:
    """A name that the page refuses, near to one that is good."""
    return random.choice(
        [
            "",
            " " * 300,
            "n" * 257,
            "\u00e9" * 129,
            base + random.choice(UNSEEN),
            random.choice(UNSEEN) + base,
            "e\u0301" + base,
            base + " ",
            " " + base,
            "\u1112\u1161\u11ab",
            base[:1] + "\u0301" + base[1:],
            "\ud800" + base,
        ]
    )


def odd_name(random: random.Random) -> str:
    """A name that is just allowed."""
    return random.choice(
        [
            '"' * 256,
            "\\" * 200,
            "\u00e9" * 128,
            "\U0001f600" * 64,
            "</script>",
            "' OR 1=1 --",
            "../../etc/passwd",
            "%00%n%s",
            "null",
            "0",
            "-1",
            "\u05d0\u05d1",
            "\ud55c\uae00",
        ]
    )


def odd_value(random: random.Random, depth: int = 0) -> Any:
    """Any JSON value; now and then one that no parser likes."""
    kind = random.randrange(12)
    if kind < 3:
        return random.choice([None, True, False, 0, -1, 1e308, -1e-308, 2**63, -(2**63), 2**64, 10**300, 0.1, 1e18])
    if kind < 6:
        return random.choice(["", "\0", "\u202e", "\U0001f600" * random.randrange(60), "x" * random.choice([1, 255, 256, 8193])])
    if kind < 8 and depth < 4:
        return [odd_value(random, depth + 1) for _ in range(random.randrange(5))]
    if kind < 10 and depth < 4:
        return {f"k{number}": odd_value(random, depth + 1) for number in range(random.randrange(5))}
    value = random.choice([[], {}])
    for _ in range(random.choice([1, 10, 55, 62, 64, 70])):
        value = [value] if kind == 10 else {"k": value}
    return value


def size(random: random.Random, most: int) -> int:
    """A size: mostly small, at times the largest allowed or a little more."""
    return random.choice(
        [0, 10, 10, 100, 100, 1000, most // 2, most - 40, most - 20, most, most + 1] if random.random() < 0.15 else [0, 10, 30, 100, 300]
    )


def payload(random: random.Random, most: int) -> Callable[[str], Any]:
    """A function that makes a value of about such a size from a marker."""
    shape, length = random.randrange(5), size(random, most)
    filler = random.choice(["x", "\u00e9", '"', "1e18,", "\U0001f600"])

    def make(marker: str) -> Any:
        text = (filler * (length // len(filler.encode()) + 1))[:length]
        if shape == 0:
            return f"{marker}{text}"
        if shape == 1:
            return {"marker": marker, "filler": text}
        if shape == 2:
            return [marker] + [1e18] * min(length // 20, 3000)
        if shape == 3:
            value: Any = marker
            for _ in range(min(length, 55)):
                value = {"deep": value}
            return value
        return {"offer": {"type": "offer", "sdp": f"v=0\r\ns={marker}\r\n"}, "more": text}

    return make


def frames(random: random.Random, marker: str) -> tuple[bytes, bool]:
    """Bytes of frames that are out of order, or nearly, and whether the connection may be used afterwards."""
    ping = json.dumps({"jsonrpc": "2.0", "id": f"raw-{marker}", "method": "ping"}).encode()
    long = b'"' + marker.encode() + b"x" * 65600 + b'"'
    nested = b"[" * random.choice([63, 64, 65, 500, 20000])
    choices = [
        lambda: frame(
            TEXT,
            random.choice(
                [
                    b"",
                    b"{",
                    b"null",
                    b"[]",
                    b"{}",
                    b'"text"',
                    b"17",
                    marker.encode(),
                    b"\xff\xfe",
                    nested,
                    nested + b"]" * len(nested),
                    b'{"jsonrpc":"2.0"}',
                    b"[" + ping + b"]",
                ]
            ),
        ),
        lambda: frame(
            TEXT,
            ping.replace(
                b"ping",
                random.choice([b"pi\xffng", b"pi\xc0\xafng", b"pi\xed\xa0\x80ng", b"pi\\u0000ng", b"pi\\ud800ng", b"PING", b"ping "]),
            ),
        ),
        lambda: frame(TEXT, ping[:5], fin=False) + frame(PING, b"between") + frame(0, ping[5:]),
        lambda: b"".join(
            [frame(TEXT, ping[:1], fin=False)] + [frame(0, ping[at : at + 1], fin=False) for at in range(1, len(ping))] + [frame(0, b"")]
        ),
        lambda: frame(PING, b"p" * random.choice([0, 125])) + frame(PONG, b"unasked") + frame(TEXT, ping),
        lambda: frame(
            TEXT,
            json.dumps(
                {"jsonrpc": "2.0", "id": random.choice(["raw-" + "i" * 60000, None, "raw-" + "\0", "raw-\u202e"]), "method": "ping"}
            ).encode(),
        ),
        lambda: frame(
            TEXT,
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": "raw-m",
                    "method": random.choice(["", "event", "session", "Exchange.stop", "m" * 9999, "\0"]),
                    "params": {"marker": marker},
                }
            ).encode(),
        ),
        lambda: frame(TEXT, b'{"jsonrpc":"2.0","id":"raw-1","id":"raw-2","method":"ping","method":"invite.list"}'),
    ]
    ending = [
        lambda: frame(BINARY, ping),
        lambda: frame(0, ping),
        lambda: frame(TEXT, ping, masked=False),
        lambda: frame(TEXT, ping, reserved=random.randrange(1, 8)),
        lambda: frame(random.choice([3, 7, 11, 15]), ping),
        lambda: frame(PING, b"p" * 126),
        lambda: frame(PING, b"p", fin=False),
        lambda: frame(TEXT, ping[:9], fin=False) + frame(TEXT, ping),
        lambda: frame(TEXT, long),
        lambda: frame(TEXT, b"begun", claimed=random.choice([1 << 16, 1 << 31, 1 << 62, (1 << 64) - 1])),
        lambda: frame(TEXT, b"x" * 40000, fin=False) + frame(0, b"x" * 40000),
        lambda: frame(TEXT, ping)[: random.randrange(2, 30)],
        lambda: frame(
            CLOSE,
            random.choice(
                [
                    b"",
                    b"\x03",
                    struct.pack(">H", 999),
                    struct.pack(">H", 65535),
                    struct.pack(">H", 1000) + b"\xff" * 50,
                    struct.pack(">H", 1001),
                ]
            ),
        ),
        lambda: random.randbytes(random.randrange(1, 500)),
    ]
    harmless = random.random() < 0.7
    return random.choice(choices if harmless else ending)(), harmless
