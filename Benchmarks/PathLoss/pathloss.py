#!/usr/bin/env python3
"""Measures how long a call is without sound when its network path is lost and another exists.

usage: pathloss.py HANDSET [--trials N] [--keep]

Two devices in separate network namespaces, joined by two links, call each other through an exchange in a third namespace,
where TURN servers run too. Caller and callee both play a tone and record. During the call the path in use is
lost: its link goes down (the kernel knows), it drops everything silently (neither side is notified), or the TURN server that
relays the call is killed. Prints one JSON object for each trial. Needs root, iproute2 and coturn.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import wave

NAME = f"pathloss{os.getpid()}"
CALLER, CALLEE, SERVER = (f"{NAME}-{role}" for role in ("a", "b", "s"))
RATE = 48_000
# Sound has at least this level, in dB relative to full scale; the tones have −12.
SOUND_DB = -30
# After a pause of this length, packets count as a new start.
PAUSE = 0.1
KINDS = ("pulled", "silent", "relay")
# Length of a call in seconds, and the seconds before its path is lost.
DURATION, SETTLING = 16, 7
# A watcher's first line.
WATCHING = "watching"


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


def inside(space, *command):
    return ["ip", "netns", "exec", space, *map(str, command)]


def build_network():
    """Two wires between caller and callee, path1 and path2, and one from each to the servers."""
    for space in (CALLER, CALLEE, SERVER):
        run("ip", "netns", "add", space)
        run("ip", "-n", space, "link", "set", "lo", "up")
    for number in (1, 2):
        join(CALLER, f"path{number}", f"10.77.{number}.1", CALLEE, f"path{number}", f"10.77.{number}.2")
    join(CALLER, "signal", "10.77.3.2", SERVER, "caller", "10.77.3.1")
    join(CALLEE, "signal", "10.77.4.2", SERVER, "callee", "10.77.4.1")
    for number in (1, 2):
        run("ip", "-n", SERVER, "addr", "add", f"10.77.9.{number}/32", "dev", "lo")
    for space, gateway in ((CALLER, "10.77.3.1"), (CALLEE, "10.77.4.1")):
        run("ip", "-n", space, "route", "add", "10.77.9.0/24", "via", gateway)


def join(one, interface, address, other, its_interface, its_address):
    run("ip", "-n", one, "link", "add", interface, "type", "veth", "peer", "name", its_interface, "netns", other)
    for space, name, own in ((one, interface, address), (other, its_interface, its_address)):
        run("ip", "-n", space, "addr", "add", f"{own}/24", "dev", name)
        run("ip", "-n", space, "link", "set", name, "up")


def take_network_down():
    for space in (CALLER, CALLEE, SERVER):
        subprocess.run(["ip", "netns", "del", space], capture_output=True)


def set_path(number, how):
    """Breaks a path, or repairs it: how is "pulled", "silent" or "whole"."""
    for space in (CALLER, CALLEE):
        path = f"path{number}"
        if how == "pulled":
            run("ip", "-n", space, "link", "set", path, "down")
        elif how == "silent":
            # A queue without room drops all outgoing packets, and the sender gets no error.
            run("tc", "-n", space, "qdisc", "add", "dev", path, "root", "pfifo", "limit", "0")
        else:
            run("ip", "-n", space, "link", "set", path, "up")
            subprocess.run(["tc", "-n", space, "qdisc", "del", "dev", path, "root"], capture_output=True)


class Processes:
    """The processes of the measurement, ended with it."""

    def __init__(self, folder):
        self.folder, self.running = folder, []

    def start(self, space, *command, **options):
        process = subprocess.Popen(inside(space, *command), **options)
        self.running.append(process)
        return process

    def serve(self, name, ready, space, *command):
        """Starts a server, and waits for the message that it serves."""
        log = self.folder / f"{name}.log"
        with open(log, "wb") as output:
            process = self.start(space, *command, stdout=output, stderr=output)
        end = time.monotonic() + 20
        while ready not in log.read_text():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{name} does not serve: {log.read_text()[-1500:]}")
            time.sleep(0.05)
        return process

    def end(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.terminate()
        for process in self.running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def configure(folder):
    """Writes the configurations of the exchange, the devices and the TURN servers."""

    def digest(text):
        return hashlib.sha256(text.encode()).hexdigest()

    (folder / "exchange.yaml").write_text(
        "\n".join(
            [
                "listen: 10.77.9.1:8555",
                "plain_text: allowed",
                "apps:",
                f"  - {{ key: bench, secret_hash: {digest('bench')} }}",
                "users:",
                *(
                    f"  - {{ id: {user}, public_ids: [{user}@localhost], media_token_hashes: [{digest(user)}] }}"
                    for user in ("caller", "callee")
                ),
                "",
            ]
        )
    )
    (folder / "secret").write_text("bench")
    (folder / "records").mkdir()
    for number in (1, 2):
        (folder / f"turn{number}.conf").write_text(
            "\n".join(
                [
                    f"listening-ip=10.77.9.{number}",
                    f"relay-ip=10.77.9.{number}",
                    "listening-port=3478",
                    "lt-cred-mech",
                    "user=bench:bench",
                    "realm=bench",
                    "no-tls",
                    "no-dtls",
                    "no-cli",
                    "log-file=stdout",
                    "simple-log",
                    f"pidfile={folder}/turn{number}.pid",
                    f"userdb={folder}/turn{number}.db",
                    "",
                ]
            )
        )
    for user, frequency in (("caller", 440), ("callee", 600)):
        (folder / user).write_text(user)
        for kind, media in (
            ("direct", "ignored_interfaces: [signal]"),
            (
                "relayed",
                "relay_only: true, ice_servers: ["
                + ", ".join(f'{{ urls: ["turn:10.77.9.{number}:3478"], username: bench, credential_file: secret }}' for number in (1, 2))
                + "]",
            ),
        ):
            (folder / f"{user}-{kind}.yaml").write_text(
                "\n".join(
                    [
                        "account:",
                        "  server: http://10.77.9.1:8555",
                        "  allow_plain_text: true",
                        "  app_key: bench",
                        "  app_secret_file: secret",
                        f"  media_token_file: {user}",
                        f"behaviour: {{ source: tone, frequency_hz: {frequency}, record_folder: records }}",
                        f"media: {{ {media} }}",
                        "",
                    ]
                )
            )
    with wave.open(str(folder / "tone.wav"), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(
            b"".join(struct.pack("<h", int(8_000 * math.sin(2 * math.pi * 440 * sample / RATE))) for sample in range(40 * RATE))
        )


def watch(interfaces):
    """Reports on standard output when media begins to arrive from an address, and on which interface, until it is ended."""
    sockets = {}
    for interface in interfaces:
        one = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        one.bind((interface, 0x0800))
        sockets[one] = interface
    print(WATCHING, flush=True)
    last = {}
    while True:
        for one in select.select(list(sockets), [], [])[0]:
            try:
                packet, _ = one.recvfrom(2048)
            except OSError:
                continue  # Its wire has been pulled; reported once.
            now = time.time()
            payload = packet[(packet[0] & 15) * 4 + 8 :]
            # RTP (RFC 7983 §7) in packets of sound's size; or channel data of a TURN server around it.
            inner = payload[4:] if payload[:1] and 64 <= payload[0] <= 79 else payload
            if packet[9] != 17 or len(inner) < 40 or not 128 <= inner[0] <= 191 or 192 <= inner[1] <= 223:
                continue
            key = (sockets[one], socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20]))
            if now - last.get(key, 0) > PAUSE:
                print(json.dumps({"at": now, "interface": key[0], "from": key[1], "to": key[2]}), flush=True)
            last[key] = now


class Watcher:
    """Watches on which path media arrives in a namespace, and since when."""

    def __init__(self, processes, space, interfaces):
        processes.serve(f"watch-{space}", WATCHING, space, sys.executable, __file__, "--watch", *interfaces)
        self.log = processes.folder / f"watch-{space}.log"
        self.here = {"10.77.1.1", "10.77.2.1", "10.77.3.2"} if space == CALLER else {"10.77.1.2", "10.77.2.2", "10.77.4.2"}

    def beginnings(self):
        """Every moment at which media began to arrive, in order."""
        notes = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [note for note in notes if note["to"] in self.here]


def longest_silence(path, start, end):
    """The longest stretch without sound in a recording, in milliseconds, between two times in seconds."""
    with contextlib.closing(wave.open(str(path))) as file:
        rate = file.getframerate()
        file.setpos(min(int(start * rate), file.getnframes()))
        data = file.readframes(max(0, int((end - start) * rate)))
    samples = struct.unpack(f"<{len(data) // 2}h", data)
    step = rate // 200
    longest = length = 0
    for place in range(0, len(samples) - step + 1, step):
        power = sum(one * one for one in samples[place : place + step]) / step
        is_silent = power < (32_768 * 10 ** (SOUND_DB / 20)) ** 2
        length = length + 5 if is_silent else 0
        longest = max(longest, length)
    return longest


def trial(handset, kind):
    """One call that loses its path after some seconds: how long either side was without sound."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        configure(folder)
        build_network()
        processes = Processes(folder)
        try:
            return measure(handset, kind, folder, processes)
        finally:
            processes.end()
            take_network_down()


def measure(handset, kind, folder, processes):
    way = "relayed" if kind == "relay" else "direct"
    processes.serve("exchange", "Listening", SERVER, handset, "serve", "--config", folder / "exchange.yaml")
    relays = {}
    if kind == "relay":
        for number in (1, 2):
            relays[f"10.77.9.{number}"] = processes.serve(
                f"turn{number}", "Total General servers", SERVER, "turnserver", "-c", folder / f"turn{number}.conf"
            )
    processes.serve("callee", "Ready", CALLEE, handset, "run", "--config", folder / f"callee-{way}.yaml")
    interfaces = ["signal"] if kind == "relay" else ["path1", "path2"]
    watchers = {space: Watcher(processes, space, interfaces) for space in (CALLER, CALLEE)}
    record = folder / "caller.wav"
    call = processes.start(
        CALLER,
        handset,
        "call",
        "callee@localhost",
        "--server",
        "http://10.77.9.1:8555",
        "--config",
        folder / f"caller-{way}.yaml",
        "--play",
        folder / "tone.wav",
        "--record",
        record,
        "--duration",
        DURATION,
        "--json",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 20
    while not all(watcher.beginnings() for watcher in watchers.values()):
        if time.monotonic() > end or call.poll() is not None:
            seen = [watcher.log.read_text() for watcher in watchers.values()]
            raise RuntimeError(f"no media flows both ways: {seen}, {call.communicate(timeout=30)}")
        time.sleep(0.1)
    # Long enough for every path to have been checked, and the best to be chosen.
    time.sleep(SETTLING)
    used = {space: watcher.beginnings()[-1] for space, watcher in watchers.items()}
    lost = time.time()
    if kind == "relay":
        os.kill(relays[used[CALLER]["from"]].pid, signal.SIGKILL)
    else:
        set_path(used[CALLER]["interface"][-1], kind)
    output, complaints = call.communicate(timeout=60)
    report = json.loads(output) if output.strip() else {"outcome": complaints}
    time.sleep(0.5)
    result = {"kind": kind, "outcome": report["outcome"], "path_ms": {}, "silence_ms": {}}
    for side, space in (("caller", CALLER), ("callee", CALLEE)):
        again = [
            note["at"]
            for note in watchers[space].beginnings()
            if note["at"] > lost and any(note[key] != used[space][key] for key in ("interface", "from", "to"))
        ]
        result["path_ms"][side] = round(1000 * (again[0] - lost)) if again else None
    for side, path in (("caller", record), ("callee", next((folder / "records").glob("*.wav")))):
        result["silence_ms"][side] = longest_silence(path, SETTLING - 3, DURATION - 2)
    return result


def main():
    if sys.argv[1:2] == ["--watch"]:
        watch(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset", type=pathlib.Path, help="the handset command to measure")
    parser.add_argument("--trials", type=int, default=5, help="calls for each kind of loss")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS, help="the kinds of loss")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("pathloss.py: network namespaces need root")
    for tool in ("ip", "tc", "turnserver"):
        if not shutil.which(tool):
            sys.exit(f"pathloss.py: there is no {tool}; install iproute2 and coturn")
    for _ in range(options.trials):
        for kind in options.kinds:
            print(json.dumps(trial(options.handset.resolve(), kind)), flush=True)


if __name__ == "__main__":
    main()
