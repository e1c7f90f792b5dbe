#!/usr/bin/env python3
"""Puts an exchange under load: many connections, many invites, a kill, and all devices reconnecting.

usage: load.py HANDSET DEVICES [--connections "N N…"] [--seconds S] [--rate N] [--durability full|normal] [--folder PATH]
               [--tls | --store URL [--standby kill|drain]]

HANDSET is the program, which serves in a separate process; DEVICES is the load generator. Prints a line of JSON for each
number of connections.

With --standby a second exchange on the same database takes over in the middle of the paced invites. Devices know both addresses, repeat
what was not answered, and move when they are asked to; `takeover` has how many invites failed, and for how long no exchange served.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import hashlib
import hmac
import json
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SECRET = "a secret for load, of 32 bytes or more"
#: Invites at a time in the measurement of the highest rate.
WINDOW = 512
#: Devices that are connected before memory is measured: code that the first ones load counts once.
WARM = 50
#: The configured limits on what a connection may send.
UNLIMITED = "messages_per_second: 100000\nmessage_burst: 100000\n"


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(user: str) -> str:
    """A signed token for a full login, as in docs/protocol.md."""
    now = int(time.time())
    claims = {"iss": "load", "sub": user, "iat": now, "exp": now + 86_400, "jti": f"load-{user}"}
    text = ".".join(encode(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{text}.{encode(hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest())}"


def certificate(folder: pathlib.Path) -> str:
    """The configuration lines for a new certificate on P-256, the usual curve."""
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "30",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
            folder / "exchange.key",
            "-out",
            folder / "exchange.pem",
        ],
        check=True,
        capture_output=True,
    )
    return "certificate:\n  chain_file: exchange.pem\n  key_file: exchange.key\n"


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Exchange:
    """`handset serve` as its users run it, with a database."""

    def __init__(
        self,
        program: str,
        folder: pathlib.Path,
        users: list[str],
        durability: str,
        is_secure: bool = False,
        limits: str = UNLIMITED,
        store: str | None = None,
    ) -> None:
        self.program, self.folder, self.waits = program, folder, bool(store)
        self.port = free_port()
        self.configuration = folder / "exchange.yaml"
        secret = folder / "key.secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        digest = hashlib.sha256(b"load").hexdigest()
        accounts = "".join(f"  - id: {user}\n" for user in users)
        kept = f"database: exchange.sqlite\ndatabase_durability: {durability}\n"
        if store:
            subprocess.run(["psql", store, "-qc", "DROP SCHEMA IF EXISTS handset CASCADE"], check=True, capture_output=True)
            kept = f"store: {store}\nstore_replication: none\nstore_owner_url: http://127.0.0.1:{self.port}\n"
        self.configuration.write_text(
            f"listen: 127.0.0.1:{self.port}\n{certificate(folder) if is_secure else ''}{kept}web_phone: false\npresence: false\n{limits}"
            f"apps:\n  - key: load\n    secret_hash: {digest}\n"
            f"api_keys:\n  - key: load\n    secret_file: {secret}\nusers:\n{accounts}"
        )
        self.start()

    def start(self) -> float:
        """Starts it, and waits until it listens. Returns the seconds that took."""
        self.launch()
        return self.wait()

    def launch(self) -> None:
        log = open(self.folder / "exchange.log", "ab")
        self.process = subprocess.Popen(
            [self.program, "serve", "--config", self.configuration, "--listen", f"127.0.0.1:{self.port}", "--log-level", "warning"],
            stdout=log,
            stderr=log,
        )

    def standby(self) -> Exchange:
        """Another one on its database."""
        other = copy.copy(self)
        other.port = free_port()
        other.configuration = self.folder / "standby.yaml"
        other.configuration.write_text(self.configuration.read_text().replace(f"127.0.0.1:{self.port}", f"127.0.0.1:{other.port}"))
        other.launch()
        while not other.listens():
            time.sleep(0.01)
        return other

    def wait(self) -> float:
        began = time.monotonic()
        while True:
            if self.serves():
                return time.monotonic() - began
            if self.process.poll() is not None or time.monotonic() - began > 60:
                sys.exit(f"the exchange does not listen: {(self.folder / 'exchange.log').read_text()[-2_000:]}")
            time.sleep(0.002)

    def serves(self) -> bool:
        """Whether it answers requests: one that waits for its database answers them with 503."""
        if not self.waits:
            return self.listens()
        with contextlib.suppress(OSError), contextlib.closing(socket.create_connection(("127.0.0.1", self.port))) as connection:
            connection.settimeout(5)
            connection.sendall(b"GET /v1/connection HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return b" 503 " not in connection.recv(64)
        return False

    def listens(self) -> bool:
        with contextlib.suppress(OSError), contextlib.closing(socket.create_connection(("127.0.0.1", self.port))):
            return True
        return False

    def drain(self) -> None:
        """Asks it to end in order, and does not wait."""
        self.process.terminate()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def resident_kb(self) -> int:
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])
        return 0

    def cpu_seconds(self) -> float:
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Devices:
    """The load generator."""

    def __init__(self, program: str, port: int, users: list[str], folder: pathlib.Path, is_secure: bool) -> None:
        tokens = folder / "devices.txt"
        tokens.write_text("".join(f"{user} {sign(user)}\n" for user in users))
        self.process = subprocess.Popen(
            [program, str(port), str(tokens), *["--tls"] * is_secure], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do(self, command: str) -> dict:
        self.begin(command)
        return self.result()

    def begin(self, command: str) -> None:
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def result(self) -> dict:
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("the load generator ended")
        return json.loads(answer)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def with_cpu(exchange: Exchange, devices: Devices, command: str) -> dict:
    """The result of a command, with the CPUs that the exchange used for it."""
    before, began = exchange.cpu_seconds(), time.monotonic()
    result = devices.do(command)
    result["cpus"] = round((exchange.cpu_seconds() - before) / (time.monotonic() - began), 2)
    return result


class Gap(threading.Thread):
    """Asks an owner and its standby in turn until the standby serves."""

    def __init__(self, owner: Exchange, standby: Exchange) -> None:
        super().__init__(daemon=True)
        self.owner, self.standby = owner, standby
        self.seen = self.served = time.monotonic()
        self.start()

    def run(self) -> None:
        while True:
            if self.standby.serves():
                self.served = time.monotonic()
                return
            asked = time.monotonic()
            with contextlib.suppress(OSError):
                if self.owner.serves():
                    self.seen = asked
            time.sleep(0.005)


def take_over(arguments: argparse.Namespace, owner: Exchange, standby: Exchange, devices: Devices, rate: float) -> dict:
    """Ends the owner in the middle of paced invites. The generator's clock is this one."""
    devices.do(f"also {standby.port}")
    devices.begin(f"paced {rate} {2 * arguments.seconds + 5}")
    time.sleep(arguments.seconds)
    gap = Gap(owner, standby)
    lost = time.monotonic()
    if arguments.standby == "drain":
        owner.drain()
    else:
        owner.kill()
    gap.join(60)
    result = devices.result()
    result["without_owner_s"] = round(gap.served - gap.seen, 3)
    result["served_after_s"] = round(gap.served - lost, 3)
    result["ended"] = owner.process.wait(20)
    result["back"] = devices.do(f"settle {gap.seen}")
    return result


def measure(arguments: argparse.Namespace, count: int) -> dict:
    users = [f"user{number}" for number in range(count)]
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="load-") as name:
        folder = pathlib.Path(name)
        exchange = Exchange(arguments.handset, folder, users, arguments.durability, arguments.tls, store=arguments.store)
        owner = exchange
        with contextlib.ExitStack() as ends:
            ends.callback(owner.kill)
            devices = Devices(arguments.devices, exchange.port, users, folder, arguments.tls)
            ends.callback(devices.stop)
            idle = exchange.resident_kb()
            warm = min(WARM, count // 2)
            devices.do(f"hold {warm}")
            time.sleep(1)
            warm_kb = exchange.resident_kb()
            held = devices.do(f"hold {count}")
            time.sleep(3)
            full = exchange.resident_kb()
            most = [with_cpu(exchange, devices, f"invites {min(WINDOW, count // 2)} {arguments.seconds}") for _ in range(arguments.rounds)]
            best = statistics.median(round_["per_second"] for round_ in most)
            half = with_cpu(exchange, devices, f"paced {arguments.rate or best / 2} {arguments.seconds}")
            loaded = exchange.resident_kb()
            rate = arguments.rate or best / 2
            if arguments.standby:
                exchange = owner.standby()
                ends.callback(exchange.kill)
                takeover = take_over(arguments, owner, exchange, devices, rate)
                back = takeover.pop("back")
            else:
                takeover = None
                lost = time.monotonic()
                # The clock of the generator is the same one.
                owner.kill()
                away = exchange.start()
                back = devices.do(f"settle {lost}")
                back["start_s"] = round(away, 3)
        return {
            "connections": count,
            "held": held,
            "idle_kb": idle,
            "warm_kb": warm_kb,
            "held_kb": full,
            "loaded_kb": loaded,
            "logins_per_second": round((count - warm) / max(held["seconds"], 0.001)),
            "per_connection_kb": round((full - warm_kb) / (count - warm), 1),
            "rounds": most,
            "per_second": best,
            "half": half,
            "rate": rate,
            "resume": back,
            "takeover": takeover,
            "tls": arguments.tls,
            "durability": arguments.durability,
            "store": bool(arguments.store),
            "standby": arguments.standby,
            "load_average": round(os.getloadavg()[0], 1),
            "scheduling": "fifo" if os.sched_getscheduler(0) == os.SCHED_FIFO else "normal",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset")
    parser.add_argument("devices")
    parser.add_argument("--connections", default="100 300 1000 3000 10000")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, help="paced invites per second, in place of half of the most; to compare two programs")
    parser.add_argument("--durability", default="full", choices=("full", "normal"))
    parser.add_argument("--tls", action="store_true", help="TLS 1.3 in place of plain text")
    parser.add_argument(
        "--store", help="postgresql://…, a database of its own in place of SQLite; what is in its schema handset is removed"
    )
    parser.add_argument(
        "--standby", choices=("kill", "drain"), help="with --store: another exchange takes over from one that is killed, or ends in order"
    )
    parser.add_argument("--folder", help="where the databases go; the disk matters")
    arguments = parser.parse_args()
    if arguments.store and arguments.tls or arguments.standby and not arguments.store:
        parser.error("--standby needs --store, which is measured in plain text")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        # Exchange and generator run before all other work of the machine, as in the other benchmarks.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        print("load: SCHED_FIFO is not allowed here; other programs will show in the figures", file=sys.stderr)
    counts = [int(word) for word in arguments.connections.split()]
    if hard != resource.RLIM_INFINITY and hard < max(counts) + 100:
        sys.exit(f"a process may open {hard} files here, too few for {max(counts)} connections: raise `ulimit -Hn`")
    for count in counts:
        print(f"load: {count} connections", file=sys.stderr)
        print(json.dumps(measure(arguments, count)), flush=True)


if __name__ == "__main__":
    main()
