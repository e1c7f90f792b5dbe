#!/usr/bin/env python3
"""Drives the web phone in real browsers: `handset serve`, and a Chromium for each user.

usage: phone_test.py HANDSET [--screenshots FOLDER] [--only NAME ...]

Exits with 0 if every check passed. Needs selenium and chromium-driver; scripts/interop installs both.
"""

import argparse
import contextlib
import json
import pathlib
import re
import sys
import tempfile
import time

import phone_access
from phones import Exchange, Failed, Scene, Wire, wait
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKS = []


def check(function):
    """Marks a function as one of the checks; its first docstring line is its name."""
    CHECKS.append(function)
    return function


# The checks, in order: each begins with both phones signed in and at rest, except the first.


@check
def signs_in(scene):
    """Users of the demonstration sign in with one click, and see each other come."""
    wait("there are guests", lambda: scene.alice.sees(".guest"))
    scene.shoot(scene.alice, "signed-out", 1000, 720)
    scene.alice.sign_in("alice")
    wait("bob is offline", lambda: scene.alice.sees('li[data-user="bob"][data-there="false"]'))
    scene.bob.sign_in("bob")
    wait("bob is online", lambda: scene.alice.sees('li[data-user="bob"][data-there="true"]'))
    scene.shoot(scene.alice, "directory")
    scene.shoot(scene.alice, "directory-320", 320, 640, scale=2)


@check
def talks(scene):
    """A call rings, is answered, carries sound both ways, and both see how well."""
    alice, bob = scene.alice, scene.bob
    alice.call("bob")
    alice.phase("calling")
    bob.phase("ringing")
    wait("bob sees who calls", lambda: bob.text("#incoming-name") == "alice")
    focus = bob.run("return document.activeElement.id")
    if focus != "incoming-name":
        raise Failed(f"the focus is on {focus}: a key meant for something else could answer")
    scene.shoot(bob, "ringing")
    scene.shoot(bob, "ringing-360", 360, 720, dark=True, scale=2)
    bob.click("#answer")
    for phone in (alice, bob):
        phone.phase("talking")
        wait("sound comes in", phone.hears, 30)
        wait("there is a round trip time", lambda: re.search(r"\d", phone.text("#value-trip")))
        wait("there is a jitter buffer", lambda: re.search(r"[1-9]", phone.text("#value-jitter")))
        phone.says("opus", "#path")
    if scene.folder:
        time.sleep(25)
    scene.shoot(alice, "call")
    scene.shoot(alice, "call-dark", dark=True)
    scene.shoot(bob, "call-360", 360, 760, scale=2)
    scene.shoot(bob, "call-320", 320, 640)


@check
def mutes(scene):
    """Mute silences what the other side hears, by button and by key, until it is unmuted."""
    alice, bob = scene.alice, scene.bob
    alice.click("#mute")
    alice.says("You are muted")
    wait("bob hears nothing", lambda: (bob.level() or 0) <= -80)
    alice.find("#party").send_keys("m")
    wait("it is off again", lambda: alice.find("#mute").get_attribute("aria-pressed") == "false")
    wait("bob hears again", bob.hears, 30)


@check
def sends_keys(scene):
    """The keypad and the keyboard send telephone events."""
    alice = scene.alice
    alice.run("""
        const send = RTCDTMFSender.prototype.insertDTMF;
        window.tones = [];
        RTCDTMFSender.prototype.insertDTMF = function (...given) {
          this.ontonechange = (event) => window.tones.push(event.tone);
          return send.apply(this, given);
        };""")
    alice.click("#keys")
    for label in ("1", "2", "Hash"):
        alice.click(f'#pad [aria-label="{label}"]')
    alice.find("#party").send_keys("7")
    wait("all keys were sent", lambda: alice.run("return window.tones.join('')") == "12#7")
    wait("the keys are shown", lambda: alice.run("return document.getElementById('sent').value") == "12#7")
    scene.shoot(alice, "keypad-360", 360, 760, scale=2)
    alice.click("#keys")


@check
def renegotiates(scene):
    """Both sides restart ICE at once: one yields, and the call continues."""
    alice, bob = scene.alice, scene.bob
    passwords = r"""
        const { localDescription, signalingState } = connections.at(-1);
        return signalingState === 'stable' ? /a=ice-pwd:(.*)/.exec(localDescription.sdp)[1] : null;"""
    before = [phone.run(passwords) for phone in (alice, bob)]
    alice.driver.execute_script("setTimeout(() => connections.at(-1).restartIce(), arguments[0] - Date.now());", time.time() * 1000 + 1500)
    bob.driver.execute_script("setTimeout(() => connections.at(-1).restartIce(), arguments[0] - Date.now());", time.time() * 1000 + 1490)
    for phone, old in zip((alice, bob), before):
        wait("there are new credentials", lambda: phone.run(passwords) not in (None, old))
    time.sleep(1)
    for phone in (alice, bob):
        wait("it is connected", lambda: phone.run("return connections.at(-1).connectionState") == "connected")
        wait("sound comes in", phone.hears, 30)


@check
def chooses_sound(scene):
    """Another microphone and speaker can be chosen within a call, which continues."""
    alice, bob = scene.alice, scene.bob
    alice.click("#open-sound")
    wait("devices are listed", lambda: len(alice.driver.find_elements(By.CSS_SELECTOR, "#microphone option")) > 1)
    wait("the level moves", lambda: float(alice.run("return document.getElementById('meter').style.getPropertyValue('--level')") or 0) > 0)
    scene.shoot(alice, "sound")
    alice.find("#microphone").send_keys(Keys.END)
    alice.find("#speaker").send_keys(Keys.END)
    alice.click("#sound-close")
    wait("bob hears the other one", bob.hears, 30)


@check
def survives_a_restart(scene):
    """The exchange restarts: the call continues, both phones come back by themselves and can call again."""
    alice, bob = scene.alice, scene.bob
    scene.exchange.stop()
    for phone in (alice, bob):
        phone.says("The exchange cannot be reached", "#notices")
    scene.shoot(alice, "exchange-gone")
    wait("the call continues", alice.hears, 30)
    scene.exchange.start()
    for phone in (alice, bob):
        phone.online(60)
    wait("the notice is gone", lambda: not alice.sees(".notice"))
    wait("the call still continues", alice.hears, 30)
    alice.click("#hang-up")
    alice.phase("ended")
    bob.phase("ended", seconds=60)
    alice.rest()
    bob.rest()


@check
def hangs_up(scene):
    """Either side hangs up, and the other sees it."""
    alice, bob = scene.alice, scene.bob
    for by, other in ((alice, bob), (bob, alice)):
        alice.call("bob")
        bob.phase("ringing")
        bob.click("#answer")
        for phone in (alice, bob):
            phone.phase("talking")
        by.click("#hang-up")
        other.phase("ended")
        other.says("Call ended")
        alice.rest()
        bob.rest()


@check
def declines(scene):
    """A declined call is shown as such, and so is a cancelled one."""
    alice, bob = scene.alice, scene.bob
    alice.call("bob")
    bob.phase("ringing")
    bob.click("#decline")
    alice.says("Declined")
    scene.shoot(alice, "declined")
    bob.says("Call declined")
    alice.rest()
    bob.rest()
    alice.call("bob")
    bob.phase("ringing")
    alice.click("#hang-up")
    bob.says("Missed call")
    wait("bob finds it under Recent", lambda: bob.sees('#recent [data-missed="true"]'))
    alice.rest()
    bob.rest()


@check
def is_busy(scene):
    """A phone that is in a call is busy for others; a user who is not there and one who does not exist are distinct."""
    alice, bob = scene.alice, scene.bob
    carol = scene.open()
    carol.sign_in("bob")  # Another device of Bob's; both ring.
    alice.call("bob")
    bob.phase("ringing")
    carol.phase("ringing")
    bob.click("#answer")
    bob.phase("talking")
    carol.says("Answered elsewhere")
    carol.rest()
    scene.shut(carol)
    dora = scene.open()
    dora.sign_in("alice")  # Another device of Alice's calls Bob, who is busy.
    dora.call("bob")
    dora.says("Busy")
    wait("bob finds it under Recent", lambda: bob.run("return document.querySelector('#recent [data-missed=true]')") is not None)
    dora.rest()
    for name, answer in (("nobody", "Unknown name"), ("caller", "Offline")):
        dora.find("#dial-to").clear()
        dora.find("#dial-to").send_keys(name, Keys.ENTER)
        dora.says(answer)
        if name == "nobody":
            scene.shoot(dora, "unknown", 1000, 700)
        dora.rest()
    scene.shut(dora)
    alice.click("#hang-up")
    for phone in (alice, bob):
        phone.phase("ended")
        phone.rest()


@check
def is_not_answered(scene):
    """A call that is not answered ends after half a minute, and is a missed one at the other end."""
    alice, bob = scene.alice, scene.bob
    alice.call("bob")
    bob.phase("ringing")
    alice.says("No answer", seconds=40)
    bob.says("Missed call")
    alice.rest()
    bob.rest()


@check
def resumes(scene):
    """A connection that drops is resumed: events of the meantime arrive, each once."""
    alice = scene.alice
    wire = Wire(scene.exchange.port)
    carol = scene.open(url=wire.url)
    carol.sign_in("bob")
    scene.shut(scene.bob)
    alice.call("bob")
    carol.phase("ringing")
    carol.click("#answer")
    carol.phase("talking")
    wire.cut()
    carol.says("The exchange cannot be reached", "#notices")
    alice.click("#hang-up")
    carol.phase("ended")  # Sent on the media path.
    carol.rest()
    alice.rest()
    wire.mend()
    carol.online(40)
    alice.call("bob")
    carol.phase("ringing")
    wire.cut()
    carol.says("The exchange cannot be reached", "#notices")
    alice.click("#hang-up")
    time.sleep(1)
    if carol.run("return document.body.dataset.call") != "ringing":
        raise Failed("the wire was not cut")
    wire.mend()
    carol.says("Missed call", seconds=40)
    carol.rest()
    alice.rest()
    scene.shut(carol)
    wire.close()
    scene.bob = scene.open()
    scene.bob.sign_in("bob")


@check
def lacks_a_microphone(scene):
    """Without a microphone, or permission to use it, a call shows why it is not possible, and what to do."""
    for kind, text in (("refused", "The microphone is blocked"), ("none", "There is no microphone")):
        phone = scene.open(microphone=kind)
        phone.sign_in("alice")
        phone.call("bob")
        phone.says(text)
        if kind == "refused":
            scene.shoot(phone, "microphone-blocked")
            scene.shoot(phone, "microphone-blocked-360", 360, 640, dark=True)
        scene.shut(phone)


@check
def is_not_secure(scene):
    """On a page that is not encrypted, users see at once that no call can be made, and why."""
    with tempfile.TemporaryDirectory() as folder:
        text = (ROOT / "config/exchange.yaml").read_text().replace("# allowed_hosts: [phone.lan]", "allowed_hosts: [phone.test]")
        password = re.search(r"password_hash: (\S+)", text).group(1)
        configuration = pathlib.Path(folder) / "exchange.yaml"
        configuration.write_text(f"{text}  - id: bob\n    public_ids: [bob@localhost]\n    password_hash: {password}\n")
        exchange = Exchange(scene.handset, "--config", str(configuration))
    try:
        bob = scene.open(url=exchange.url)
        bob.sign_in_with("bob", "change me")
        phone = scene.open(url=exchange.url.replace("localhost", "phone.test"))
        phone.sign_in_with("alice", "change me")
        phone.says("This page is not encrypted", "#notices")
        phone.call("bob")
        phone.says("This page is not encrypted")
        scene.shoot(phone, "not-encrypted", 1000, 700)
        scene.shut(phone)
        scene.shut(bob)
    finally:
        exchange.stop()


@check
def is_not_rebound(scene):
    """A page whose own name was made to resolve to this machine's address gets nothing from the exchange."""
    for path in "", "v1/web-config":
        phone = scene.open(url=scene.exchange.url.replace("localhost", "phone.test") + path)
        wait("the exchange refuses", lambda: "misdirected" in phone.text("body"))
        scene.shut(phone)


@check
def signs_out(scene):
    """Signing out goes back to the start; a page that is loaded again is still signed in."""
    alice, bob = scene.alice, scene.bob
    bob.driver.refresh()
    bob.online()
    wait("bob is bob", lambda: bob.text("#whoami") == "bob")
    wait("alice sees bob", lambda: alice.sees('li[data-user="bob"][data-there="true"]'))
    bob.click("#sign-out")
    wait("bob is out", lambda: bob.sees("#signin"))
    wait("alice sees bob go", lambda: alice.sees('li[data-user="bob"][data-there="false"]'))
    bob.sign_in("bob")
    bob.call("alice")
    alice.phase("ringing")
    alice.click("#answer")
    for phone in (alice, bob):
        phone.phase("talking")
    bob.click("#keys")
    if not bob.sees("#keypad"):
        raise Failed("after signing in again a click is taken twice")
    bob.click("#hang-up")
    alice.phase("ended")
    alice.rest()
    bob.rest()


@check
def is_replaced(scene):
    """A copied tab takes over the phone's session, shows that, and can be made a phone of its own."""
    phone = scene.open()
    phone.sign_in("alice")
    first = phone.driver.current_window_handle
    phone.run("window.open(location.href)")
    phone.driver.switch_to.window(next(handle for handle in phone.driver.window_handles if handle != first))
    phone.online()
    phone.driver.switch_to.window(first)
    phone.says("This phone is open elsewhere", "#notices")
    phone.click("#notices .notice button")
    time.sleep(0.5)
    phone.online()
    scene.shut(phone)


@check
def takes_passwords(scene):
    """With configured accounts, users sign in with name and password, and see what is wrong with them."""
    exchange = Exchange(scene.handset, "--config", str(ROOT / "config/exchange.yaml"))
    try:
        phone = scene.open(url=exchange.url)
        phone.find("#user").send_keys("alice")
        phone.find("#password").send_keys("wrong", Keys.ENTER)
        phone.says("Wrong name or password", "#signin-problem")
        phone.find("#password").clear()
        phone.find("#password").send_keys("change me", Keys.ENTER)
        phone.online()
        if phone.sees("#guests"):
            raise Failed("an exchange of one's own has no guests")
        phone.click("#sign-out")
        wait("it is out", lambda: phone.sees("#signin"))
        exchange.stop()
        phone.find("#user").send_keys("alice")
        phone.find("#password").send_keys("change me", Keys.ENTER)
        phone.says("does not answer", "#signin-problem")
        scene.shut(phone)
    finally:
        exchange.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset", help="the handset command to test")
    parser.add_argument("--screenshots", type=pathlib.Path, help="where to keep pictures of each state")
    parser.add_argument("--only", nargs="+", help="names of checks to do, after signing in")
    options = parser.parse_args()
    checks = [one for one in CHECKS + phone_access.CHECKS if not options.only or one is signs_in or one.__name__ in options.only]
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    scene = Scene(options.handset, options.screenshots)
    failures = 0
    try:
        for function in checks:
            start = time.monotonic()
            try:
                function(scene)
                problems = [f"{line}" for phone in scene.phones for line in phone.complaints()]
                if problems:
                    raise Failed("the browser complains: " + "; ".join(problems))
            except (Failed, WebDriverException) as error:
                failures += 1
                print(f"FAILED {function.__name__}: {function.__doc__}\n       {error}", flush=True)
                for number, phone in enumerate(scene.phones):
                    with contextlib.suppress(WebDriverException):
                        print(
                            f"       phone {number}: call {phone.run('return document.body.dataset.call')},"
                            f" state {phone.text('#state')!r}, notices {phone.text('#notices')!r},"
                            f" console {json.dumps(phone.driver.get_log('browser'))[:600]}"
                        )
                break  # What follows builds on it.
            print(f"ok     {time.monotonic() - start:5.1f} s  {function.__doc__}", flush=True)
    finally:
        scene.end()
    print(f"{failures} failed" if failures else f"all {len(checks)} hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
