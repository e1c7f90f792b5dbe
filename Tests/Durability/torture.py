"""Kills a serving exchange with SIGKILL at random moments, under load, and checks that it keeps what it has confirmed.

    torture.py HANDSET ROUNDS [--seed N] [--folder PATH] [--store postgresql://… [--stop]]

Several users invite, accept, reject, cancel and hang up, each invitee on two devices at once, while the exchange is
killed and started again ROUNDS times on one database. What the clients received is then compared with what they receive
later, and with the records of the calls:

- an invite whose sending was confirmed is there afterwards: the same key gives the same invite, and it ends once;
- an accept that was confirmed is the only one, and the inviter receives it and no other answer;
- a timer that fell due while nothing ran fires at once after the start;
- every session resumes, with each event once and in order; access tokens stay valid;
- each confirmed invite has one record, which has its outcome.

With --store, the state is in PostgreSQL, and a second exchange is a standby: it takes over in each round. In every other one the owner is
not killed but stopped with SIGSTOP until the other serves, and then continued: it must end with 19, and send nothing any more. With --stop
that is so in each round. What clients asked for and heard is also judged as a history (history.py).

Exits with 0 if all of that is so, and otherwise with 1 after naming what is not. Uses nothing but Python.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any

from history import History

TTL = 1.2  # Seconds; ends invites that are not answered.
LATE = 6.0  # Seconds of its inviter's being connected, by which a timer that is due must have fired on a busy machine.
NOT_KEPT = -32603  # The database cannot be written, and nothing was changed: the same may be asked again.
LOST = 60.0  # Seconds of the same after which an invite that has not ended is lost.


class Gone(Exception):
    """The connection broke; the request may have been carried out or not."""


class Refused(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error)
        self.code = error["code"]


class Faults:
    def __init__(self) -> None:
        self.found: list[str] = []

    def check(self, holds: bool, text: str) -> None:
        if not holds:
            self.found.append(text)
            print("FAULT:", text, flush=True)


class Exchange:
    """The process under test, and how it is started and ended."""

    loses_database = False

    def __init__(self, handset: str, folder: str) -> None:
        self.handset, self.folder = handset, folder
        self.port = free_port()
        self.process: Any = None
        self.expired: set[int] = set()  # Ports of exchanges that have lost their lease.
        self.slowest_start = 0.0
        self.log = open(os.path.join(folder, "serve.log"), "ab")

    def start(self) -> None:
        began = time.monotonic()
        self.process = subprocess.Popen(
            [self.handset, "serve", "--config", os.path.join(self.folder, "exchange.yaml"), "--listen", f"127.0.0.1:{self.port}"],
            stdout=self.log,
            stderr=self.log,
        )
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"the exchange ended by itself with {self.process.returncode}; see {self.log.name}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                time.sleep(0.005)
        self.slowest_start = max(self.slowest_start, time.monotonic() - began)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=20) != 0:
            raise SystemExit(f"the exchange ended with {self.process.returncode}")

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Pair(Exchange):
    """An exchange with a standby, both on one database of PostgreSQL: the standby takes over, and another one is the standby then."""

    def __init__(self, handset: str, folder: str, only_stops: bool = False) -> None:
        super().__init__(handset, folder)
        self.standby: Any = None
        self.rounds = self.stopped_rounds = 0
        self.only_stops = only_stops
        self.zombie: Any = None

    def spawn(self) -> tuple[subprocess.Popen, int]:
        port = free_port()
        process = subprocess.Popen(
            [self.handset, "serve", "--config", os.path.join(self.folder, "exchange.yaml"), "--listen", f"127.0.0.1:{port}"],
            stdout=self.log,
            stderr=self.log,
        )
        return process, port

    def start(self) -> None:
        began = time.monotonic()
        self.process, self.port = self.standby or self.spawn()
        self.standby = None
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"the exchange ended by itself with {self.process.returncode}; see {self.log.name}")
            if answer(self.port) not in (None, 503):
                break
            time.sleep(0.005)
            if time.monotonic() - began > 60:
                raise SystemExit(f"the standby did not take over; see {self.log.name}")
        self.slowest_start = max(self.slowest_start, time.monotonic() - began)
        if self.zombie:
            self.expired.add(self.zombie_port)
            self.zombie.send_signal(signal.SIGCONT)
            if self.zombie.wait(timeout=30) != 19:
                raise SystemExit(f"the exchange that lost its lease ended with {self.zombie.returncode}; see {self.log.name}")
            self.zombie = None
        self.standby = self.spawn()

    def kill(self) -> None:
        self.rounds += 1
        if self.rounds % 2 and not self.only_stops:
            return super().kill()
        self.stopped_rounds += 1
        self.process.send_signal(signal.SIGSTOP)
        self.zombie, self.zombie_port = self.process, self.port

    def stop(self) -> None:
        began = time.monotonic()
        while answer(self.standby[1]) != 503:
            time.sleep(0.05)
            if time.monotonic() - began > 60:
                raise SystemExit(f"the standby does not refuse requests; see {self.log.name}")
        self.standby[0].send_signal(signal.SIGTERM)
        if self.standby[0].wait(timeout=20) != 0:
            raise SystemExit(f"the standby ended with {self.standby[0].returncode}")
        super().stop()

    def end(self) -> None:
        for process in [self.process, self.zombie, self.standby[0] if self.standby else None]:
            if process and process.poll() is None:
                process.kill()
                process.wait()


def answer(port: int) -> int | None:
    """The status by which an exchange answers, 503 of a standby; None if nothing answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v1/connection")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def records(exchange: Exchange, folder: str) -> list[dict[str, Any]]:
    """The records of all calls, as `handset calls --json` prints them."""
    command = [exchange.handset, "calls", "--config", os.path.join(folder, "exchange.yaml"), "--json", "--limit", "1000000"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class WebSocket:
    """The client's half of RFC 6455 that this program needs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self.reader, self.writer, self.port = reader, writer, port

    @classmethod
    async def open(cls, port: int) -> WebSocket:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            (
                f"GET /v1/rtc HTTP/1.1\r\nHost: localhost:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
            ).encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise Gone(head)
        return cls(reader, writer, port)

    def send(self, payload: bytes, opcode: int = 1) -> None:
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x80 | opcode]) + (bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + struct.pack(">H", size))
        self.writer.write(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload)))

    async def receive(self) -> bytes:
        while True:
            first, second = await self.reader.readexactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", await self.reader.readexactly(8))
            payload = await self.reader.readexactly(size)
            if first & 0x0F == 1:
                return payload
            if first & 0x0F == 8:
                raise Gone(payload)
            if first & 0x0F == 9:
                self.send(payload, opcode=10)


async def post(port: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    text = json.dumps(body).encode()
    basic = base64.b64encode(b"torture:torture").decode()
    writer.write(
        (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {basic}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        ).encode()
        + text
    )
    answer = await reader.read()
    writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise Gone(head)
    return json.loads(content)


class Device:
    """One device: connected whenever that is possible, resuming its session."""

    def __init__(self, world: World, user: str, name: str) -> None:
        self.world, self.user, self.name = world, user, name
        self.token: Any = None
        self.session: Any = None
        self.link: Any = None
        self.after = 0
        self.last_id = 0
        self.waiting: dict[int, asyncio.Future] = {}
        self.ready = asyncio.Event()
        self.connected: list[list] = []  # [from, to]
        self.on_event: Any = lambda kind, data: None
        self.resumes = 0

    @property
    def label(self) -> str:
        return f"{self.user}/{self.name}"

    def description(self) -> dict[str, Any]:
        return {"id": self.name, "name": self.name, "capabilities": ["audio"]}

    async def run(self) -> None:
        while not self.world.over:
            try:
                await self.connect()
                while True:
                    self.take(json.loads(await self.link.receive()))
            except (Gone, OSError, asyncio.IncompleteReadError):
                pass
            finally:
                if self.ready.is_set():
                    self.connected[-1][1] = time.monotonic()
                self.ready.clear()
                if self.link:
                    self.link.writer.close()
                self.link = None
                for answer in self.waiting.values():
                    if not answer.done():
                        answer.set_exception(Gone())
                        answer.exception()  # It may no longer be awaited.
                self.waiting = {}
            await asyncio.sleep(random.uniform(0.005, 0.05))

    async def connect(self) -> None:
        port = self.world.exchange.port
        if not self.token:
            login = await post(port, "/v1.1/login", {"type": "Cima", "media_token": f"media-{self.user}"})
            self.token = login["token"]
        self.link = await WebSocket.open(port)
        start: dict[str, Any] = {"token": self.token, "device": self.description()}
        if self.session:
            start["resume"] = {"session": self.session, "after": self.after}
        asked = self.ask("session.start", start)
        while not asked.done():
            self.take(json.loads(await self.link.receive()))
        try:
            result = asked.result()
        except Refused as error:
            if error.code == NOT_KEPT and self.world.exchange.loses_database:
                raise Gone() from error
            self.world.faults.check(False, f"{self.user}/{self.name}: a good token was refused: {error}")
            self.token = None
            raise Gone() from error
        if self.session:
            self.world.faults.check(result["resumed"], f"{self.user}/{self.name}: did not resume {self.session}")
            self.resumes += 1
        if not result["resumed"]:
            self.after = result["sequence"]
        self.session = result["session"]
        registered = self.ask("device.register", {"device": self.description()})
        while not registered.done():
            self.take(json.loads(await self.link.receive()))
        registered.result()
        self.connected.append([time.monotonic(), None])
        self.ready.set()

    def online(self, begin: float, end: float) -> float:
        """The seconds of that time for which it was connected: between kills in a row it receives nothing."""
        spans = ((since, until if until is not None else end) for since, until in self.connected)
        return sum(max(0, min(end, until) - max(begin, since)) for since, until in spans)

    def take(self, message: dict[str, Any]) -> None:
        is_farewell = message.get("params", {}).get("type") == "moveRequested"
        if self.link.port in self.world.exchange.expired and not is_farewell:
            self.world.history.hear_late(f"{self.link.port}", f"{self.label} got {json.dumps(message)}")
        if "id" in message:
            answer = self.waiting.pop(message["id"], None)
            if answer and not answer.done():
                if "error" in message:
                    answer.set_exception(Refused(message["error"]))
                else:
                    answer.set_result(message["result"])
            return
        event = message["params"]
        self.world.faults.check(
            event["sequence"] > self.after, f"{self.user}/{self.name}: event {event['sequence']} ({event['type']}) came after {self.after}"
        )
        self.after = max(self.after, event["sequence"])
        self.world.history.hear(self.label, self.user, event["sequence"], event["type"], event["data"])
        self.on_event(event["type"], event["data"])

    def ask(self, method: str, params: dict[str, Any]) -> asyncio.Future:
        if not self.link:
            raise Gone()
        self.last_id += 1
        answer = asyncio.get_running_loop().create_future()
        self.waiting[self.last_id] = answer
        self.link.send(json.dumps({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).encode())
        return answer

    async def insist(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Asks again after each break, until there is an answer."""
        kind = method.split(".")[-1]
        while True:
            try:
                await asyncio.wait_for(self.ready.wait(), 120)
                operation = self.world.history.invoke(self.label, kind, params.get("idempotency_key", params.get("invite")))
                result = await asyncio.wait_for(self.ask(method, params), 30)
                operation.ok(result.get("invite") if kind == "send" else None)
                return result
            except Gone:
                await asyncio.sleep(0.01)
            except Refused as error:
                operation.fail(error.code)
                if error.code != NOT_KEPT or not self.world.exchange.loses_database:
                    raise
                await asyncio.sleep(0.1)


class Inviter:
    """Sends invites, and keeps the events of each."""

    def __init__(self, world: World, device: Device, invitee: str) -> None:
        self.world, self.device, self.invitee = world, device, invitee
        self.heard: dict[str, list] = {}  # invite → [(kind, data)]
        self.ended: dict[str, list[float]] = {}  # invite → when
        self.sent: dict[str, str] = {}  # invite → what was to happen
        self.news = asyncio.Event()
        device.on_event = self.hear

    def hear(self, kind: str, data: dict[str, Any]) -> None:
        if kind in ("inviteAccepted", "inviteRejected", "inviteTimedOut"):
            self.heard.setdefault(data["invite"], []).append((kind, data))
        if kind == "inviteEnded":
            self.ended.setdefault(data["invite"], []).append(time.monotonic())
        self.news.set()

    async def run(self) -> None:
        number = 0
        while not self.world.closing:
            number += 1
            key = f"{self.device.user}-{number}"
            plan = random.choice(["accept", "accept", "accept", "reject", "ignore", "cancel"])
            terms = {
                "to": self.invitee,
                "ttl": TTL if plan == "ignore" else 300,
                "idempotency_key": key,
                "data": {"plan": plan},
                "timeout_payload": {"missed": key},
            }
            began = time.monotonic()
            first = await self.device.insist("invite.send", terms)
            answered = time.monotonic()
            invite = first["invite"]
            self.world.faults.check(invite not in self.sent, f"{key}: {invite} was another's already")
            self.sent[invite] = plan
            if random.random() < 0.3:
                again = await self.device.insist("invite.send", terms)
                self.world.faults.check(again["invite"] == invite, f"{key}: {invite} became {again['invite']} for the same key")
            if plan == "cancel":
                try:
                    await self.device.insist("invite.cancel", {"invite": invite})
                except Refused as error:
                    # The answer was lost, and the cancel repeated.
                    self.world.faults.check(error.code == 4091, f"{invite}: cancelling said {error}")
            await self.finish(invite, plan, answered, began)

    async def finish(self, invite: str, plan: str, answered: float, began: float) -> None:
        while invite not in self.ended:
            self.news.clear()
            left = LOST - self.device.online(answered, time.monotonic())
            if left <= 0:
                self.world.faults.check(False, f"{invite} ({plan}) was confirmed and never ended: lost")
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), left)
        if plan == "ignore":
            ended = self.ended[invite][0]
            late = self.device.online(answered + TTL, ended)
            self.world.faults.check(late <= LATE, f"{invite}: timed out after {late:.1f} s in which its inviter was connected")
            self.world.faults.check(ended >= began + TTL - 0.05, f"{invite}: timed out {began + TTL - ended:.2f} s early")
        if plan == "accept" and random.random() < 0.7:
            try:
                await self.device.insist("call.end", {"invite": invite, "reason": "completed", "duration_ms": 1})
            except Refused as error:
                self.world.faults.check(error.code == 4043, f"{invite}: hanging up said {error}")


class Invitee:
    """Two devices of one user, both of which answer each invite."""

    def __init__(self, world: World, devices: list[Device]) -> None:
        self.world, self.devices = world, devices
        self.confirmed: dict[str, list[str]] = {}  # invite → the devices whose answer was confirmed
        self.tasks: set[asyncio.Future] = set()
        for device in devices:
            device.on_event = lambda kind, data, device=device: self.hear(device, kind, data)

    def hear(self, device: Device, kind: str, data: dict[str, Any]) -> None:
        if kind != "inviteReceived":
            return
        plan = (data.get("data") or {}).get("plan")
        if plan in ("accept", "reject"):
            task = asyncio.ensure_future(self.answer(device, plan, data["invite"]))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def answer(self, device: Device, plan: str, invite: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        try:
            await device.insist(f"invite.{plan}", {"invite": invite, "data": {"from": device.name}})
            self.confirmed.setdefault(invite, []).append(device.name)
        except Refused as error:
            self.world.faults.check(error.code == 4090, f"{invite}: {plan} by {device.name} said {error}")


class World:
    def __init__(self, exchange: Any, pairs: int) -> None:
        self.exchange = exchange
        self.faults = Faults()
        self.history = History()
        self.closing = self.over = False
        self.inviters: list[Inviter] = []
        self.invitees: list[Invitee] = []
        self.devices: list[Device] = []
        for pair in range(pairs):
            caller = Device(self, f"caller{pair}", "phone")
            desks = [Device(self, f"callee{pair}", name) for name in ("desk", "mobile")]
            self.devices += [caller, *desks]
            self.inviters.append(Inviter(self, caller, f"callee{pair}"))
            self.invitees.append(Invitee(self, desks))

    async def run(self, rounds: int) -> None:
        links = [asyncio.ensure_future(device.run()) for device in self.devices]
        for device in self.devices:
            await asyncio.wait_for(device.ready.wait(), 60)
        work = [asyncio.ensure_future(inviter.run()) for inviter in self.inviters]
        loop = asyncio.get_running_loop()
        for number in range(rounds):
            # Mostly under load, and at times before all devices are back; but a busy machine must not keep a device out
            # for ever.
            if number % 5 == 0:
                for device in self.devices:
                    await asyncio.wait_for(device.ready.wait(), 120)
            await asyncio.sleep(random.choice([random.uniform(0.02, 0.3), random.uniform(0.3, 1.0)]))
            self.exchange.kill()
            if random.random() < 0.2:
                await asyncio.sleep(TTL)
            await loop.run_in_executor(None, self.exchange.start)
            if (number + 1) % 50 == 0:
                print(f"{number + 1} rounds, {sum(len(i.sent) for i in self.inviters)} invites", flush=True)
            for task in work:
                if task.done():
                    task.result()
        self.closing = True
        await asyncio.wait_for(asyncio.gather(*work), 120)
        for invitee in self.invitees:
            await asyncio.wait_for(asyncio.gather(*invitee.tasks), 60)
        self.over = True
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    def judge(self, records: list[dict[str, Any]]) -> None:
        for fault in self.history.faults():
            self.faults.check(False, fault)
        by_invite: dict[str, list] = {}
        for record in records:
            by_invite.setdefault(record["invite"], []).append(record)
        words = {"inviteAccepted": None, "inviteRejected": "declined", "inviteTimedOut": "noAnswer"}
        for inviter, invitee in zip(self.inviters, self.invitees):
            for invite, plan in inviter.sent.items():
                heard = inviter.heard.get(invite, [])
                self.faults.check(len(inviter.ended.get(invite, [])) == 1, f"{invite} ({plan}) ended other than once")
                self.faults.check(
                    len(heard) == (0 if plan == "cancel" else 1), f"{invite} ({plan}): the inviter heard {[kind for kind, _ in heard]}"
                )
                confirmed = set(invitee.confirmed.get(invite, []))
                self.faults.check(len(confirmed) <= 1, f"{invite}: answered by {sorted(confirmed)}")
                if confirmed and heard:
                    self.faults.check(
                        {heard[0][1].get("device")} == confirmed,
                        f"{invite}: {sorted(confirmed)} answered, and the inviter heard {heard[0][1]}",
                    )
                found = by_invite.get(invite, [])
                self.faults.check(len(found) == 1, f"{invite}: {len(found)} records")
                if not found:
                    continue
                reason = found[0]["reason"]
                if plan == "cancel":
                    right = reason == "cancelled"
                elif heard and heard[0][0] == "inviteAccepted":
                    right = reason in (None, "completed") and found[0]["invitee_device"] == heard[0][1]["device"]
                else:
                    right = bool(heard) and reason == words[heard[0][0]]
                self.faults.check(right, f"{invite} ({plan}): the record says {reason}")


def write_configuration(folder: str, pairs: int, store: str | None) -> None:
    def digest(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    users = [f"{kind}{pair}" for pair in range(pairs) for kind in ("caller", "callee")]
    lines = [
        "listen: 127.0.0.1:0",
        *([f"store: {store}", "store_lease_seconds: 1", "store_replication: none"] if store else ["database: exchange.sqlite"]),
        "presence: false",
        "apps:",
        "  - key: torture",
        f"    secret_hash: {digest('torture')}",
        "users:",
    ]
    for user in users:
        lines += [f"  - id: {user}", f"    media_token_hashes: [{digest('media-' + user)}]"]
    with open(os.path.join(folder, "exchange.yaml"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("handset")
    parser.add_argument("rounds", type=int)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--store", default=None, help="a database of PostgreSQL, empty")
    parser.add_argument("--stop", action="store_true", help="with --store: each owner is stopped, and none killed")
    options = parser.parse_args()
    if options.stop and not options.store:
        parser.error("--stop needs --store")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    random.seed(seed)
    folder = tempfile.mkdtemp(prefix="handset-torture-", dir=options.folder)
    write_configuration(folder, options.pairs, options.store)
    program = os.path.abspath(options.handset)
    exchange = Pair(program, folder, options.stop) if options.store else Exchange(program, folder)
    exchange.start()
    world = World(exchange, options.pairs)
    try:
        asyncio.run(world.run(options.rounds))
        exchange.stop()
        world.judge(records(exchange, folder))
    finally:
        exchange.end()
    invites = sum(len(inviter.sent) for inviter in world.inviters)
    resumes = sum(device.resumes for device in world.devices)
    heard, asked = len(world.history.events), len(world.history.operations)
    print(f"{asked} requests and {heard} events in the history, {len(world.history.late)} exchanges sent one more output after their lease")
    print(
        f"{options.rounds} kills, {invites} invites, {resumes} sessions resumed, slowest start "
        f"{exchange.slowest_start:.2f} s, seed {seed}: {len(world.faults.found)} faults"
    )
    world.faults.check(invites > 0 and (resumes > 0 or options.rounds == 0), "there was no load")
    if world.faults.found:
        print(f"kept: {folder}")
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
