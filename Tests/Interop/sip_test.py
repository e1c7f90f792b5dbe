#!/usr/bin/env python3
"""Devices at a SIP server: kamailio registers them, baresip and SIPp call them and are called by them.

usage: sip_test.py HANDSET

Ends with 0 if every check held. Needs a network namespace of its own, in which it makes the interface d0 (baresip takes no
loopback address): scripts/interop-sip sees to that, and to the programs.
"""

import array
import contextlib
import json
import math
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import wave

FOLDER = pathlib.Path(__file__).resolve().parent / "sip"
PORT, TLS_PORT, WS_PORT, WSS_PORT = 25060, 25061, 25080, 25081
SERVERS = {"udp": PORT, "tcp": PORT, "tls": TLS_PORT, "ws": WS_PORT, "wss": WSS_PORT}
PEER, TRUNK = "10.99.0.1", "10.99.0.2"


class Failed(Exception):
    """A check did not hold."""


def wait(what, condition, seconds=10):
    """Waits until the condition holds, and hands back its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise Failed(f"not within {seconds} s: {what}")


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def powers(path, *frequencies):
    """The share of a recording's energy at each frequency, over its loud part."""
    with wave.open(str(path)) as file:
        rate, channels = file.getframerate(), file.getnchannels()
        samples = array.array("h", file.readframes(file.getnframes()))[::channels]
    size = rate // 10
    best = [0.0 for _ in frequencies]
    for start in range(0, len(samples) - size, size):
        part = samples[start:start + size]
        energy = sum(value * value for value in part) / size
        if energy < 100 ** 2:
            continue
        for index, frequency in enumerate(frequencies):
            step = 2 * math.pi * frequency / rate
            real = sum(value * math.cos(step * place) for place, value in enumerate(part)) / size
            imaginary = sum(value * math.sin(step * place) for place, value in enumerate(part)) / size
            best[index] = max(best[index], 2 * (real * real + imaginary * imaginary) / energy)
    return best


def expect_sound(path, whose):
    """Speech is in a recording."""
    loud = powers(path, 1_000)[0] if pathlib.Path(path).exists() else 0
    if loud <= 0:
        raise Failed(f"{whose}: {path} is silent")


def expect_tone(path, frequency, whose):
    share = powers(path, frequency)[0] if pathlib.Path(path).exists() else 0
    if share < 0.8:
        raise Failed(f"{whose}: of {frequency} Hz there is {share:.2f} in {path}")


class Program:
    """A process whose output goes to a file."""

    def __init__(self, name, command, folder):
        self.name, self.log = name, pathlib.Path(folder) / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                cwd=folder)

    def text(self):
        return self.log.read_text(errors="replace")

    def says(self, pattern):
        if self.process.poll() is not None and not re.search(pattern, self.text()):
            raise Failed(f"{self.name} ended with {self.process.returncode}: {self.text()[-1500:]}")
        return re.search(pattern, self.text())

    def stop(self, seconds=10):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Kamailio(Program):
    """A registrar and proxy of the domain sip.test."""

    def __init__(self, folder, algorithm="MD5", *options):
        for name in ("kamailio.cfg", "tls.cfg"):
            text = (FOLDER / name).read_text()
            for word, port in (("WSSPORT", WSS_PORT), ("WSPORT", WS_PORT), ("TLSPORT", TLS_PORT), ("PORT", PORT)):
                text = text.replace(word, str(port))
            text = text.replace("ALGORITHM", algorithm).replace("FOLDER", str(folder))
            (folder / name).write_text(text)
        if not (folder / "cert.pem").exists():
            run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=sip.test", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
                folder / "key.pem", "-out", folder / "cert.pem")
        (folder / "run").mkdir(exist_ok=True)
        super().__init__(
            "kamailio", ["kamailio", "-DD", "-E", "-f", folder / "kamailio.cfg", "-m", "64", "-M", "8", "-P",
                         folder / "kamailio.pid", "-Y", folder / "run", *options], folder)
        wait("kamailio listens", self.listens)

    def listens(self):
        self.says("")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORT), 1):
            return True
        return False


class Device(Program):
    """`handset run` with a SIP account."""

    def __init__(self, handset, folder, name="device", transport="tcp", behaviour="source: echo", answer="mode: auto",
                 media="", sip="", server=f"127.0.0.1:{PORT}", account=""):
        self.folder = folder / f"{name}-files"
        self.folder.mkdir()
        self.configuration = configuration(
            self.folder, name, transport, behaviour, answer, media, sip, server, account)
        super().__init__(
            name, [handset, "run", "--config", self.configuration, "--log-format", "json", "--log-level", "debug"], folder)
        wait("the device is ready", lambda: self.says('"message":"Ready"'), 20)

    def count(self, message):
        return self.text().count(f'"message":"{message}"')

    def recording(self):
        files = sorted((self.folder / "recordings").glob("*.wav"), key=lambda path: path.stat().st_mtime)
        return files[-1] if files else self.folder / "nothing"


def configuration(folder, name, transport="tcp", behaviour="source: echo", answer="mode: auto", media="", sip="",
                  server=f"127.0.0.1:{PORT}", account=""):
    (folder / "password").write_text("secret\n")
    path = folder / "device.yaml"
    place = server and f", server: '{server}'"
    path.write_text(
        f"account:\n  kind: sip\n  password_file: password\n  {account}\n"
        f"  sip: {{ address: 'sip:{name}@sip.test'{place}, transport: {transport}{sip and ', ' + sip} }}\n"
        f"device: {{ call_records: calls.jsonl }}\nanswer: {{ {answer} }}\nbehaviour: {{ {behaviour} }}\n"
        f"media: {{ address: 0.0.0.0{media and ', ' + media} }}\ncontrol: {{ socket: control.sock }}\n")
    return path


class Baresip(Program):
    """baresip as user bob, who answers by himself and plays 440 Hz."""

    def __init__(self, folder, protection="srtp-mand"):
        self.folder = folder / "baresip-files"
        self.folder.mkdir(exist_ok=True)
        for file in self.folder.glob("*.wav"):
            file.unlink()
        # The module ausine has only 48 kHz, and the telephone's codecs 8.
        make_tone(self.folder / "tone.wav", 440, 60, 8_000)
        (self.folder / "config").write_text((FOLDER / "baresip.config").read_text().replace("FOLDER", str(self.folder)))
        media = f";mediaenc={protection}" if protection else ""
        (self.folder / "accounts").write_text(
            f"<sip:bob@sip.test;transport=tcp>;auth_pass=secret;outbound=\"sip:{PEER}:{PORT};transport=tcp\";"
            f"answermode=auto;regint=60;audio_codecs=pcmu,pcma{media}\n")
        super().__init__("baresip", ["baresip", "-f", self.folder, "-v"], folder)
        wait("baresip is registered", lambda: self.says(r"200 OK .*\(.*\) \[\d+ binding|registered successfully"), 20)

    def command(self, text, *parameters):
        message = json.dumps({"command": text, "params": " ".join(parameters)})
        with socket.create_connection((PEER, 25320), 2) as control:
            control.sendall(f"{len(message)}:{message},".encode())
            control.settimeout(2)
            with contextlib.suppress(OSError):
                return control.recv(65536).decode(errors="replace")

    def heard(self):
        files = sorted(self.folder.glob("dump-*-dec.wav"), key=lambda path: path.stat().st_mtime)
        return files[-1] if files else self.folder / "nothing"


class Sipp(Program):
    """SIPp at the trunk's address."""

    def __init__(self, folder, scenario, *options, target=None, replace=(), port=5070):
        if scenario.endswith(".xml"):
            text = (FOLDER / scenario).read_text()
            for old, new in replace:
                text = text.replace(old, new)
            path = folder / scenario
            path.write_text(text)
            what = ["-sf", path]
        else:
            what = ["-sn", scenario]
        super().__init__(
            "sipp", ["sipp", *([target] if target else []), *what, "-i", TRUNK, "-mi", TRUNK, "-p", port, "-m", 1, "-nostdin",
                     "-timeout", "20s", "-timeout_error", "-trace_err", *options], folder)

    def finish(self, seconds=25):
        code = self.process.wait(seconds)
        if code != 0:
            errors = "".join(path.read_text(errors="replace")[-1500:] for path in self.log.parent.glob("*_errors.log"))
            raise Failed(f"sipp ended with {code}: {errors or self.text()[-1500:]}")


def call(handset, folder, callee, *options, media="", transport="tcp", seconds=40, server=f"127.0.0.1:{PORT}", sip="",
         account=""):
    """`handset call` as user alice; hands back its exit code and report."""
    files = folder / "alice-files"
    files.mkdir(exist_ok=True)
    path = configuration(files, "alice", transport=transport, media=media, server=server, sip=sip, account=account)
    result = subprocess.run(
        [handset, "call", callee, "--config", str(path), "--json", *map(str, options)], capture_output=True, text=True,
        timeout=seconds, check=False)
    report = json.loads(result.stdout) if result.stdout.strip().startswith("{") else {}
    return result.returncode, report, result.stderr


# --- Checks -----------------------------------------------------------------------------------------------------------

def registers(handset, folder):
    """Digest with MD5 and SHA-256, over UDP, TCP, TLS and WebSockets; a new connection after the server's restart."""
    for algorithm in ("MD5", "SHA-256"):
        with running(Kamailio(folder, algorithm)) as kamailio:
            for transport, port in SERVERS.items():
                account = f"trust_roots: {folder}/cert.pem" if transport in ("tls", "wss") else ""
                with running(Device(handset, folder, f"{algorithm}-{transport}", transport, server=f"127.0.0.1:{port}",
                                    account=account, sip="websocket_path: /ws" if "ws" in transport else "")) as device:
                    if device.count("Registered at the SIP server") != 1:
                        raise Failed("not registered")
                    if transport != "tcp" or algorithm != "MD5":
                        continue
                    kamailio.stop()
                    wait("the device notices", lambda: device.says("The flow to the SIP server has ended"))
                    again = Kamailio(folder, algorithm)
                    try:
                        wait("registered again", lambda: device.count("Registered at the SIP server") == 2, 40)
                    finally:
                        again.stop()
                        kamailio = Kamailio(folder, algorithm)
            kamailio.stop()


def baresip_calls(handset, folder):
    """baresip calls a device with SDES: sound both ways, and BYE from baresip."""
    with running(Kamailio(folder)), running(Baresip(folder)) as bob:
        with running(Device(handset, folder, "tone", behaviour="source: tone, frequency_hz: 500, record_folder: recordings",
                            media="codecs: [pcmu, pcma]")) as device:
            bob.command("dial", "sip:tone@sip.test")
            wait("the call stands", lambda: device.says('"message":"Media flows both ways"'))
            time.sleep(3)
            bob.command("hangup")
            wait("the record", lambda: "completed" in records(device), 10)
            expect_tone(device.recording(), 440, "the device hears baresip")
            expect_tone(bob.heard(), 500, "baresip hears the device")


def records(device):
    path = device.folder / "calls.jsonl"
    return path.read_text() if path.exists() else ""


def plain_only_if_configured(handset, folder):
    """baresip without SRTP is refused, and heard where allow_plain_rtp is set."""
    with running(Kamailio(folder)), running(Baresip(folder, protection="")) as bob:
        with running(Device(handset, folder, "strict")):
            bob.command("dial", "sip:strict@sip.test")
            wait("baresip is refused", lambda: bob.says("488"))
        with running(Device(handset, folder, "lax", behaviour="source: tone, frequency_hz: 500, record_folder: recordings",
                            media="allow_plain_rtp: true")) as device:
            bob.command("dial", "sip:lax@sip.test")
            time.sleep(4)
            bob.command("hangup")
            wait("the record", lambda: "completed" in records(device), 10)
            expect_tone(device.recording(), 440, "the device hears baresip")
            expect_tone(bob.heard(), 500, "baresip hears the device")


def device_calls_baresip(handset, folder):
    """A device calls baresip, registered over UDP or TCP: sound both ways, and BYE from the device; a user that there is not."""
    recording = folder / "alice.wav"
    tone = folder / "tone.wav"
    make_tone(tone, 500)
    for transport in ("udp", "tcp"):
        with running(Kamailio(folder)), running(Baresip(folder)) as bob:
            code, report, words = call(
                handset, folder, "bob", "--play", tone, "--record", recording, "--duration", "4",
                transport=transport)
            if code != 0 or report.get("outcome") != "completed":
                raise Failed(f"{transport}: exit {code}: {report or words}")
            expect_tone(recording, 440, f"{transport}: the device hears baresip")
            expect_tone(bob.heard(), 500, f"{transport}: baresip hears the device")
    with running(Kamailio(folder)):
        code, report, words = call(handset, folder, "nobody")
        if code == 0 or "404" not in words + json.dumps(report):
            raise Failed(f"a call to nobody: exit {code}: {report or words}")


def make_tone(path, frequency, seconds=5, rate=48_000):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(array.array("h", (
            int(8_000 * math.sin(2 * math.pi * frequency * place / rate)) for place in range(seconds * rate))).tobytes())


def sipp_calls(handset, folder):
    """SIPp calls with speech and a key, through kamailio and directly: 180 before 200, Contact, Record-Route; refusals; CANCEL."""
    target, plain = f"{PEER}:{PORT}", "allow_plain_rtp: true"
    with running(Kamailio(folder)):
        with running(Device(handset, folder, "desk", transport="udp", media=plain,
                            behaviour="source: tone, record_folder: recordings")) as device:
            # The routes are kamailio's.
            own = [(f"Record-Route: <sip:[local_ip]:[local_port];lr;n={number}>\n", "") for number in (2, 1)]
            Sipp(folder, "uac.xml", "-s", "desk", target=target, replace=[*own, ("n=2.*", "r2=on.*")]).finish()
            wait("a record", lambda: "completed" in records(device))
            expect_sound(device.recording(), "what the device hears of SIPp")
            if not device.says('"digit":"5"'):
                raise Failed("the key 5 was not heard")
        with running(Device(handset, folder, "busy", media=plain, answer="mode: reject")):
            Sipp(folder, "refused.xml", "-s", "busy", target=target, replace=[("STATUS", "603")]).finish()
        with running(Device(handset, folder, "rings", media=plain, answer="mode: ring")) as device:
            Sipp(folder, "cancel.xml", "-s", "rings", target=target).finish()
            wait("answered elsewhere", lambda: "acceptedElsewhere" in records(device))
        with running(Device(handset, folder, "strict")):
            Sipp(folder, "refused.xml", "-s", "strict", target=target, replace=[("STATUS", "488")]).finish()
        with running(Device(handset, folder, "direct", transport="udp", media=plain, answer="mode: auto, max_calls: 100",
                            sip="calls_from: anybody, register_s: 0, port: 25071")):
            Sipp(folder, "uac.xml", "-s", "direct", target="127.0.0.1:25071").finish()
            Sipp(folder, "uac", "-s", "direct", "-m", "50", "-r", "25", "-d", "200", target="127.0.0.1:25071").finish()
        with running(Device(handset, folder, "closed", transport="udp", media=plain,
                            sip="register_s: 0, port: 25072")):
            scanner = Sipp(folder, "uac", "-s", "closed", "-timeout", "3s", target="127.0.0.1:25072")
            if scanner.process.wait(25) == 0:
                raise Failed("a stranger's call was answered")


def device_calls_sipp(handset, folder):
    """A device calls SIPp's callee through kamailio and hears its speech; and takes back a call that only rings."""
    recording, tone = folder / "alice.wav", folder / "tone.wav"
    make_tone(tone, 500)
    for transport in ("udp", "tcp"):
        with running(Kamailio(folder)):
            trunk = Sipp(folder, "answer.xml")
            code, report, words = call(
                handset, folder, "trunk", "--play", tone, "--record", recording, "--duration", "3", transport=transport,
                media="allow_plain_rtp: true, offers: plain, codecs: [pcma]")
            if code != 0 or report.get("outcome") != "completed":
                raise Failed(f"{transport}: exit {code}: {report or words}")
            trunk.finish()
            expect_sound(recording, f"{transport}: what the device hears")
            trunk = Sipp(folder, "ringing.xml")
            code, report, words = call(
                handset, folder, "trunk", "--ttl", "2", transport=transport,
                media="allow_plain_rtp: true, offers: plain, codecs: [pcma]")
            trunk.finish()
            if report.get("outcome") != "noAnswer":
                raise Failed(f"{transport}: a call that only rings: exit {code}: {report or words}")


@contextlib.contextmanager
def running(program):
    try:
        yield program
    except Exception:
        print(f"--- {program.name}\n{program.text()[-3000:]}", file=sys.stderr)
        raise
    finally:
        program.stop()


def websocket_calls(handset, folder):
    """A device at a secure WebSocket is called twice by one at a plain WebSocket, with sound both ways."""
    recording, tone = folder / "alice.wav", folder / "tone.wav"
    make_tone(tone, 440)
    with running(Kamailio(folder)), running(Device(
            handset, folder, "desk", "wss", server=f"localhost:{WSS_PORT}", sip="websocket_path: /ws",
            account=f"trust_roots: {folder}/cert.pem",
            behaviour="source: tone, frequency_hz: 500, record_folder: recordings")) as device:
        for _ in range(2):
            code, report, words = call(
                handset, folder, "desk", "--play", tone, "--record", recording, "--duration", "3", transport="ws",
                server=f"127.0.0.1:{WS_PORT}", sip="websocket_path: /ws")
            if code != 0 or report.get("outcome") != "completed":
                raise Failed(f"exit {code}: {report or words}")
            expect_tone(recording, 500, "the caller")
            wait("the record", lambda: "completed" in records(device), 10)
            expect_tone(device.recording(), 440, "the callee")


def direct_call(handset, folder, scenario, *options, seconds=40):
    """A device that does not register calls SIPp without anybody between."""
    trunk = Sipp(folder, scenario, "-timeout", f"{seconds}s")
    code, report, words = call(
        handset, folder, "trunk", *options, transport="udp", server=f"{TRUNK}:5070", sip="register_s: 0",
        account="allow_plain_text: true", media="allow_plain_rtp: true, offers: plain, codecs: [pcma]", seconds=seconds)
    trunk.finish()
    return code, report, words


def races(handset, folder):
    """SIPp answers twice (forks), answers as the CANCEL comes, wants longer sessions (422), and offers as the device does (491)."""
    tone, recording = folder / "tone.wav", folder / "alice.wav"
    make_tone(tone, 500)
    for scenario, options, outcome in (
            ("forks.xml", ["--play", tone, "--record", recording, "--duration", "3"], "completed"),
            ("late.xml", ["--ttl", "2"], "noAnswer"), ("glare.xml", ["--duration", "55"], "completed")):
        code, report, words = direct_call(handset, folder, scenario, *options, seconds=80)
        if report.get("outcome") != outcome:
            raise Failed(f"{scenario}: exit {code}: {report or words}")
    expect_sound(recording, "what the device hears of the one that answered first")


def early_media(handset, folder):
    """SIPp speaks before it answers, and the device hears it then; what the device plays begins with the answer."""
    tone, recording = folder / "tone.wav", folder / "alice.wav"
    make_tone(tone, 500)
    code, report, words = direct_call(
        handset, folder, "early.xml", "--play", tone, "--record", recording, "--duration", "1", seconds=60)
    if report.get("outcome") != "completed":
        raise Failed(f"exit {code}: {report or words}")
    expect_sound(recording, "what the device hears before the answer")


class RTPEngine(Program):
    """A relay of media that kamailio puts between the two sides of a call."""

    def __init__(self, folder):
        super().__init__(
            "rtpengine", ["rtpengine", "--foreground", "--log-stderr", "--table=-1", f"--interface={PEER}",
                          "--listen-ng=127.0.0.1:25222", "--port-min=31000", "--port-max=31100", "--delete-delay=0",
                          f"--pidfile={folder}/rtpengine.pid"], folder)
        time.sleep(1)
        self.says("")


def media_relay(handset, folder):
    """Two devices call each other over SDES and over plain RTP with rtpengine between, which carries sound both ways."""
    recording, tone = folder / "alice.wav", folder / "tone.wav"
    make_tone(tone, 440)
    with running(RTPEngine(folder)) as relay, running(Kamailio(folder, "MD5", "-A", "RTPENGINE")):
        for media in ("offers: sdes", "offers: plain, allow_plain_rtp: true"):
            name = media.split()[1].strip(",")
            with running(Device(handset, folder, name, media=media,
                                behaviour="source: tone, frequency_hz: 500, record_folder: recordings")) as device:
                code, report, words = call(
                    handset, folder, name, "--play", tone, "--record", recording, "--duration", "3", media=media)
                if code != 0 or report.get("outcome") != "completed":
                    raise Failed(f"{name}: exit {code}: {report or words}")
                wait("the record", lambda: "completed" in records(device), 10)
                expect_tone(recording, 500, f"{name}: the caller")
                expect_tone(device.recording(), 440, f"{name}: the callee")
        carried = [int(count) for count in re.findall(r"(\d+) p, \d+ b", relay.text())]
        if len([count for count in carried if count > 100]) < 4:
            raise Failed(f"rtpengine carried {carried} packets: {relay.text()[-2000:]}")


def aiosipua_calls(handset, folder):
    """aiosipua calls a device directly, acknowledges its 180 by PRACK, and wants a session timer: sound both ways, and BYE."""
    tone, heard = folder / "tone.wav", folder / "heard.wav"
    make_tone(tone, 440, 3, 8_000)
    with running(Device(
            handset, folder, "desk", "udp", media="allow_plain_rtp: true", sip="calls_from: anybody, register_s: 0, port: 25074",
            behaviour="source: tone, frequency_hz: 500, record_folder: recordings")) as device:
        caller = subprocess.run(
            [sys.executable, FOLDER.parent / "aiosipua_peer.py", "127.0.0.1", "25074", "desk", tone, heard],
            capture_output=True, text=True, timeout=30, check=False)
        if caller.returncode != 0 or int(caller.stdout or 0) < 100:
            raise Failed(f"exit {caller.returncode}: {caller.stdout} {caller.stderr[-1500:]}")
        wait("the record", lambda: "completed" in records(device), 10)
        expect_tone(heard, 500, "aiosipua hears the device")
        expect_tone(device.recording(), 440, "the device hears aiosipua")


def lossy_calls(handset, folder):
    """SIPp makes calls over UDP and loses a fifth of what it sends and receives: all of them stand and end."""
    failures = []
    # In one of thirty tries one of the calls loses the same message until the time for its media is over: two of three count.
    for number in range(3):
        try:
            lossy_try(handset, folder, f"lossy{number}")
        except Failed as error:
            failures.append(error)
        if len(failures) == 2:
            raise failures[-1]
        if number - len(failures) == 1:
            return


def lossy_try(handset, folder, name):
    with running(Device(handset, folder, name, transport="udp", media="allow_plain_rtp: true",
                        answer="mode: auto, max_calls: 100", sip="calls_from: anybody, register_s: 0, port: 25073")) as device:
        Sipp(folder, "uac", "-s", name, "-m", "50", "-r", "10", "-d", "500", "-lost", "20", "-max_retrans", "12", "-timeout",
             "60s", target="127.0.0.1:25073").finish(90)
        wait("50 records", lambda: records(device).count("\n") >= 50, 40)


def versions():
    found = {}
    for package in ("kamailio", "sip-tester", "baresip", "rtpengine-daemon"):
        found[package] = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False).stdout
    return found


CHECKS = [registers, baresip_calls, plain_only_if_configured, device_calls_baresip, sipp_calls, device_calls_sipp, websocket_calls,
          lossy_calls, races, early_media, media_relay, aiosipua_calls]


def make_network():
    """The interface d0 with the addresses of peers and trunk."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "d0", "type", "veth", "peer", "name", "d1")
    for address in (PEER, TRUNK):
        run("ip", "address", "add", f"{address}/24", "dev", "d0")
    for end in ("d0", "d1"):
        run("ip", "link", "set", end, "up")


def main():
    handset, only = sys.argv[1], sys.argv[2:]
    make_network()
    print(json.dumps(versions()))
    for check in CHECKS:
        if only and check.__name__ not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            check(handset, pathlib.Path(folder))
            print(f"{check.__name__}: {check.__doc__.strip()} {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"failed: {failure}")
