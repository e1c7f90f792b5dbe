#!/usr/bin/env python3
"""Injects faults into real calls, and checks what `handset explain` says of each.

usage: faults_test.py HANDSET [--jobs N] [--short] [FAULT…]

Each fault has a network of its own: a peer or an exchange at 10.99.0.1, and the device at 10.99.0.2 in a namespace at the other end of
a link. A result is "right" if what was wanted was found and nothing that is not true, "unclear" if it was not found, or "wrong" if
something else was blamed. Exits with 1 if one is wrong, or more than one in ten is unclear. Needs root. scripts/faults runs it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from sip_peer import Media, Peer, clipped, noise, silence

HOST, DEVICE = "10.99.0.1", "10.99.0.2"
EXCHANGE = 28556


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def inside(*command: object) -> list[str]:
    """A command at the device's end of the link."""
    return ["ip", "netns", "exec", "device", *(str(part) for part in command)]


def make_network() -> None:
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    run("ip", "netns", "add", "device")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "d0", "type", "veth", "peer", "name", "d1", "netns", "device")
    run("ip", "address", "add", f"{HOST}/24", "dev", "d0")
    run("ip", "link", "set", "d0", "up")
    for words in (("link", "set", "lo", "up"), ("address", "add", f"{DEVICE}/24", "dev", "d1"), ("link", "set", "d1", "up")):
        run(*inside("ip", *words))
    run(*inside("ip", "route", "add", "default", "via", HOST))


def wait(what: str, condition: Callable[[], object], seconds: float = 15) -> object:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise TimeoutError(f"not within {seconds} s: {what}")


class Stage:
    """A folder, a device, and what it talks to."""

    def __init__(self, handset: str, folder: pathlib.Path) -> None:
        self.handset, self.folder = handset, folder
        self.processes: list[subprocess.Popen] = []
        self.peer: Peer | None = None
        self.device: subprocess.Popen | None = None
        self.log = folder / "device.log"
        self.control = folder / "control.sock"
        # Whether device and peer are at one address, as keys in descriptions must not cross a network in the clear.
        self.is_local = False

    # --- What runs ---

    def start(self, name: str, command: list[str]) -> subprocess.Popen:
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)
        self.processes.append(process)
        return process

    def run_device(self, account: str, behaviour: str, answer: str, media: str, more: str, ready: str = '"Ready"') -> None:
        address = "127.0.0.1" if self.is_local else DEVICE
        (self.folder / "device.yaml").write_text(
            f"{account}\ndevice: {{ call_records: calls.jsonl }}\nanswer: {{ {answer} }}\nbehaviour: {{ {behaviour} }}\n"
            f"media: {{ address: {address}{media and ', ' + media} }}\ncontrol: {{ socket: control.sock }}\n{more}\n"
        )
        words = [self.handset, "run", "--config", str(self.folder / "device.yaml"), "--log-format", "json", "--log-level", "debug"]
        self.words = words if self.is_local else inside(*words)
        self.device = self.start("device", self.words)
        if ready:
            wait("the device is ready", lambda: ready in self.log.read_text(), 20)

    def at_peer(
        self,
        media: Media | None = None,
        behaviour: str = "source: tone",
        answer: str = "mode: auto",
        own: str = "allow_plain_rtp: true, codecs: [pcmu], offers: plain",
        more: str = "",
        ready: str = '"Ready"',
        sip: str = "",
        **answers: str | None,
    ) -> Peer:
        """A device that is registered at a scripted peer."""
        host = "127.0.0.1" if self.is_local else HOST
        self.peer = Peer(host, media)
        self.peer.answers = answers
        (self.folder / "password").write_text("secret\n")
        account = (
            "account:\n  kind: sip\n  password_file: password\n  allow_plain_text: true\n"
            f"  sip: {{ address: 'sip:desk@sip.test', server: '{host}:5060', transport: udp{sip and ', ' + sip} }}"
        )
        self.run_device(account, behaviour, answer, own, more, ready)
        return self.peer

    def called(self, seconds: float = 10, media: Media | None = None, **options: Any) -> Peer:
        """The peer calls, talks for some seconds, and hangs up."""
        peer = self.at_peer(media, **options)
        peer.call()
        time.sleep(seconds)
        if not peer.ended.is_set():
            peer.hang_up()
        return peer

    def calls(self, callee: str = "peer@sip.test", seconds: float = 12, **options: Any) -> None:
        """The device calls, by its control socket."""
        self.at_peer(**options)
        self.place(callee)
        time.sleep(seconds)

    def place(self, callee: str) -> None:
        subprocess.run(inside(self.handset, "control", "--socket", self.control, "call", callee), capture_output=True, check=False)

    def exchange(self, own: str = "", behaviour: str = "source: tone", more: str = "", users: str = "", host: str = HOST) -> None:
        """A device at an exchange; others can call with `call_by_exchange`."""
        for name in ("alice", "desk"):
            (self.folder / f"{name}.token").write_text(f"{name}-token-of-a-test\n")
        (self.folder / "app.secret").write_text("secret-of-a-test\n")
        (self.folder / "exchange.yaml").write_text(
            f"listen: {HOST}:{EXCHANGE}\nplain_text: allowed\napps: [{{ key: demo, secret_file: app.secret }}]\nusers:\n"
            f"  - {{ id: alice, media_token_file: alice.token }}\n  - {{ id: desk, media_token_file: desk.token }}\n{users}"
        )
        self.server = self.start("exchange", [self.handset, "serve", "--config", "exchange.yaml", "--log-format", "json"])
        wait("the exchange listens", lambda: '"Listening"' in (self.folder / "exchange.log").read_text(), 20)
        self.run_device(self.account("desk", host), behaviour, "mode: auto", own, more)

    def account(self, name: str, host: str = HOST) -> str:
        return (
            f"account: {{ server: 'http://{host}:{EXCHANGE}', kind: media_token, media_token_file: {name}.token, "
            "app_secret_file: app.secret, allow_plain_text: true }"
        )

    def call_by_exchange(self, seconds: int = 10, callee: str = "desk", own: str = "") -> subprocess.Popen:
        (self.folder / "alice.yaml").write_text(f"{self.account('alice')}\nmedia: {{ address: {HOST}{own and ', ' + own} }}\n")
        return self.start("alice", [self.handset, "call", callee, "--config", "alice.yaml", "--duration", str(seconds)])

    def program(self, text: str) -> str:
        path = self.folder / "program.py"
        path.write_text(f"#!/usr/bin/env python3\nimport os, sys, time\n{text}\n")
        path.chmod(0o755)
        return "source: exec, command: [./program.py], rate_hz: 16000"

    # --- Faults of the network and the machine ---

    def lose(self, chain: str, share: float) -> None:
        """Loses a part of the sound that comes in or goes out at the device."""
        way = "--sport" if chain == "INPUT" else "--dport"
        self.drop(chain, "-p", "udp", way, "4000", "-m", "statistic", "--mode", "random", "--probability", share)

    def limit_rate(self, rate: str) -> None:
        """Of what the device sends."""
        run(*inside("tc", "qdisc", "replace", "dev", "d1", "root", "tbf", "rate", rate, "burst", "2kb", "latency", "300ms"))

    def drop(self, chain: str, *words: object) -> None:
        """Drops what fits, in or out at the device."""
        run(*inside("iptables", "-A", chain, *words, "-j", "DROP"))

    def signal(self, number: int) -> None:
        """To the device."""
        os.kill(self.device.pid, number)

    def stop(self, seconds: float) -> None:
        self.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.signal(signal.SIGCONT)

    # --- The end ---

    def explanation(self) -> dict:
        """What is said of the last call, once it has ended."""
        records = self.folder / "calls.jsonl"

        def has_ended() -> bool:
            return records.exists() and '"over":true' in records.read_text()

        with contextlib.suppress(TimeoutError):
            wait("the call's record", has_ended, 50)
        result = subprocess.run([self.handset, "explain", "--records", str(records), "--json"], capture_output=True, text=True, check=False)
        if not result.stdout.startswith("{"):
            raise RuntimeError(f"there was no call to explain: {result.stderr.strip()}")
        return json.loads(result.stdout)

    def close(self) -> None:
        if self.peer:
            self.peer.stopped.set()
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                try:
                    process.wait(8)
                except subprocess.TimeoutExpired:
                    process.kill()


@dataclasses.dataclass
class Fault:
    """A fault, and what is to be said of it."""

    inject: Callable[[Stage], object]
    # Patterns, one of which must be in a finding: of "code side text because".
    wanted: str = ""
    # Patterns of findings that are true besides.
    besides: str = ""
    # What the sentence on the outcome must have.
    outcome: str = ""
    # Runs in a short time.
    isShort: bool = False


def later(seconds: float, action: Callable[[Stage], object], total: float = 12, **options: Any) -> Callable[[Stage], object]:
    """A call in whose middle something happens."""

    def inject(stage: Stage) -> None:
        peer = stage.at_peer(**options)
        peer.call()
        time.sleep(seconds)
        action(stage)
        time.sleep(total - seconds)
        if stage.device.poll() is None and not peer.ended.is_set():
            peer.hang_up()

    return inject


def beforehand(action: Callable[[Stage], object], seconds: float = 12, **options: Any) -> Callable[[Stage], object]:
    """A call in which something is so from the beginning."""

    def inject(stage: Stage) -> None:
        peer = stage.at_peer(**options)
        action(stage)
        peer.call()
        time.sleep(seconds)
        peer.hang_up()

    return inject


def talk(seconds: float = 10, media: Media | None = None, **options: Any) -> Callable[[Stage], object]:
    return lambda stage: stage.called(seconds, media, **options)


def call(callee: str = "peer@sip.test", seconds: float = 12, **options: Any) -> Callable[[Stage], object]:
    return lambda stage: stage.calls(callee, seconds, **options)


def bursts(index: int) -> list[float]:
    """Half a second of each five is lost."""
    return [] if index % 250 >= 225 else [0]


def held_back(index: int) -> list[float]:
    """Packets wait up to half a second, and come together."""
    return [0.5 - 0.02 * (index % 75)] if index % 75 < 25 else [0]


def at_exchange(action: Callable[[Stage], object] = lambda stage: None, seconds: int = 10, after: float = 0, **options: Any) -> Callable:
    def inject(stage: Stage) -> None:
        stage.exchange(**options)
        if not after:
            action(stage)
        call = stage.call_by_exchange(seconds)
        if after:
            time.sleep(after)
            action(stage)
        with contextlib.suppress(subprocess.TimeoutExpired):
            call.wait(seconds + 45)

    return inject


def record_on_full_disk(stage: Stage) -> None:
    folder = stage.folder / "recordings"
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder)
    stage.called(12, behaviour="source: tone, record_folder: recordings")


def program(text: str, seconds: float = 10, media: Media | None = None) -> Callable[[Stage], object]:
    return lambda stage: stage.called(seconds, media, behaviour=stage.program(text))


def offering(offer: str) -> Callable[[Stage], object]:
    def inject(stage: Stage) -> None:
        peer = stage.at_peer()
        peer.offer = offer
        peer.call()
        time.sleep(2)

    return inject


def sdp(profile: str, number: int, *lines: str) -> str:
    head = ["v=0", f"o=- 1 1 IN IP4 {HOST}", "s=-", f"c=IN IP4 {HOST}", "t=0 0", f"m=audio 4000 {profile} {number}", *lines, "a=sendrecv"]
    return "\r\n".join([*head, ""])


def killed(stage: Stage) -> None:
    """Starts the device again, which then notes the calls that it had."""
    peer = stage.at_peer()
    peer.call()
    time.sleep(4)
    stage.signal(signal.SIGKILL)
    stage.device.wait(5)
    peer.ended.set()
    stage.start("device", stage.words)
    time.sleep(3)


def without_program(stage: Stage) -> None:
    peer = stage.at_peer(behaviour=stage.program("while os.read(0, 640): pass"))
    (stage.folder / "program.py").unlink()
    peer.call()
    time.sleep(8)


def drop_media(stage: Stage) -> None:
    for chain, way in (("INPUT", "--sport"), ("OUTPUT", "--dport")):
        stage.drop(chain, "-p", "udp", way, "4000:4001")


def drop_for_six_seconds(stage: Stage) -> None:
    stage.drop("INPUT", "-p", "udp", "--sport", "4000:4001")
    time.sleep(6)
    run(*inside("iptables", "-F"))


def hold(stage: Stage) -> None:
    stage.peer.change("inactive")
    stage.peer.media.sends = False


def drop_udp(stage: Stage) -> None:
    stage.drop("INPUT", "-p", "udp")


def drop_large(stage: Stage) -> None:
    for chain in ("INPUT", "OUTPUT"):
        stage.drop(chain, "-p", "udp", "-m", "length", "--length", "300:65535")


def call_nobody(stage: Stage) -> None:
    stage.exchange()
    stage.place("nobody")
    time.sleep(3)


def with_key(key: bytes) -> Media:
    # The tag of authentication is that of no key.
    return Media(key=key, change=lambda packet: packet + os.urandom(10))


def other_keys(stage: Stage) -> None:
    stage.is_local = True
    stage.called(8, with_key(bytes(range(30))), own="codecs: [pcmu], offers: sdes")


def talking_turns(index: int) -> bytes:
    """A tone that comes and goes as speech does: 2 s of it, 5 s of silence."""
    from sip_peer import tone

    return tone(index, level=8_000 if index % 5 else 3_000, frequency=180 + 20 * (index % 7)) if index % 350 < 100 else silence(index)


FAULTS: dict[str, Fault] = {
    # What the other side sends.
    "wrong payload type": Fault(talk(8, Media(payload_type=97)), "wrong_payload_type", isShort=True),
    "timestamps of another codec": Fault(talk(10, Media(step=960)), "wrong_clock_rate"),
    "the peer's clock is 0.5 % fast": Fault(talk(45, Media(interval=0.02 / 1.005)), "clock_drift"),
    "the peer sends digital silence": Fault(talk(9, Media(sound=silence)), "peer_silent", isShort=True),
    "the peer's microphone at -70 dB": Fault(talk(9, Media(sound=noise)), "peer_quiet"),
    "the peer's sound is clipped": Fault(talk(9, Media(sound=clipped)), "peer_clipped"),
    "packets overtake each other": Fault(talk(10, Media(delays=lambda index: [0.05 if index % 4 == 0 else 0])), "reordering"),
    "bursts of loss": Fault(talk(16, Media(delays=bursts)), "loss_here"),
    "sound to a wrong port": Fault(talk(9, Media(misdirected=20, reports=False)), "nothing_received"),
    "sound to a wrong port, with reports": Fault(talk(12, Media(misdirected=20)), "peer_sends_no_sound|nothing_received"),
    "packets grow from 20 to 60 ms": Fault(talk(10, Media(frames=lambda index: 3 if index >= 150 else 1, step=160)), ""),
    "no RTCP": Fault(talk(10, Media(reports=False)), ""),
    "a new SSRC in each packet": Fault(talk(10, Media(sources=lambda index: 0x1000_0000 + index)), "several_streams"),
    "sound with other keys": Fault(other_keys, "wrong_keys"),
    # Programs and files.
    "a program that says nothing": Fault(program("while os.read(0, 4096): pass"), "program_silent", isShort=True),
    "a program that crashes": Fault(program("time.sleep(3); sys.exit(7)"), "program_failed.*code 7", isShort=True),
    "a program that is not there any more": Fault(lambda stage: without_program(stage), "program_failed"),
    "a program that stops reading and writing": Fault(
        program("n=0\nwhile n < 200: os.write(1, os.read(0, 640)); n += 1\ntime.sleep(60)", 16), "program_silent|program_stuck"
    ),
    "a full disk": Fault(record_on_full_disk, "file_failed"),
    # The service.
    "INVITE is never answered": Fault(call(seconds=45, INVITE=None), "set_up_failed"),
    "INVITE is answered with 503": Fault(call(INVITE="503 Service Unavailable"), "set_up_failed"),
    "INVITE is asked for a password each time": Fault(call(INVITE="401 Unauthorized"), "set_up_failed"),
    "no common codec": Fault(offering(sdp("RTP/AVP", 18, "a=rtpmap:18 G729/8000")), "set_up_failed.*noCommonCodec", isShort=True),
    # The end.
    "the peer hangs up": Fault(talk(4), outcome="other side hung up", isShort=True),
    "the longest call": Fault(lambda stage: stage.called(9, behaviour="source: tone, max_call_seconds: 5"), outcome="longest duration"),
    "the device is ended": Fault(later(4, lambda stage: stage.signal(signal.SIGTERM), 8), outcome="this side hung up because.*stopped"),
    # The machine and the network.
    "the machine stops for 1.5 s": Fault(later(4, lambda stage: stage.stop(1.5), 12), "machine_stalled"),
    "a firewall drops what comes": Fault(
        beforehand(lambda stage: stage.drop("INPUT", "-p", "udp", "--sport", "4000:4001")), "nothing_received"
    ),
    "a firewall drops what goes": Fault(
        beforehand(lambda stage: stage.drop("OUTPUT", "-p", "udp", "--dport", "4000:4001"), 18), "nothing_sent_arrives"
    ),
    "UDP is dropped after 10 s": Fault(later(10, drop_media, 20), "peer_vanished|connection_lost"),
    "what comes is dropped for 6 s": Fault(later(5, drop_for_six_seconds, 18), "loss_here"),
    "one packet in eight to the device is lost": Fault(beforehand(lambda stage: stage.lose("INPUT", 0.12), 14), "loss_here"),
    "one packet in eight from the device is lost": Fault(beforehand(lambda stage: stage.lose("OUTPUT", 0.12), 14), "loss_there"),
    "packets wait up to half a second": Fault(talk(16, Media(delays=held_back)), "jitter|long_delay", "jitter|long_delay|loss_here"),
    # ICE, TURN and the exchange.
    "UDP is blocked": Fault(at_exchange(drop_udp), "set_up_failed.*noPath"),
    "the relay does not answer": Fault(
        at_exchange(own=f"relay_only: true, ice_servers: [{{ urls: ['turn:{HOST}:3999'], username: a, credential_file: app.secret }}]"),
        "set_up_failed.*(noPath|TURN|relay)",
    ),
    "a microphone without sound": Fault(
        at_exchange(behaviour="source: card", more="audio: { playback: 'null', capture: 'null' }", seconds=9),
        "microphone_silent",
        "peer_silent",
    ),
    "a microphone that is muted": Fault(
        at_exchange(behaviour="source: card", more="audio: { playback: 'null', capture: 'null', muted: true }", seconds=9),
        "microphone_muted",
        "peer_silent",
    ),
    "the device is killed": Fault(lambda stage: killed(stage), "device_stopped"),
    "a program that answers after 3 s": Fault(
        program(
            "import threading\nloud = 0.0\n"
            "while True:\n"
            " data = os.read(0, 640)\n if not data: break\n"
            " import array\n peak = max(map(abs, array.array('h', data[:len(data) // 2 * 2])), default=0)\n"
            " now = time.monotonic()\n"
            " loud = now if peak > 1000 else loud\n"
            " speaks = loud and 3 < now - loud < 4\n"
            " os.write(1, (b'\\x00\\x20\\x00\\xe0' * 160) if speaks else bytes(640))",
            30,
            Media(sound=talking_turns),
        ),
        "slow_program",
    ),
}


# Invented before the rules were read; see docs/explain.md.
UNKNOWN: dict[str, Fault] = {
    "each packet comes twice": Fault(talk(10, Media(delays=lambda index: [0, 0.001])), ""),
    "held by the peer": Fault(later(4, hold, 14), "on_hold"),
    "the peer moves to another port": Fault(
        talk(12, Media(moves_at=200, sources=lambda index: 5 if index < 200 else 6)), "unknown_source|several_streams"
    ),
    "large packets are dropped": Fault(at_exchange(drop_large), "set_up_failed.*handshake(TimedOut)?"),
    "the exchange is killed": Fault(at_exchange(lambda stage: stage.server.kill(), 12, after=6), "service_lost", "peer_silent"),
    "the callee does not exist": Fault(call_nobody, "set_up_failed.*noSuchNumber"),
    "the callee is busy": Fault(call(seconds=4, INVITE="486 Busy Here"), outcome="busy"),
    "an uplink of 40 kbit/s": Fault(
        beforehand(lambda stage: stage.limit_rate("40kbit"), 16), "loss_there|nothing_sent_arrives", "long_delay|loss_there"
    ),
    "a second of delay each way": Fault(talk(16, Media(latency=1)), "long_delay", "slow_media"),
    "a name that does not resolve": Fault(
        at_exchange(own="ice_servers: [{ urls: ['turn:relay.invalid:3478'], username: a, credential_file: app.secret }], relay_only: true"),
        "set_up_failed.*(noPath|TURN|relay)",
    ),
}


def judge(fault: Fault, said: dict) -> tuple[str, str]:
    """Whether what was said is right, and what it was."""
    findings = [f"{found['code']} {found['side']} {found['text']} {found['because']}" for found in said.get("findings", [])]
    right = [text for text in findings if fault.wanted and re.search(fault.wanted, text)]
    false = [text for text in findings if text not in right and not (fault.besides and re.search(fault.besides, text))]
    words = "; ".join(f"{found['code']} ({found['side']})" for found in said.get("findings", [])) or "nothing"
    if fault.outcome:
        words += ": " + (said.get("outcome") or "")
    if false:
        return "wrong", words
    isNamed = (bool(right) or not fault.wanted) and bool(re.search(fault.outcome, said.get("outcome") or ""))
    return ("right" if isNamed else "unclear"), words


def one(handset: str, name: str) -> dict:
    make_network()
    fault = (FAULTS | UNKNOWN)[name]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fault-"))
    stage = Stage(handset, folder)
    try:
        fault.inject(stage)
        said = stage.explanation()
        verdict, words = judge(fault, said)
    except Exception as error:
        said, verdict, words = {}, "broken", repr(error)
    finally:
        stage.close()
    return {"name": name, "verdict": verdict, "words": words, "said": said, "folder": str(folder)}


def main() -> None:
    arguments = sys.argv[1:]
    handset = os.path.abspath(arguments.pop(0))
    if arguments[:1] == ["--one"]:
        print(json.dumps(one(handset, arguments[1])), flush=True)
        os._exit(0)
    jobs = 6
    if arguments[:1] == ["--jobs"]:
        jobs, arguments = int(arguments[1]), arguments[2:]
    table = FAULTS | UNKNOWN
    names = [name for name, fault in table.items() if fault.isShort] if arguments == ["--short"] else arguments or list(table)

    def separate(name: str) -> dict:
        command = ["unshare", "--net", "--mount", sys.executable, os.path.abspath(__file__), handset, "--one", name]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        return (
            json.loads(result.stdout) if result.stdout else {"name": name, "verdict": "broken", "words": result.stderr[-800:], "said": {}}
        )

    results = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(separate, names):
            results.append(result)
            print(f"{result['verdict']:8} {result['name']}: {result['words']}  [{result.get('folder')}]", flush=True)
    count = {verdict: sum(result["verdict"] == verdict for result in results) for verdict in ("right", "unclear", "wrong", "broken")}
    print(", ".join(f"{number} {verdict}" for verdict, number in count.items()), flush=True)
    if count["wrong"] + count["broken"] or count["unclear"] * 10 > len(results):
        sys.exit(1)


if __name__ == "__main__":
    main()
