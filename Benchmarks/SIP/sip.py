#!/usr/bin/env python3
"""Measures the cost of calls by SIP: scripts/bench sip.

usage: sip.py HANDSET FOLDER [--seconds S] [--rates "N N…"] [--calls N] [--trials N]

Prints a JSON object on each line:
  rate     SIPp calls a device over UDP N times a second, which answers; SIPp hangs up at once, and sends no media. The device has
           one core, SIPp's own callee (the floor) the same one after it.
  memory   resident size of a device that is connected, with no call and with N established ones
  accounts resident size of a device with one registered account, and with N
  dialling time from the order to dial until the INVITE arrives, of a device and of baresip

Needs root, because it runs in a network namespace of its own: baresip takes no loopback address.
"""

import argparse
import contextlib
import csv
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

HOST, PORT, FLOOR_PORT, STUB_PORT = "10.99.0.1", 25071, 25072, 25073
CORE, OTHER = "0", str(min(1, (os.cpu_count() or 1) - 1))


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def network():
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "d0", "type", "veth", "peer", "name", "d1")
    run("ip", "address", "add", f"{HOST}/24", "dev", "d0")
    for end in ("d0", "d1"):
        run("ip", "link", "set", end, "up")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


class Device:
    """`handset run` at a fixed UDP port, on one core."""

    def __init__(self, handset, folder, server=f"{HOST}:{STUB_PORT}"):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "password").write_text("secret\n")
        (folder / "device.yaml").write_text(
            "account:\n  kind: sip\n  password_file: password\n  allow_plain_text: true\n"
            f"  sip: {{ address: 'sip:alice@sip.test', server: '{server}', transport: udp, register_s: 0, port: {PORT}, "
            "calls_from: anybody }\n"
            "answer: { mode: auto, max_calls: 1000 }\nbehaviour: { source: echo }\n"
            f"media: {{ address: {HOST}, allow_plain_rtp: true, offers: plain, workers: 1 }}\n"
            "control: { socket: control.sock }\n"
        )
        self.log = folder / "device.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["taskset", "-c", CORE, handset, "run", "--config", str(folder / "device.yaml")],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
        self.pid = self.process.pid
        deadline = time.monotonic() + 20
        while "Ready" not in self.log.read_text(errors="replace"):
            if time.monotonic() > deadline or self.process.poll() is not None:
                sys.exit(f"sip: the device is not ready: {self.log.read_text(errors='replace')[-1000:]}")
            time.sleep(0.05)

    def stop(self):
        stop(self.process)


def stop(process):
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
        return
    process.kill()
    process.wait()


@contextlib.contextmanager
def stopping(thing):
    try:
        yield thing
    finally:
        thing.stop() if hasattr(thing, "stop") else stop(thing)


def sipp_calls(folder, port, rate, count, duration_ms=0, seconds=90):
    """Runs SIPp's caller. Returns the figures of its last line of statistics."""
    for file in folder.glob("uac_*_.csv"):
        file.unlink()
    subprocess.run(
        [
            "taskset",
            "-c",
            OTHER,
            "sipp",
            f"{HOST}:{port}",
            "-sn",
            "uac",
            "-s",
            "alice",
            "-i",
            HOST,
            "-p",
            "25099",
            "-r",
            str(rate),
            "-m",
            str(count),
            "-d",
            str(duration_ms),
            "-l",
            str(max(10, 4 * rate, count)),
            "-nostdin",
            "-trace_stat",
            "-fd",
            "1",
            "-timeout",
            f"{seconds}s",
        ],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=seconds + 30,
    )
    with open(next(folder.glob("uac_*_.csv"))) as file:
        last = list(csv.DictReader(file, delimiter=";"))[-1]
    return {"succeeded": int(last["SuccessfulCall(C)"]), "failed": int(last["FailedCall(C)"]), "repeated": int(last["Retransmissions(C)"])}


def rates(handset, folder, numbers, seconds):
    for rate in numbers:
        with stopping(Device(handset, folder / "device")) as device:
            # Code and stacks are in memory from then on.
            sipp_calls(folder, PORT, 10, 20)
            before, begun = cpu_seconds(device.pid), time.monotonic()
            row = sipp_calls(folder, PORT, rate, rate * seconds)
            took = time.monotonic() - begun
            row["cpu_us"] = 1e6 * (cpu_seconds(device.pid) - before) / (rate * seconds)
        with open(os.devnull, "wb") as nothing:
            floor = subprocess.Popen(
                ["taskset", "-c", CORE, "sipp", "-sn", "uas", "-i", HOST, "-p", str(FLOOR_PORT), "-nostdin"],
                stdout=nothing,
                stderr=nothing,
                cwd=folder,
            )
        with stopping(floor):
            time.sleep(0.5)
            before = cpu_seconds(floor.pid)
            sipp_calls(folder, FLOOR_PORT, rate, rate * seconds)
            row["floor_us"] = 1e6 * (cpu_seconds(floor.pid) - before) / (rate * seconds)
        row["per_second_of_a_core"] = 1e6 / row["cpu_us"]
        print(json.dumps({"kind": "rate", "rate": rate, "seconds": round(took, 2), **row}), flush=True)


def memory(handset, folder, calls):
    with stopping(Device(handset, folder / "device")) as device:
        sipp_calls(folder, PORT, 10, 20)
        time.sleep(2)
        idle = resident_kb(device.pid)
        caller = subprocess.Popen(
            [
                "sipp",
                f"{HOST}:{PORT}",
                "-sn",
                "uac",
                "-s",
                "alice",
                "-i",
                HOST,
                "-p",
                "25099",
                "-r",
                "50",
                "-m",
                str(calls),
                "-d",
                "20000",
                "-l",
                str(calls),
                "-nostdin",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
        time.sleep(calls / 50 + 4)
        standing = resident_kb(device.pid)
        stop(caller)
    print(json.dumps({"kind": "memory", "calls": calls, "idle_kb": idle, "each_kb": round((standing - idle) / calls, 1)}), flush=True)


def registered(handset, folder, accounts):
    """Resident size of a device whose accounts have all registered, in kB."""
    folder.mkdir(exist_ok=True)
    (folder / "password").write_text("secret\n")
    entry = (
        "  - name: a{0}\n    account: {{ kind: sip, password_file: password, allow_plain_text: true,\n"
        "      sip: {{ address: 'sip:a{0}@sip.test', server: '" + f"{HOST}:{STUB_PORT}" + "', transport: udp }} }}\n"
        "    behaviour: {{ source: echo }}\n"
    )
    (folder / "accounts.yaml").write_text(
        "accounts:\n"
        + "".join(entry.format(number) for number in range(accounts))
        + f"media: {{ address: {HOST}, workers: 1 }}\ncontrol: {{ socket: control.sock }}\n"
    )
    with (
        contextlib.closing(Stub()) as stub,
        open(folder / "log", "wb") as log,
        stopping(
            subprocess.Popen([handset, "run", "--config", str(folder / "accounts.yaml")], stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        ) as device,
    ):
        names, deadline = set(), time.monotonic() + 20
        while len(names) < accounts:
            if time.monotonic() > deadline or device.poll() is not None:
                sys.exit(f"sip: {len(names)} of {accounts} accounts registered: {(folder / 'log').read_text()[-1000:]}")
            names.add(stub.next_registration())
            names.discard(None)
        # Logs are written, and the memory of registering is freed.
        time.sleep(3)
        return resident_kb(device.pid)


def accounts(handset, folder, number):
    one = registered(handset, folder / "one", 1)
    many = registered(handset, folder / "many", number)
    print(json.dumps({"kind": "accounts", "accounts": number, "one_kb": one, "each_kb": round((many - one) / (number - 1), 1)}), flush=True)


class Stub:
    """A server that records when an INVITE arrives, and refuses it."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((HOST, STUB_PORT))

    def close(self):
        self.socket.close()

    def next_invite(self, seconds=5):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.socket.settimeout(deadline - time.monotonic())
            try:
                data, peer = self.socket.recvfrom(65536)
            except TimeoutError:
                return None
            moment = time.monotonic()
            method = data.split(b" ", 1)[0]
            if method in (b"INVITE", b"REGISTER"):
                self.answer(data, peer, b"486 Busy Here" if method == b"INVITE" else b"200 OK")
            if method == b"INVITE":
                return moment
        return None

    def next_registration(self, seconds=1):
        """Grants the next registration. Returns its To header."""
        self.socket.settimeout(seconds)
        try:
            data, peer = self.socket.recvfrom(65536)
        except TimeoutError:
            return None
        if not data.startswith(b"REGISTER"):
            return None
        lines = data.split(b"\r\n")
        contact = [line for line in lines if line.lower().startswith((b"contact:", b"m:"))]
        self.answer(data, peer, b"200 OK", contact)
        return next(line for line in lines if line.lower().startswith((b"to:", b"t:")))

    def answer(self, data, peer, status, more=()):
        lines = [
            line
            for line in data.split(b"\r\n\r\n", 1)[0].split(b"\r\n")[1:]
            if line.split(b":", 1)[0].strip().lower() in (b"via", b"v", b"from", b"f", b"to", b"t", b"call-id", b"i", b"cseq")
        ]
        lines = [line + b";tag=stub" if line.lower().startswith((b"to:", b"t:")) else line for line in lines]
        self.socket.sendto(b"SIP/2.0 " + status + b"\r\n" + b"\r\n".join([*lines, *more]) + b"\r\nContent-Length: 0\r\n\r\n", peer)


def dial_device(device):
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(device.folder / "control.sock"))
        begun = time.monotonic()
        control.sendall(b'{"request":"call","to":"bob"}\n')
        control.recv(4096)
        return begun


def dial_baresip():
    message = json.dumps({"command": "dial", "params": f"sip:bob@{HOST}:{STUB_PORT}"})
    with socket.create_connection((HOST, 25320), 2) as control:
        begun = time.monotonic()
        control.sendall(f"{len(message)}:{message},".encode())
        control.settimeout(2)
        with contextlib.suppress(OSError):
            control.recv(65536)
        return begun


def dialling(handset, folder, trials):
    stub = Stub()
    results = {"device": [], "baresip": []}
    home = folder / "baresip"
    home.mkdir()
    (home / "config").write_text(
        f"sip_listen {HOST}:25120\nmodule_path /usr/lib/baresip/modules\nmodule stdio.so\nmodule g711.so\nmodule ausine.so\n"
        f"module_app account.so\nmodule_app menu.so\nmodule_app ctrl_tcp.so\naudio_source ausine,440\n"
        f"ctrl_tcp_listen {HOST}:25320\nnet_interface d0\n"
    )
    (home / "accounts").write_text(f"<sip:alice@{HOST}:{STUB_PORT}>;regint=0;audio_codecs=pcmu\n")
    with open(home / "log", "wb") as log:
        baresip = subprocess.Popen(["baresip", "-f", home], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    with stopping(Device(handset, folder / "device")) as device, stopping(baresip):
        time.sleep(2)
        for _ in range(trials):
            for name, dial in (("device", lambda: dial_device(device)), ("baresip", dial_baresip)):
                begun = dial()
                if arrived := stub.next_invite():
                    results[name].append(1_000 * (arrived - begun))
                # The refusal's ACK, and the tones of a busy line.
                time.sleep(0.5)
    for name, times in results.items():
        if times:
            print(
                json.dumps(
                    {
                        "kind": "dialling",
                        "by": name,
                        "count": len(times),
                        "p50_ms": round(statistics.median(times), 2),
                        "max_ms": round(max(times), 2),
                    }
                ),
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("handset")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rates", default="50 100 200 300 500")
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--accounts", type=int, default=32, help="2 to 32")
    parser.add_argument("--trials", type=int, default=20)
    options = parser.parse_args()
    folder = pathlib.Path(options.folder) / "sip"
    folder.mkdir(exist_ok=True)
    network()
    dialling(options.handset, folder, options.trials)
    accounts(options.handset, folder, options.accounts)
    rates(options.handset, folder, [int(number) for number in options.rates.split()], options.seconds)
    memory(options.handset, folder, options.calls)


if __name__ == "__main__":
    main()
