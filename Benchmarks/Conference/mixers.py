"""Programs that mix: Handset, whose members call by SIP without a server, and Janus's audiobridge. Members send and receive plain RTP."""

from __future__ import annotations

import contextlib
import glob
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from typing import Any, NoReturn

from sound import BITRATE, COMPLEXITY, LOSS_PERCENT

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Tests" / "Attack"))
from wire import MAGIC, Description, Message, request

HOST = "127.0.0.1"
SIP_PORT, STUB_PORT, CALLER_PORT, API_PORT = 25071, 25073, 25075, 25077

#: Opus in the configuration of a device.
OPUS = f"{{ bitrate_bps: {BITRATE}, complexity: {COMPLEXITY}, fec: true, expected_loss_percent: {LOSS_PERCENT} }}"


class Program:
    """A process on one core, whose output goes to a file."""

    #: Of Opus, in both directions.
    PAYLOAD_TYPE = 111

    def __init__(self, name: str, folder: pathlib.Path, core: int, *command: str) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        with open(self.log, "wb") as log:
            pinned = ["taskset", "-c", str(core), *command]
            self.process = subprocess.Popen(pinned, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = self.process.pid

    def fail(self, what: str) -> NoReturn:
        sys.exit(f"{self.name} {what}; the end of its log: {self.log.read_text(errors='replace')[-1500:]}")

    def stop(self) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(15)
            return
        self.process.kill()
        self.process.wait()


class Handset(Program):
    """`handset run`, whose calls meet in a room."""

    def __init__(self, handset: str, folder: pathlib.Path, core: int) -> None:
        folder.mkdir()
        (folder / "password").write_text("secret\n")
        (folder / "password").chmod(0o600)
        (folder / "device.yaml").write_text(
            "account:\n  kind: sip\n  password_file: password\n  allow_plain_text: true\n"
            f"  sip: {{ address: 'sip:room@sip.test', server: '{HOST}:{STUB_PORT}', transport: udp, register_s: 0, port: {SIP_PORT} }}\n"
            "answer: { mode: auto, max_calls: 1000 }\n"
            "behaviour: { source: conference, conference: { room: team, tones: false, most_members: 250 } }\n"
            f"media: {{ address: {HOST}, allow_plain_rtp: true, offers: plain, codecs: [opus], opus: {OPUS} }}\n"
            "control: { socket: control.sock }\n"
        )
        super().__init__("handset", folder, core, handset, "run", "--config", "device.yaml")
        self.control = self.await_control(folder / "control.sock")
        self.answers = self.control.makefile()
        self.caller = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.caller.bind((HOST, CALLER_PORT))
        self.dialogs: list[Message] = []

    def await_control(self, path: pathlib.Path) -> socket.socket:
        for _ in range(200):
            connection = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):
                connection.connect(str(path))
                connection.settimeout(10)
                return connection
            connection.close()
            time.sleep(0.1)
        self.fail("is not ready")

    def join(self, number: int, port: int) -> int:
        """Has a member call that receives at a port. Returns where the member sends to."""
        offer = [
            "v=0",
            f"o=- 1 1 IN IP4 {HOST}",
            "s=-",
            f"c=IN IP4 {HOST}",
            "t=0 0",
            f"m=audio {port} RTP/AVP {self.PAYLOAD_TYPE}",
            f"a=rtpmap:{self.PAYLOAD_TYPE} opus/48000/2",
            f"a=fmtp:{self.PAYLOAD_TYPE} useinbandfec=1",
            "a=ptime:20",
            "a=rtcp-mux",
            "a=sendrecv",
        ]
        answer = self.transact(self.message("INVITE", number, 1, body=("\r\n".join(offer) + "\r\n").encode()))
        if answer.status != 200:
            self.fail(f"has answered the call of member {number} with {answer.first}")
        self.send(self.message("ACK", number, 1, answer))
        self.dialogs.append(answer)
        return Description(answer.body).port

    def message(self, method: str, number: int, sequence: int, answer: Message | None = None, body: bytes = b"") -> Message:
        """A request of a member. Those after the first follow the answer to it."""
        contact = re.search("<([^>]*)>", answer["Contact"]) if answer else None
        uri = contact.group(1) if contact else "sip:room@sip.test"
        to = answer["To"] if answer else "<sip:room@sip.test>"
        branch, who = f"{MAGIC}{method}{number}", f"<sip:member{number}@sip.test>;tag=m{number}"
        return request(method, uri, (HOST, CALLER_PORT), branch, who, to, f"member-{number}@{HOST}", sequence, body=body)

    def send(self, message: Message) -> None:
        self.caller.sendto(message.data(), (HOST, SIP_PORT))

    def transact(self, message: Message) -> Message:
        """Sends a request until there is a final response. Returns that."""
        deadline = time.monotonic() + 10
        self.caller.settimeout(0.5)
        self.send(message)
        while time.monotonic() < deadline:
            try:
                answer = Message.parse(self.caller.recv(65_536))
            except TimeoutError:
                self.send(message)
                continue
            if answer and answer.status >= 200 and (answer["Call-ID"], answer["CSeq"]) == (message["Call-ID"], message["CSeq"]):
                return answer
        self.fail(f"has not answered {message.first}")

    def notes(self) -> dict[str, object]:
        """Whether the device had to encode with less effort than it is set to."""
        self.control.sendall(b'{"request":"status"}\n')
        load = json.loads(self.answers.readline())["status"]["load"]
        return {"complexity": min(load["complexity_limit"], COMPLEXITY)}

    def stop(self) -> None:
        for number, answer in enumerate(self.dialogs):
            self.transact(self.message("BYE", number, 2, answer))
        self.caller.close()
        self.control.close()
        super().stop()


class Janus(Program):
    """Janus with its audiobridge and its HTTP interface alone. Its Unix socket does not always start (1.1.2)."""

    ROOM = 1

    def __init__(self, folder: pathlib.Path, core: int) -> None:
        janus = shutil.which("janus")
        found = glob.glob("/usr/lib/*/janus/plugins/libjanus_audiobridge.so") + glob.glob("/usr/lib/janus/plugins/libjanus_audiobridge.so")
        if not janus or not found:
            sys.exit("--janus needs Janus with its audiobridge: apt-get install janus")
        libraries = pathlib.Path(found[0]).parents[1]
        for name in ("plugins/libjanus_audiobridge.so", "transports/libjanus_http.so"):
            (folder / name).parent.mkdir(parents=True)
            (folder / name).symlink_to(libraries / name)
        # Without a timeout of sessions, which otherwise need messages to stay.
        (folder / "janus.jcfg").write_text(
            f'general: {{\n  configs_folder = "{folder}"\n  plugins_folder = "{folder}/plugins"\n'
            f'  transports_folder = "{folder}/transports"\n  events_folder = "{folder}/events"\n  loggers_folder = "{folder}/loggers"\n'
            "  debug_level = 3\n  session_timeout = 0\n}\n"
        )
        (folder / "janus.transport.http.jcfg").write_text(f'general: {{\n  http = true\n  port = {API_PORT}\n  ip = "{HOST}"\n}}\n')
        (folder / "janus.plugin.audiobridge.jcfg").write_text("general: {\n}\n")
        # With real-time priority, which the device's threads ask for, so that other work delays neither.
        super().__init__("janus", folder, core, "chrt", "--fifo", "1", janus, "-F", str(folder))
        self.url, self.number = f"http://{HOST}:{API_PORT}/janus", 0
        self.url += f"/{self.await_session()}"
        room = {"sampling_rate": 48_000, "audiolevel_ext": False, "allow_rtp_participants": True, "record": False}
        self.bridge(self.attach(), request="create", room=self.ROOM, **room)

    def await_session(self) -> int:
        for _ in range(100):
            with contextlib.suppress(OSError):
                session: int = self.ask(self.url, janus="create")["data"]["id"]
                return session
            time.sleep(0.1)
        self.fail("is not ready")

    def ask(self, url: str, **message: object) -> Any:
        """Sends a request. Returns its response, or the event that follows an acknowledgement."""
        self.number += 1
        body = json.dumps({"transaction": str(self.number), **message}).encode()
        answer = self.fetch(urllib.request.Request(url, body, {"Content-Type": "application/json"}))
        while answer["janus"] == "ack" or answer.get("transaction") != str(self.number):
            answer = self.fetch(self.url)
        return answer

    @staticmethod
    def fetch(what: str | urllib.request.Request) -> Any:
        with urllib.request.urlopen(what, timeout=10) as answer:
            return json.load(answer)

    def attach(self) -> int:
        handle: int = self.ask(self.url, janus="attach", plugin="janus.plugin.audiobridge")["data"]["id"]
        return handle

    def bridge(self, handle: int, **body: object) -> Any:
        answer = self.ask(f"{self.url}/{handle}", janus="message", body=body)
        data = answer.get("plugindata", {}).get("data", {})
        if not data or "error" in data:
            self.fail(f"has answered {body} with {answer}")
        return data

    def join(self, number: int, port: int) -> int:
        settings = {"bitrate": BITRATE, "quality": COMPLEXITY, "expected_loss": LOSS_PERCENT}
        rtp = {"ip": HOST, "port": port, "payload_type": self.PAYLOAD_TYPE, "fec": True}
        joined = self.bridge(self.attach(), request="join", room=self.ROOM, id=number + 1, muted=False, rtp=rtp, **settings)
        there: int = joined["rtp"]["port"]
        return there

    def notes(self) -> dict[str, object]:
        return {"complexity": COMPLEXITY}
