#!/usr/bin/env python3
"""Several accounts in one process: two at kamailio and one at an exchange, all called at once, by baresip, by SIPp and by
`handset call`; and kamailio restarts.

usage: sip_accounts_test.py HANDSET [CHECK…]

Exits with 0 if every check passed. Needs a network namespace of its own; scripts/interop-sip makes it.
"""

import contextlib
import json
import subprocess
import time

from sip_stage import (
    KAMAILIO_ROUTES,
    PEER,
    PORT,
    TLS_PORT,
    Baresip,
    Exchange,
    Failed,
    Kamailio,
    Program,
    Sipp,
    begin_call,
    expect_sound,
    expect_tone,
    finished,
    main,
    make_tone,
    member_account,
    recordings,
    run,
    running,
    wait,
)


class Accounts(Program):
    """`handset run` with `sales` over TCP, `support` over TLS, and `front` at the exchange, which play 500, 600 and 700 Hz."""

    def __init__(self, handset, folder):
        self.handset, self.folder = handset, folder
        (folder / "password").write_text("secret\n")
        path = folder / "accounts.yaml"
        path.write_text(
            "\n".join(
                (
                    "accounts:",
                    *self.entry("sales", 500, self.sip("sales", "tcp", PORT), "codecs: [pcmu, pcma]"),
                    *self.entry("support", 600, self.sip("support", "tls", TLS_PORT), "allow_plain_rtp: true"),
                    *self.entry("front", 700, member_account("front"), ""),
                    "media: { address: 0.0.0.0 }",
                    "control: { socket: control.sock }",
                    "",
                )
            )
        )
        super().__init__("accounts", [handset, "run", "--config", path, "--log-format", "json", "--log-level", "debug"], folder)
        wait(
            "three accounts are connected",
            lambda: self.status()["accounts"] and all(account["connection"] == "connected" for account in self.status()["accounts"]),
            20,
        )

    @staticmethod
    def sip(name, transport, port):
        trust = ", trust_roots: cert.pem" if transport == "tls" else ""
        return (
            f"account: {{ kind: sip, password_file: password{trust}, "
            f"sip: {{ address: 'sip:{name}@sip.test', server: '127.0.0.1:{port}', transport: {transport} }} }}"
        )

    @staticmethod
    def entry(name, frequency, account, media):
        behaviour = f"source: tone, frequency_hz: {frequency}, record_folder: {name}-recordings"
        lines = [
            f"name: {name}",
            account,
            f"device: {{ call_records: {name}.jsonl }}",
            "answer: { mode: auto }",
            f"behaviour: {{ {behaviour} }}",
            *([f"media: {{ {media} }}"] if media else []),
        ]
        return [("  - " if line == lines[0] else "    ") + line for line in lines]

    def status(self):
        """What `handset control status` says; no accounts while the socket is not there."""
        result = subprocess.run(
            [self.handset, "control", "status", "--json", "--socket", self.folder / "control.sock"],
            capture_output=True,
            text=True,
            check=False,
        )
        self.says("")
        return json.loads(result.stdout)["status"] if result.returncode == 0 else {"accounts": [], "calls": []}

    def talking(self):
        """The accounts that talk, one for each call."""
        return sorted(call["account"] for call in self.status()["calls"] if call["state"] == "talking")

    def registrations(self, name):
        """How often an account has registered."""
        lines = [json.loads(line) for line in self.text().splitlines() if "Registered at the SIP server" in line]
        return len([line for line in lines if line["metadata"]["account"] == name])

    def record(self, name):
        """Waits for the record of an account's last call. Returns its recording."""
        path = self.folder / f"{name}.jsonl"
        wait(f"the record of {name}", lambda: path.exists() and "completed" in path.read_text().splitlines()[-1])
        files = recordings(self.folder / f"{name}-recordings")
        return files[-1] if files else self.folder / "nothing"


@contextlib.contextmanager
def everything(handset, folder):
    with (
        running(Kamailio(folder)) as kamailio,
        running(Exchange(handset, folder, ("front", "alice"))),
        running(Accounts(handset, folder)) as accounts,
    ):
        yield kamailio, accounts


def at_once(handset, folder):
    """Each account has a call at the same time, from baresip, SIPp and a device of the exchange, with sound both ways and
    records and recordings of its own."""
    tone, heard = folder / "tone.wav", folder / "alice.wav"
    make_tone(tone, 440, 20)
    with everything(handset, folder) as (_, accounts), running(Baresip(folder)) as bob:
        sipp = Sipp(folder, "uac.xml", "-s", "support", target=f"{PEER}:{PORT}", replace=KAMAILIO_ROUTES)
        alice = begin_call(handset, folder, "alice", "front", "--play", tone, "--record", heard, "--duration", "6")
        bob.command("dial", "sip:sales@sip.test")
        wait("three accounts talk", lambda: accounts.talking() == ["front", "sales", "support"])
        time.sleep(3)
        bob.command("hangup")
        code, report, words = finished(alice)
        if code != 0 or report.get("outcome") != "completed":
            raise Failed(f"exit {code}: {report or words}")
        sipp.finish()
        expect_tone(accounts.record("sales"), 440, "sales hears baresip")
        expect_tone(bob.heard(), 500, "baresip hears sales")
        expect_sound(accounts.record("support"), "support hears SIPp")
        expect_tone(accounts.record("front"), 440, "front hears alice")
        expect_tone(heard, 700, "alice hears front")


def server_restarts(handset, folder):
    """kamailio restarts during a call of the exchange's account: the call continues, both SIP accounts register again, and are
    called at once."""
    heard, tone = folder / "alice.wav", folder / "tone.wav"
    make_tone(tone, 440, 60)
    with everything(handset, folder) as (kamailio, accounts):
        alice = begin_call(handset, folder, "alice", "front", "--play", tone, "--record", heard, "--duration", "60")
        wait("front talks", lambda: accounts.talking() == ["front"])
        kamailio.stop()
        wait("both notice", lambda: accounts.text().count("The flow to the SIP server has ended") == 2)
        with running(Kamailio(folder)), running(Baresip(folder)) as bob:
            wait("both register again", lambda: [accounts.registrations(name) for name in ("sales", "support")] == [2, 2], 40)
            sipp = Sipp(folder, "uac.xml", "-s", "support", target=f"{PEER}:{PORT}", replace=KAMAILIO_ROUTES)
            bob.command("dial", "sip:sales@sip.test")
            wait("three accounts talk", lambda: accounts.talking() == ["front", "sales", "support"])
            time.sleep(3)
            bob.command("hangup")
            sipp.finish()
            expect_tone(accounts.record("sales"), 440, "sales hears baresip")
            expect_sound(accounts.record("support"), "support hears SIPp")
        run(handset, "control", "hangup", "--account", "front", "--socket", folder / "control.sock")
        report = finished(alice)[1]
        if report.get("outcome") != "completed":
            raise Failed(f"the exchange's call: {report}")
        expect_tone(heard, 700, "alice hears front")
        expect_tone(accounts.record("front"), 440, "front hears alice")


CHECKS = [at_once, server_restarts]

if __name__ == "__main__":
    main(CHECKS)
