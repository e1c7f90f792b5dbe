#!/usr/bin/env python3
"""A trunk between an exchange and a SIP server: devices of the exchange, which speak WebRTC as the web phone does, call baresip
and are called by it, through kamailio; users that may not are refused.

usage: sip_trunk_test.py HANDSET [CHECK…]

Exits with 0 if every check passed. Needs a network namespace of its own; scripts/interop-sip makes it.
"""

import contextlib
import json
import re
import time

from sip_stage import (
    Baresip,
    Exchange,
    Failed,
    Kamailio,
    Program,
    begin_call,
    configuration,
    expect_tone,
    finished,
    main,
    make_tone,
    member,
    recordings,
    running,
    wait,
)

TRUNKS = """trunks:
  - user: gateway
    numbers: ['3??', '2??']
    callers: [alice]
    calls_per_hour: 4
    calls_at_once: 1
"""


class Gateway(Program):
    """`handset trunk`: 200 calls alice."""

    def __init__(self, handset, folder, media="codecs: [pcmu]"):
        files = folder / "gateway-files"
        files.mkdir(exist_ok=True)
        network = configuration(files, "gateway", media=media)
        network.write_text(
            "\n".join(line for line in network.read_text().splitlines() if not line.startswith(("behaviour", "control"))) + "\n"
        )
        member(folder, "gateway")
        path = folder / "trunk.yaml"
        path.write_text(
            f"exchange: gateway-device.yaml\nnetwork: {network}\nincoming:\n  - {{ number: '200', user: alice }}\nmax_calls: 2\n"
        )
        super().__init__("trunk", [handset, "trunk", "--config", path, "--log-format", "json", "--log-level", "debug"], folder)
        wait("the trunk is ready", lambda: self.says('"message":"Ready"'), 20)


@contextlib.contextmanager
def everything(handset, folder, protection="srtp-mand", media="codecs: [pcmu]"):
    # Alice may call numbers, and bob may not.
    with (
        running(Kamailio(folder)),
        running(Baresip(folder, protection)) as desk,
        running(Exchange(handset, folder, ("alice", "bob", "gateway"), TRUNKS)),
        running(Gateway(handset, folder, media)) as gateway,
    ):
        yield desk, gateway


def call(handset, folder, name, callee, *options):
    """`handset call` at the exchange; returns its exit code, report and words."""
    return finished(begin_call(handset, folder, name, callee, *options))


# --- Checks -----------------------------------------------------------------------------------------------------------


def out(handset, folder):
    """A user of the exchange calls a telephone, with SDES and with plain RTP: sound both ways, and the user hangs up."""
    recording, tone = folder / "alice.wav", folder / "tone.wav"
    make_tone(tone, 500)
    for protection, media in (("srtp-mand", "codecs: [pcmu]"), ("", "codecs: [pcmu], allow_plain_rtp: true, offers: plain")):
        with everything(handset, folder, protection, media) as (desk, gateway):
            code, report, words = call(handset, folder, "alice", "301", "--play", tone, "--record", recording, "--duration", "4")
            if code != 0 or report.get("outcome") != "completed":
                raise Failed(f"exit {code}: {report or words}")
            expect_tone(recording, 440, "the user hears the telephone")
            expect_tone(desk.heard(), 500, "the telephone hears the user")
            wait("both halves have ended", lambda: gateway.text().count('"message":"A call has ended"') == 2)
            recording.unlink()


def into(handset, folder):
    """A telephone calls a user of the exchange, twice, and hangs up: the caller is the trunk; a number without a route is declined."""
    with everything(handset, folder) as (desk, gateway):
        behaviour = "behaviour: { source: tone, frequency_hz: 500, record_folder: recordings }\ndevice: { call_records: calls.jsonl }\n"
        path = member(folder, "alice", behaviour)
        with running(Program("alice", [handset, "run", "--config", path, "--log-format", "json"], folder)) as alice:
            wait("alice is ready", lambda: alice.says('"message":"Ready"'), 20)
            for number in (1, 2):
                desk.command("dial", "sip:200@sip.test")
                wait("the calls are joined", lambda: gateway.text().count("Two calls are joined") == number)
                time.sleep(3)
                desk.command("hangup")
                wait("the record", lambda: (folder / "calls.jsonl").read_text().count("completed") == number)
            if '"from":"gateway"' not in alice.text():
                raise Failed(f"alice is called by another party than the trunk: {alice.text()}")
            for recording in recordings(folder / "recordings"):
                expect_tone(recording, 440, "the user hears the telephone")
            expect_tone(desk.heard(), 500, "the telephone hears the user")
            desk.command("dial", "sip:201@sip.test")
            wait("another number is declined", lambda: re.search("603 ", desk.text()))


def refused(handset, folder):
    """Only listed users call out, and only as often as they may; a number that leads back to the trunk is a loop."""
    with everything(handset, folder) as (desk, gateway):
        code, report, words = call(handset, folder, "bob", "301", "--duration", "1")
        if code == 0 or "may not call" not in words + json.dumps(report):
            raise Failed(f"bob calls out: exit {code}: {report or words}")
        if "A call comes in" in gateway.text():
            raise Failed("the trunk has received bob's call")
        code, report, words = call(handset, folder, "alice", "299", "--duration", "1")
        if code == 0 or report.get("outcome") == "completed":
            raise Failed(f"a loop: exit {code}: {report or words}")
        if "A call comes in" not in gateway.text() or gateway.text().count('"side":"network"') > 3:
            raise Failed(f"a loop is no call: {gateway.text()[-3000:]}")
        code, report, words = call(handset, folder, "alice", "399", "--duration", "1")
        if code == 0:
            raise Failed(f"an unknown number: {report or words}")
        for _ in range(2):
            call(handset, folder, "alice", "301", "--duration", "1")
        code, report, words = call(handset, folder, "alice", "301", "--duration", "1")
        if code == 0 or "within an hour" not in words + json.dumps(report):
            raise Failed(f"a fifth call: exit {code}: {report or words}")


CHECKS = [out, into, refused]


if __name__ == "__main__":
    main(CHECKS)
