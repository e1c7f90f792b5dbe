#!/usr/bin/env python3
"""Measures what ICE and DTLS-SRTP add to a call in `handset run`, compared with SDES keys and a plain address.

usage: keys.py HANDSET DEVICE_PID DIRECTORY SERVER --calls "N N…" --seconds S --rounds R

DIRECTORY has app.secret and caller.token, which scripts/bench writes. Prints one JSON object per line: `calling`, with
the CPU time of the device for 20 ms of each call, and `making`, with that of one call from its invite to its end, including
one second of media.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
import wave

#: The recorded voices of alsa-utils, which the floors use as well.
SPEECH = pathlib.Path("/usr/share/sounds/alsa")
KINDS = {"sdes": "--no-webrtc", "dtls": "--webrtc"}
CALLEE = "echo@localhost"
#: Short calls, one after the other, for the cost of making one.
MADE = 20
#: Seconds from the last call's establishment until the load is steady.
SETTLING = 5


def write_speech(path, seconds):
    """Writes speech of at least `seconds`."""
    with wave.open(str(path), "wb") as output:
        while not output.getnframes() or output.getnframes() < seconds * output.getframerate():
            for source in sorted(SPEECH.glob("*_*.wav")):
                with wave.open(str(source)) as file:
                    if not output.getnframes():
                        output.setparams(file.getparams())
                    output.writeframes(file.readframes(file.getnframes()))


class Callers:
    """Processes of `handset call`, each with one call to the device."""

    def __init__(self, handset, folder, server):
        self.command = [
            handset,
            "call",
            CALLEE,
            "--server",
            server,
            "--config",
            folder / "caller.yaml",
            "--play",
            folder / "speech.wav",
            "--json",
        ]
        self.folder = folder
        (folder / "caller.yaml").write_text(
            "\n".join(
                [
                    "account:",
                    f"  server: {server}",
                    "  app_key: bench",
                    "  app_secret_file: app.secret",
                    "  media_token_file: caller.token",
                    "",
                ]
            )
        )

    def place(self, kind, seconds):
        return subprocess.Popen(
            [*self.command, KINDS[kind], "--duration", str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    @staticmethod
    def end(call):
        output, errors = call.communicate(timeout=120)
        if call.returncode != 0:
            raise RuntimeError(f"a call failed with {call.returncode}: {errors[-800:]}")
        return json.loads(output)


def cpu_seconds(pid):
    # clock_getcpuclockid(3): the clock of another process, in nanoseconds.
    return time.clock_gettime((~pid << 3) | 2)


def calling(callers, device, kind, number, seconds):
    """CPU time of the device for 20 ms of one of several calls, in microseconds."""
    length = seconds + 2 * SETTLING + number // 4
    calls = []
    for _ in range(number):
        calls.append(callers.place(kind, length))
        time.sleep(0.1)
    time.sleep(SETTLING)
    before, began = cpu_seconds(device), time.monotonic()
    time.sleep(seconds)
    spent, passed = cpu_seconds(device) - before, time.monotonic() - began
    for call in calls:
        callers.end(call)
    return {"cpu_us": 1e6 * spent / (number * passed / 0.02)}


def making(callers, device, kind):
    """CPU time of the device for a whole call of a second, in milliseconds."""
    before = cpu_seconds(device)
    for _ in range(MADE):
        callers.end(callers.place(kind, 1))
    return {"cpu_ms": 1e3 * (cpu_seconds(device) - before) / MADE}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("handset")
    parser.add_argument("device", type=int)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("server")
    parser.add_argument("--calls", default="10")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    write_speech(options.folder / "speech.wav", options.seconds + 60)
    callers = Callers(options.handset, options.folder, options.server)
    for round_ in range(options.rounds):
        for number in map(int, options.calls.split()):
            for kind in KINDS:
                print(f"keys: {number} calls, {kind}, round {round_ + 1} of {options.rounds}", file=sys.stderr)
                print(
                    json.dumps(
                        {"kind": f"calling {kind}", "calls": number, "of": calling(callers, options.device, kind, number, options.seconds)}
                    ),
                    flush=True,
                )
        for kind in KINDS:
            print(json.dumps({"kind": f"making {kind}", "calls": 1, "of": making(callers, options.device, kind)}), flush=True)


if __name__ == "__main__":
    main()
