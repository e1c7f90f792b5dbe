#!/usr/bin/env python3
"""Calls between a browser and devices that keep their address to themselves: everything goes through a real TURN server.

usage: relay_test.py HANDSET [--figures FILE]

Exits with 0 if every check passed. Needs what device_test.py does, and coturn; scripts/interop installs both. The figures
are added to those in FILE.
"""

import argparse
import contextlib
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import relay
import speech
from phones import Exchange, Failed
from selenium.common.exceptions import WebDriverException
from stage import LISTENING, PLAYING, SCRIPT, SETTLING, Stage, TalkingPhone, both_ways, ended, hang_up, judged, noted, quality, talk

CHECKS = []
USERS = ("alice", "echo", "caller")


def check(function):
    """Marks a function as one of the checks; its first docstring line is its name."""
    CHECKS.append(function)
    return function


def digest(secret):
    return hashlib.sha256(secret.encode()).hexdigest()


def hash_of(handset, password):
    """The form of a password in the exchange's configuration."""
    done = subprocess.run([handset, "user", "hash-password"], input=password + "\n", capture_output=True, text=True, check=True, timeout=20)
    return json.dumps(done.stdout.strip())


def exchange(handset, folder, server):
    """An exchange with the demonstration's accounts, which gives all of them a TURN server."""
    (folder / "turn.secret").write_text(relay.SECRET)
    (folder / "exchange.yaml").write_text(
        "\n".join(
            [
                "web_phone: true",
                "apps:",
                f"  - {{ key: demo, secret_hash: {digest('demo')} }}",
                "users:",
                *(
                    f"  - {{ id: {user}, public_ids: [{user}@localhost], media_token_hashes: [{digest(user + '-demo-token')}] }}"
                    for user in USERS[1:]
                ),
                f"  - {{ id: {USERS[0]}, public_ids: [{USERS[0]}@localhost], password_hash: {hash_of(handset, 'change me')} }}",
                "ice_servers:",
                f'  - urls: ["{server.url}"]',
                "    secret_file: turn.secret",
                "",
            ]
        )
    )
    return Exchange(handset, "--config", str(folder / "exchange.yaml"))


class RelayStage(Stage):
    """A stage on which a device and a browser are reached through a TURN server only."""

    def __init__(self, handset):
        with contextlib.ExitStack() as opened:
            self.area = pathlib.Path(opened.enter_context(tempfile.TemporaryDirectory()))
            self.server = opened.enter_context(contextlib.closing(relay.Relay()))
            script = "window.relaysOnly = true;\n" + SCRIPT
            super().__init__(handset, exchange(handset, self.area, self.server), script, media="relay_only: true")
            # After what the stage itself has opened, because that ends first.
            self.rest = opened.pop_all()
        (self.area / "token").write_text("caller-demo-token")
        (self.area / "caller.yaml").write_text(
            "account: { media_token_file: token }\nbehaviour: { source: silence }\nmedia: { address: 127.0.0.1, relay_only: true }\n"
        )

    @contextlib.contextmanager
    def phone(self, name):
        phone = TalkingPhone(self.exchange.url, microphone=self.path / "microphone.wav", script=self.script)
        try:
            phone.sign_in_with(name, "change me")
            yield phone
        finally:
            phone.close()

    def close(self):
        super().close()
        self.rest.close()


def all_relayed(phone):
    """Whether only relays have been signaled and used."""
    found = phone.run_async("kinds()")
    # The other side's relay may be learnt from its checks before it is signaled.
    if found["path"][0] != "relay" or found["path"][1] not in ("relay", "prflx") or "host" in found["told"]:
        raise Failed(f"the browser knows of {found}")


@check
def echoes(stage):
    """A browser calls a device, both through a relay only, and hears its own voice come back."""

    def measure():
        talk(stage)
        time.sleep(SETTLING)
        all_relayed(stage.alice)
        heard = stage.alice.hear(LISTENING)
        hang_up(stage.alice)
        return speech.score(stage.original, heard, repeats=True)

    before = noted(stage.device)
    judged(stage, "echo", measure, "Chromium → device → Chromium, relayed")
    ended(stage.device, before + 1, "completed")


@check
def is_called(stage):
    """A device calls a browser, both through a relay only; each hears the other well."""
    record = stage.path / "record.wav"

    def measure():
        stage.alice.run("window.answers = true")
        caller = stage.caller(
            "alice", "--config", stage.area / "caller.yaml", "--play", stage.path / "play.wav", "--record", record, "--duration", PLAYING
        )
        stage.alice.phase("talking")
        all_relayed(stage.alice)
        heard = stage.alice.hear(SETTLING + LISTENING)
        report = caller.report()
        stage.alice.run("window.answers = false")
        stage.alice.run_async("rest()")
        if (report["outcome"], report["exit"]) != ("completed", 0):
            raise Failed(f"the call was {report}")
        return both_ways(stage, "Chromium, relayed", speech.read(record)[int(SETTLING * speech.RATE) :], heard)

    judged(stage, "one way", measure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset", help="the handset command to test")
    parser.add_argument("--figures", type=pathlib.Path, help="where to add the figures")
    options = parser.parse_args()
    stage = RelayStage(options.handset)
    failures = 0
    try:
        for function in CHECKS:
            start = time.monotonic()
            try:
                function(stage)
                if problems := stage.alice.complaints():
                    raise Failed("the browser complains: " + "; ".join(problems))
            except (Failed, WebDriverException, ValueError) as error:
                failures += 1
                print(f"FAILED {function.__name__}: {function.__doc__}\n       {error}", flush=True)
                for log in (stage.device.log, stage.server.log):
                    print("       " + "\n       ".join(log.read_text().splitlines()[-20:]))
                break  # What follows expects that there is no call.
            print(f"ok     {time.monotonic() - start:5.1f} s  {function.__doc__}", flush=True)
    finally:
        stage.close()
    quality(stage.figures)
    if options.figures:
        figures = json.loads(options.figures.read_text()) if options.figures.exists() else {"pesq": {}}
        figures["pesq"] |= stage.figures["pesq"]
        options.figures.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")
    print(f"{failures} failed" if failures else f"all {len(CHECKS)} hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
