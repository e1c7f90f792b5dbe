#!/usr/bin/env python3
"""Devices at Asterisk: calls both ways over UDP, TCP and TLS, plain, with SDES, DTLS and WebRTC, with Opus and G.711, and sound that
is compared from its first 100 ms on; keys, a menu that waits in silence, hold, transfers, direct media, early media, and a trunk.

usage: sip_asterisk_test.py HANDSET [CHECK…]

Exits with 0 if every check passed. Needs a network namespace and a mount namespace of its own, and a root with Asterisk in
.build-asterisk: scripts/interop-sip provides them.
"""

import contextlib
import json
import pathlib
import re
import subprocess
import time
import wave

from asterisk import Asterisk, expect_no_noise, expect_stairs, make_stairs, steps_heard
from sip_stage import (
    PEER,
    SERVERS,
    Baresip,
    Device,
    Exchange,
    Failed,
    Program,
    begin_call,
    configuration,
    expect_tone,
    finished,
    main,
    make_tone,
    member,
    recordings,
    records,
    running,
    wait,
)

ROOT = pathlib.Path(__file__).resolve().parents[2] / ".build-asterisk"
# How a device offers media, by the kind of endpoint: without TLS it has no SDES, and offers DTLS without ICE.
OFFERS = {"plain": "allow_plain_rtp: true, offers: plain", "sdes": "offers: sdes", "dtls": "offers: sdes", "webrtc": "offers: webrtc"}
TRANSPORTS = {"plain": ("udp", "tcp", "tls"), "sdes": ("tls",), "dtls": ("udp", "tcp"), "webrtc": ("udp", "tcp", "tls")}
CODECS = {"opus": "opus", "ulaw": "pcmu"}


def media(kind, codec):
    return f"{OFFERS[kind]}, codecs: [{CODECS[codec]}]"


def place(transport, asterisk):
    """The server and the trust of an account, by transport."""
    account = f"trust_roots: {asterisk.certificate}" if transport == "tls" else "allow_plain_text: true"
    return {"transport": transport, "server": f"{PEER}:{SERVERS[transport]}", "account": account}


def every():
    """Endpoints of all kinds by name: each protection, transport and codec."""
    return {
        f"{kind}{transport}{codec}": (kind, codec, transport)
        for kind, transports in TRANSPORTS.items()
        for transport in transports
        for codec in CODECS
    }


def begin(handset, folder, name, callee, *options, media, asterisk, transport="udp"):
    """Starts `handset call` as an endpoint, for `finished`."""
    files = folder / f"{name}-call"
    files.mkdir(exist_ok=True)
    path = configuration(files, name, media=media, **place(transport, asterisk))
    return subprocess.Popen(
        [handset, "call", callee, "--config", str(path), "--json", *map(str, options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def expect_completed(name, process):
    code, report, words = finished(process)
    if code != 0 or report.get("outcome") != "completed":
        raise Failed(f"{name}: exit {code}: {report or words}")
    return report


# --- Checks -----------------------------------------------------------------------------------------------------------


def calls_out(handset, folder):
    """Devices call Asterisk over each transport, with each protection and codec: the stairs both ways, from the first step on."""
    make_stairs(folder / "stairs.wav", 48_000)
    everybody = every()
    with running(Asterisk(ROOT, folder, {name: (kind, codec) for name, (kind, codec, _) in everybody.items()})) as asterisk:
        for kind in OFFERS:
            calls = {
                name: begin(
                    handset,
                    folder,
                    name,
                    "stairs",
                    "--play",
                    folder / "stairs.wav",
                    "--record",
                    folder / f"{name}.wav",
                    "--duration",
                    "6",
                    media=media(kind, codec),
                    asterisk=asterisk,
                    transport=transport,
                )
                for name, (each, codec, transport) in everybody.items()
                if each == kind
            }
            for name, process in calls.items():
                expect_completed(name, process)
                expect_stairs(folder / f"{name}.wav", f"{name}: the device hears Asterisk")
                expect_stairs(asterisk.heard(name), f"{name}: Asterisk hears the device")
                expect_no_noise(asterisk.heard(name), f"{name}: Asterisk hears the device")


def calls_in(handset, folder):
    """Asterisk calls devices over each transport, with each protection and codec: the stairs both ways, and BYE from Asterisk."""
    make_stairs(folder / "stairs.wav", 48_000)
    everybody = every()
    with running(Asterisk(ROOT, folder, {name: (kind, codec) for name, (kind, codec, _) in everybody.items()})) as asterisk:
        for kind in OFFERS:
            with contextlib.ExitStack() as stack:
                devices = {}
                for name, (each, codec, transport) in everybody.items():
                    if each == kind:
                        devices[name] = stack.enter_context(
                            running(
                                Device(
                                    handset,
                                    folder,
                                    name,
                                    media=media(kind, codec),
                                    behaviour=f"source: play, file: {folder}/stairs.wav, record_folder: recordings",
                                    **place(transport, asterisk),
                                )
                            )
                        )
                for name in devices:
                    asterisk.command(f"channel originate PJSIP/{name} extension stairs@phones")
                for name, device in devices.items():
                    wait(f"{name} is in a call", lambda: device.says('"message":"Established"'))
                time.sleep(6)
                asterisk.command("channel request hangup all")
                for name, device in devices.items():
                    wait(f"{name} has a record", lambda: "completed" in records(device))
                    expect_stairs(device.recording(), f"{name}: the device hears Asterisk")
                    expect_stairs(asterisk.heard(name), f"{name}: Asterisk hears the device")
                    expect_no_noise(asterisk.heard(name), f"{name}: Asterisk hears the device")


def keys(handset, folder):
    """Keys by RFC 4733 and by INFO, both ways; and to a menu that is silent for twelve seconds, in which the call continues."""
    endpoints = {
        "events": ("plain", "ulaw"),
        "info": ("plain", "ulaw", "dtmf_mode=info"),
        "eventsmenu": ("plain", "opus"),
        "infomenu": ("plain", "ulaw", "dtmf_mode=info"),
    }
    with running(Asterisk(ROOT, folder, endpoints)) as asterisk, contextlib.ExitStack() as stack:
        devices = {
            name: stack.enter_context(
                running(
                    Device(
                        handset,
                        folder,
                        name,
                        media="allow_plain_rtp: true, offers: plain",
                        behaviour="source: silence",
                        **place("udp", asterisk),
                    )
                )
            )
            for name in endpoints
        }
        for name in endpoints:
            menu = "menu" if "menu" in name else "keys"
            control(handset, devices[name], "call", f"{menu}@sip.test")
        for name, device in devices.items():
            wait(f"{name} is in a call", lambda: device.says('"message":"Established"'))
        begun = time.monotonic()
        for waits in ("", "menu"):
            if waits:
                time.sleep(max(0, begun + 13 - time.monotonic()))
            for name, device in devices.items():
                if ("menu" in name) != bool(waits):
                    continue
                control(handset, device, "dtmf", "1234")
            for name, device in devices.items():
                if ("menu" in name) != bool(waits):
                    continue
                wait(f"Asterisk has the keys of {name}", lambda: asterisk.says(rf"Keys of {name}: 1234\b"), 15)
                wait(f"{name} has Asterisk's keys", lambda: keys_of(device) == "5678", 15)


def keys_of(device):
    return "".join(re.findall(r'"digit":"(.)"', device.text()))


def control(handset, device, *request):
    done = subprocess.run(
        [handset, "control", "--socket", device.folder / "control.sock", "--json", *request],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    if done.returncode != 0:
        raise Failed(f"control {request}: {done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def holds(handset, folder):
    """baresip calls a device through Asterisk, holds it and resumes; then the device hears baresip again."""
    with (
        running(Asterisk(ROOT, folder, {"bob": ("plain", "ulaw"), "desk": ("plain", "ulaw", "moh_passthrough=yes")})) as asterisk,
        running(Baresip(folder, protection="")) as bob,
        running(
            Device(
                handset,
                folder,
                "desk",
                media="allow_plain_rtp: true",
                behaviour="source: tone, frequency_hz: 500, record_folder: recordings",
                **place("udp", asterisk),
            )
        ) as device,
    ):
        bob.command("dial", "sip:desk@sip.test")
        wait("the call is established", lambda: device.says('"message":"Established"'))
        time.sleep(1)
        bob.command("hold")
        time.sleep(3)
        bob.command("resume")
        time.sleep(4)
        bob.command("hangup")
        wait("the record", lambda: "completed" in records(device))
        expect_tone(last_seconds(device.recording(), 2), 440, "the device hears baresip after the hold")
        expect_tone(last_seconds(bob.heard(), 2), 500, "baresip hears the device after the hold")


def last_seconds(path, seconds):
    """A copy of the end of a recording."""
    with wave.open(str(path)) as file:
        parameters, count = file.getparams(), min(file.getnframes(), seconds * file.getframerate())
        file.setpos(file.getnframes() - count)
        frames = file.readframes(count)
    copy = path.with_suffix(".end.wav")
    with wave.open(str(copy), "wb") as file:
        file.setparams(parameters)
        file.writeframes(frames)
    return copy


def transfers(handset, folder):
    """A device transfers baresip to an extension, and baresip the device: the transferred party hears the stairs."""
    with (
        running(Asterisk(ROOT, folder, {"bob": ("plain", "ulaw"), "desk": ("plain", "ulaw")})) as asterisk,
        running(Baresip(folder, protection="")) as bob,
        running(
            Device(
                handset,
                folder,
                "desk",
                media="allow_plain_rtp: true",
                behaviour="source: tone, frequency_hz: 500, record_folder: recordings",
                **place("udp", asterisk),
            )
        ) as device,
    ):
        bob.command("dial", "sip:desk@sip.test")
        wait("the call is established", lambda: device.says('"message":"Established"'))
        number = control(handset, device, "status")[0]["status"]["calls"][0]["call"]
        control(handset, device, "transfer", str(number), "stairs@sip.test")
        wait("the device's call has ended", lambda: records(device))
        time.sleep(4)
        bob.command("hangup")
        expect_tone(asterisk.heard("bob"), 440, "Asterisk hears baresip after the transfer")
        bob.command("dial", "sip:desk@sip.test")
        wait("the second call is established", lambda: device.count("Established") == 2)
        bob.command("transfer", "sip:stairs@sip.test")
        time.sleep(5)
        asterisk.command("channel request hangup all")
        wait("the second record", lambda: records(device).count("completed") == 2)
        heard = steps_heard(device.recording())
        if len(set(heard)) < 25:
            raise Failed(f"after baresip's transfer the device hears {heard}")


def direct(handset, folder):
    """Two devices whose media does not pass Asterisk, with Opus, for which each side has its own payload number: sound both ways."""
    tone, recording = folder / "tone.wav", folder / "heard.wav"
    make_tone(tone, 500, 8)
    endpoints = dict.fromkeys(("desk", "hall"), ("plain", "opus", "direct_media=yes"))
    with (
        running(Asterisk(ROOT, folder, endpoints)) as asterisk,
        running(
            Device(
                handset,
                folder,
                "desk",
                media=media("plain", "opus"),
                behaviour="source: tone, frequency_hz: 700, record_folder: recordings",
                **place("udp", asterisk),
            )
        ) as device,
    ):
        calling = begin(
            handset,
            folder,
            "hall",
            "desk",
            "--play",
            tone,
            "--record",
            recording,
            "--duration",
            "7",
            media=media("plain", "opus"),
            asterisk=asterisk,
        )
        wait("Asterisk has left the media's path", lambda: asterisk.says("Remotely bridged"))
        expect_completed("hall", calling)
        wait("the record", lambda: "completed" in records(device))
        expect_tone(last_seconds(recording, 3), 700, "the caller hears the device")
        expect_tone(last_seconds(device.recording(), 3), 500, "the device hears the caller")


def early(handset, folder):
    """Sound that Asterisk plays before it answers busy is heard; an unknown user and an absent one have causes of their own."""
    recording = folder / "early.wav"
    with running(Asterisk(ROOT, folder, {"desk": ("plain", "ulaw")})) as asterisk:
        code, report, words = finished(
            begin(handset, folder, "desk", "early", "--record", recording, media=media("plain", "ulaw"), asterisk=asterisk)
        )
        if code == 0 or "busy" not in json.dumps(report) + words:
            raise Failed(f"busy: exit {code}: {report or words}")
        expect_stairs(recording, "the caller hears the announcement")
        for callee, status in (("nobody", "404"), ("away", "notThere")):
            code, report, words = finished(begin(handset, folder, "desk", callee, media=media("plain", "ulaw"), asterisk=asterisk))
            if code == 0 or status not in json.dumps(report) + words:
                raise Failed(f"{callee}: exit {code}: {report or words}")


def trunk(handset, folder):
    """A trunk joins an exchange with Asterisk: its users call an extension and are called, with the stairs from the first step on."""
    stairs, recording = folder / "stairs.wav", folder / "heard.wav"
    make_stairs(stairs, 48_000)
    users = ("alice", "gateway")
    trunks = "trunks:\n  - { user: gateway, numbers: ['3??'], callers: [alice] }\n"
    with running(Asterisk(ROOT, folder, {"200": ("plain", "ulaw")})) as asterisk, running(Exchange(handset, folder, users, trunks)):
        files = folder / "gateway-files"
        files.mkdir()
        network = configuration(files, "200", media=media("plain", "ulaw"), **place("udp", asterisk))
        network.write_text(
            "\n".join(line for line in network.read_text().splitlines() if not line.startswith(("behaviour", "control"))) + "\n"
        )
        member(folder, "gateway")
        path = folder / "trunk.yaml"
        path.write_text(f"exchange: gateway-device.yaml\nnetwork: {network}\nincoming:\n  - {{ number: '200', user: alice }}\n")
        with running(Program("trunk", [handset, "trunk", "--config", path, "--log-format", "json"], folder)) as gateway:
            wait("the trunk is ready", lambda: gateway.says('"message":"Ready"'), 20)
            expect_completed(
                "alice", begin_call(handset, folder, "alice", "300", "--play", stairs, "--record", recording, "--duration", "6")
            )
            expect_stairs(recording, "the user hears Asterisk")
            expect_stairs(asterisk.heard("200"), "Asterisk hears the user")
            behaviour = (
                f"behaviour: {{ source: play, file: {stairs}, record_folder: recordings }}\ndevice: {{ call_records: calls.jsonl }}\n"
            )
            with running(
                Program("alice", [handset, "run", "--config", member(folder, "alice", behaviour), "--log-format", "json"], folder)
            ) as alice:
                wait("alice is ready", lambda: alice.says('"message":"Ready"'), 20)
                asterisk.command("channel originate PJSIP/200 extension stairs@phones")
                wait("the calls are joined", lambda: gateway.text().count("Two calls are joined") == 2)
                time.sleep(6)
                asterisk.command("channel request hangup all")
                wait("the record", lambda: (folder / "calls.jsonl").exists() and "completed" in (folder / "calls.jsonl").read_text())
                expect_stairs(recordings(folder / "recordings")[-1], "the user hears Asterisk's call")
                expect_stairs(asterisk.heard("200"), "Asterisk's call hears the user")


CHECKS = [calls_out, calls_in, keys, holds, transfers, direct, early, trunk]


if __name__ == "__main__":
    main(CHECKS)
