"""The device that is attacked: `handset run` with a SIP account over UDP, its SIP server, and the kernel's figures of its process."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from control import TOKEN
from wire import MAGIC, Address, Message, Socket, request

HOST = "127.0.0.1"
SERVER = "127.0.0.9"  # The host of the SIP server.
MOST_CALLS = 24  # `answer.max_calls`.
REGISTERED = 60  # Seconds for which the server registers the device.
CALLERS = ["caller@evil.test", "bystander-1@sip.test", "bystander-2@sip.test"]  # Floods from other names take no calls.
TICKS = os.sysconf("SC_CLK_TCK")
PIPE = 4096  # Bytes of log that the kernel keeps unread: ten lines.
MIB = 1 << 20


def machine_memory() -> int:
    """Bytes of this machine's memory."""
    return int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) * 1024


# Memory of a device beyond that at rest. Each part is a limit of the program: `SIPLimits.transactionMemory`; what calls keep of their
# peer's descriptions and for their media (docs/security.md, docs/benchmarks.md); lines that wait in `LogWriter` and are being written.
# The last part is for messages that are being read.
TRANSACTIONS = min(max(machine_memory() // 16, 8 * MIB), 64 * MIB)
OF_CALLS = MOST_CALLS * (64 + 200) * 1024
MOST_MEMORY = TRANSACTIONS + OF_CALLS + 2 * MIB + 8 * MIB
# The limit after a flood: at most a quarter of its memory is kept.
MOST_KEPT = TRANSACTIONS // 4 + OF_CALLS + 8 * MIB


class Server:
    """The device's SIP server: it accepts every registration, and sends OPTIONS each second to see that the device answers."""

    def __init__(self) -> None:
        self.socket: Socket | None = None
        self.last: Message | None = None
        self.contact: Address | None = None
        self.registered, self.answered = [], time.monotonic()

    async def open(self) -> Server:
        self.socket = await Socket.open(SERVER, self.hear)
        return self

    def hear(self, data: bytes, source: Address) -> None:
        message = Message.parse(data)
        if message is None:
            return
        if message.status:
            self.answered = time.monotonic()
        elif message.method == "REGISTER":
            if self.last is None or message["CSeq"] != self.last["CSeq"]:  # Not a retransmission.
                self.registered.append(time.monotonic())
            self.last, self.contact = message, source
            contact = ("Contact", f"{message['Contact']};expires={REGISTERED}")
            self.socket.send(message.answer(200, headers=[contact], tag="registrar").data(), source)

    async def ping(self) -> None:
        """Sends OPTIONS until it is cancelled. A lost one is not repeated, because the next one follows."""
        self.answered, number = time.monotonic(), 0
        while True:
            number += 1
            branch, call = f"{MAGIC}ping{number}", f"ping-{number}"
            ping = request(
                "OPTIONS", "sip:echo@sip.test", self.socket.address, branch, "<sip:sip.test>;tag=1", "<sip:echo@sip.test>", call, 1
            )
            self.socket.send(ping.data(), self.contact)
            await asyncio.sleep(1)

    @property
    def silence(self) -> float:
        """Seconds for which the device has not answered its server."""
        return time.monotonic() - self.answered


class Device:
    """`handset run` that answers calls and echoes them. Its log goes through a small pipe, which can be left unread."""

    def __init__(self, handset: str, server: Server, calls_from: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="handset-attack-")
        folder = pathlib.Path(self.folder.name)
        (folder / "password").write_text("no-secret\n")
        (folder / "password").chmod(0o600)
        (folder / "token").write_text(TOKEN + "\n")
        (folder / "token").chmod(0o600)
        sip = {"address": "sip:echo@sip.test", "server": "{}:{}".format(*server.socket.address), "transport": "udp"}
        configuration = {
            "account": {
                "kind": "sip",
                "password_file": "password",
                "allow_plain_text": True,
                "sip": sip | {"calls_from": calls_from, "register_s": REGISTERED},
            },
            "answer": {"mode": "auto", "max_calls": MOST_CALLS, "ring_seconds": 10, "allow": CALLERS},
            "behaviour": {"source": "echo", "max_call_seconds": 25},
            "media": {"address": HOST, "allow_plain_rtp": True, "silence_timeout_s": 5},
            "control": {"socket": str(folder / "control.sock"), "http": {"listen": f"{HOST}:0", "token_file": "token"}},
        }
        (folder / "device.yaml").write_text(json.dumps(configuration))
        self.log, log = os.pipe()
        os.set_blocking(self.log, False)
        fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, PIPE)
        command = [handset, "run", "--config", str(folder / "device.yaml"), "--log-format", "json"]
        environment = os.environ | {"HANDSET_DUMPABLE": "1"}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        os.close(log)
        self.server, self.unread, self.lines, self.recent = server, b"", [], collections.deque(maxlen=8)
        self.control: Address | None = None  # Where it listens to programs.

    @property
    def address(self) -> Address:
        return HOST, self.server.contact[1]

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    # --- Figures of the kernel ---

    def memory(self) -> int:
        """Resident bytes that are the process's own: without its code."""
        return int(re.search(r"RssAnon:\s+(\d+)", self._file("status")).group(1)) * 1024

    def processor(self) -> float:
        """Seconds of processor time until now."""
        fields = self._file("stat").rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def lost_datagrams(self) -> int:
        """Datagrams that the kernel dropped because the SIP socket was full."""
        port = f":{self.address[1]:04X}"
        lines = pathlib.Path("/proc/net/udp").read_text().splitlines()[1:]
        return sum(int(line.split()[12]) for line in lines if line.split()[1].endswith(port))

    def threads(self) -> dict[str, Thread]:
        """The threads, by their ids."""
        found = {}
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{self.process.pid}/task"):
                with contextlib.suppress(OSError, IndexError):
                    name, _, rest = self._file(f"task/{number}/stat").partition("(")[2].rpartition(") ")
                    delay = int(self._file(f"task/{number}/schedstat").split()[1]) / 1e9
                    found[number] = Thread(name, rest[0], delay)
        return found

    def describe(self) -> str:
        """What each thread waits for, and the end of the log."""
        waiting = [f"{thread.name} {thread.state} {self._file(f'task/{number}/wchan')}" for number, thread in self.threads().items()]
        return f"threads: {', '.join(waiting)}; log: {[line[:200] for line in self.recent][-4:]}"

    def _file(self, name: str) -> str:
        return pathlib.Path(f"/proc/{self.process.pid}/{name}").read_text()

    # --- The log ---

    def reads_log(self, does: bool) -> None:
        """Reads the log from now on, or leaves it unread, as a stalled disk does."""
        loop = asyncio.get_running_loop()
        if does:
            loop.add_reader(self.log, self._read)
        else:
            loop.remove_reader(self.log)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.log, 1 << 16)
            *lines, self.unread = (self.unread + data).split(b"\n")
            self.lines.extend(lines)
            self.recent.extend(lines)
            for line in lines:
                if self.control is None and (url := re.search(rb'"url":"http://[^:"]*:(\d+)"', line)):
                    self.control = HOST, int(url.group(1))
            if not data:
                self.reads_log(False)

    def complaints(self) -> list[str]:
        """Lines of the log since the last call that are no records, or that report errors."""
        lines, self.lines = self.lines, []
        return [line[:400].decode("utf-8", "replace") for line in lines if is_complaint(line)]

    def stop(self) -> None:
        if self.is_alive:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        if self.is_alive:
            self.process.kill()
            self.process.wait()
        self.reads_log(False)
        os.close(self.log)
        self.folder.cleanup()


def is_complaint(line: bytes) -> bool:
    try:
        return json.loads(line).get("level") in ("error", "critical")
    except ValueError:
        return True


@dataclasses.dataclass
class Thread:
    """The kernel's figures of a thread: its state is D while it waits for a disk, and its delay the time without a processor."""

    name: str
    state: str
    delay: float


class Usage:
    """How much of a processor a device takes, and the most memory that it had."""

    def __init__(self, device: Device) -> None:
        self.device, self.baseline, self.descriptors = device, device.memory(), device.descriptors()
        self.peak, self.begun, self.spent = self.baseline, time.monotonic(), device.processor()

    def look(self) -> int:
        memory = self.device.memory()
        self.peak = max(self.peak, memory)
        return memory

    def load(self) -> float:
        """The share of one processor since the last call."""
        now, spent = time.monotonic(), self.device.processor()
        share = (spent - self.spent) / max(now - self.begun, 0.001)
        self.begun, self.spent = now, spent
        return share


class Witness:
    """Looks at this process and at the threads of the device, which distinguishes a busy machine from a fault.

    This process waits while its sleep takes longer than asked for. A thread of the device waits while it has no processor, and while
    it is at a disk. Two figures count: the longest wait without an end, and the share of the time for which one of them waited. The
    log's thread does not count, because no call depends on it.
    """

    INTERVAL = 0.05
    MOST_WAITING = 0.25  # The share beside which a judgement counts.

    def __init__(self) -> None:
        self.looks = collections.deque(maxlen=4_000)
        self.device: Device | None = None

    async def watch(self) -> None:
        before, threads, since = time.monotonic(), {}, {}
        while True:
            await asyncio.sleep(self.INTERVAL)
            now = time.monotonic()
            elapsed, longest = now - before, 0.0
            waits = {"model": elapsed - self.INTERVAL}
            looked = self.device.threads() if self.device else {}
            for number in threads.keys() & looked.keys():
                if looked[number].name != "log":
                    is_at_disk = looked[number].state == "D"
                    waits[number] = elapsed if is_at_disk else looked[number].delay - threads[number].delay
            for number, wait in waits.items():
                if wait > 0.8 * elapsed:
                    longest = max(longest, now - since.setdefault(number, before))
                else:
                    since.pop(number, None)
            self.looks.append((now, elapsed, max(longest, waits["model"]), waits))
            before, threads = now, looked

    def longest(self, since: float) -> float:
        """The longest wait without an end, in seconds, after an instant."""
        return max((longest for now, _, longest, _ in self.looks if now >= since), default=0.0)

    def share(self, since: float) -> float:
        """Of the time after an instant, the share that the thread with the longest waits waited."""
        waited, total = collections.Counter(), 0.0
        for now, elapsed, _, waits in self.looks:
            if now >= since:
                total += elapsed
                waited.update(waits)
        return max(waited.values(), default=0.0) / total if total else 0.0

    def excuse(self, since: float, slack: float) -> str | None:
        """Why a judgement with `slack` seconds does not count, or None (CONTRIBUTING.md, Windows of real time)."""
        longest, share = self.longest(since), self.share(since)
        if longest > slack / 4 - 0.005:
            return f"beside a stall of {longest * 1000:.0f} ms"
        return f"beside a thread that waited for {share:.0%} of the time" if share > self.MOST_WAITING else None
