#!/usr/bin/env python3
"""Drives the page of a device's calls in a real Chromium: first at an imitation with 200 calls, then at a device with real calls.

usage: console_test.py HANDSET [--screenshots FOLDER] [--only NAME ...]

Without a HANDSET that can be run, `--imitation` leaves the device out. Exits with 0 if every check passed. Needs selenium and
chromium-driver; scripts/interop installs both.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Callable
from typing import Any

import console_imitation
from phone_access import CONTRAST, TOO_WIDE
from phones import Exchange, Failed, Phone, wait
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

TOKEN = console_imitation.TOKEN
CHECKS: list[Callable[[Scene], None]] = []
SECONDS_OF_FRAMES = 15
LONGEST_FRAME = 32

# The lengths of frames, in milliseconds, while something else happens.
FRAMES = """(async () => {
  const lengths = [];
  const end = performance.now() + %d * 1000;
  let last = await new Promise(requestAnimationFrame);
  while (performance.now() < end) {
    const now = await new Promise(requestAnimationFrame);
    lengths.push(now - last);
    last = now;
  }
  return lengths.sort((one, other) => one - other);
})()"""


class Scene:
    """Browsers at the page, and where their pictures go."""

    def __init__(self, folder: pathlib.Path | None) -> None:
        self.folder = folder
        self.pages: list[Phone] = []

    def open(self, url: str) -> Phone:
        page = Phone(url, microphone="none")
        self.pages.append(page)
        return page

    def end(self) -> None:
        for page in self.pages:
            page.close()

    def shoot(self, page: Phone, name: str, width: int = 1280, height: int = 860, dark: bool = False) -> None:
        """Takes a picture, and checks what can be read in it and that nothing is too wide."""
        page.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        )
        scheme = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        time.sleep(0.4)  # A frame with the new size, so that plots are drawn for it.
        if self.folder:
            page.driver.save_screenshot(str(self.folder / f"{name}.png"))
        if wide := page.run(TOO_WIDE):
            raise Failed(f"{name} is too wide: {wide}")
        if faint := page.run(f"return {CONTRAST}"):
            raise Failed(f"{name} cannot be read well: {faint[:5]}")
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def check(function: Callable[[Scene], None]) -> Callable[[Scene], None]:
    """Marks a function as one of the checks; its first docstring line is its name."""
    CHECKS.append(function)
    return function


def shown(page: Phone, selector: str, pattern: str, seconds: float = 15) -> str:
    """Waits until an element's text has the pattern."""
    return wait(f"{selector} says {pattern}", lambda: re.search(pattern, page.text(selector)) and page.text(selector), seconds)


def sign_in(page: Phone) -> None:
    wait("the token is asked for", lambda: page.sees("#token"))
    page.find("#token").send_keys(TOKEN, Keys.ENTER)
    wait("the calls are there", lambda: page.sees("#running"))
    shown(page, "#link-text", "Live")


# At the imitation.


@check
def many_calls(scene: Scene) -> None:
    """With 200 calls on the page, and one of them with its plots, 99 of 100 frames take 32 ms at most."""
    _, server = console_imitation.serve(200)
    page = scene.open(f"http://127.0.0.1:{server.server_address[1]}/")
    sign_in(page)
    wait("all are listed", lambda: page.run("return document.querySelectorAll('#calls li').length") == 200, 30)
    page.click('a[href="#/calls/5"]')
    wait("there are plots", lambda: page.sees("#plot-delay canvas"))
    shown(page, "#plot-loss b", r"\d")
    lengths = page.run_async(FRAMES % SECONDS_OF_FRAMES)
    worst = lengths[int(len(lengths) * 0.99)]
    figures = f"P50 {lengths[len(lengths) // 2]:.1f} ms, P99 {worst:.1f} ms, longest {lengths[-1]:.1f} ms"
    print(f"       {len(lengths)} frames in {SECONDS_OF_FRAMES} s: {figures}")
    if worst > LONGEST_FRAME:
        raise Failed(f"P99 of a frame is {worst:.1f} ms")
    scene.shoot(page, "calls-200")
    scene.pages.remove(page)
    page.close()
    server.shutdown()


@check
def stays_text(scene: Scene) -> None:
    """A name that is markup is shown as text, in the list, the call, the question and the record; the policy stops what is inline."""
    device, server = console_imitation.serve(5)
    page = scene.open(f"http://127.0.0.1:{server.server_address[1]}/")
    page.find("#token").send_keys("wrong", Keys.ENTER)
    shown(page, "#signin-problem", "does not know this token")
    page.complaints()  # The browser reports the answer 401.
    page.find("#token").clear()
    sign_in(page)
    if TOKEN in page.driver.current_url or page.run("return localStorage.length") != 0:
        raise Failed("the token is in the address, or outlives the tab")
    page.click('a[href="#/calls/3"]')
    shown(page, "#party", "<img src=x")
    page.click("#hang-up")
    shown(page, "#ask-text", "<img src=x")
    page.click("#ask-no")
    if 3 not in device.calls:
        raise Failed("a call was hung up though the user said no")
    page.click("#hang-up")
    page.click("#ask-yes")
    page.click("#see-record")
    shown(page, "#record-title", "<img src=x")
    if page.run("return document.querySelectorAll('main img').length || document.title === '1'"):
        raise Failed("a name became markup")
    page.driver.execute_script(
        "try { const it = document.createElement('script'); it.text = 'window.ran = 1'; document.head.append(it); } catch {}"
    )
    if page.run("return window.ran"):
        raise Failed("an inline script runs")
    page.driver.get_log("browser")
    page.driver.refresh()
    shown(page, "#record-title", "<img src=x")
    page.run("sessionStorage.clear()")
    page.driver.refresh()
    wait("the token is asked for", lambda: page.sees("#token"))
    sign_in_again = "#/history/record-3"
    if not page.driver.current_url.endswith(sign_in_again):
        raise Failed("signing in loses the address")
    scene.pages.remove(page)
    page.close()
    server.shutdown()


@check
def by_keyboard(scene: Scene) -> None:
    """All of it can be done with keys: tabs, a call, a question, the search and the moment of a record, whose address is a link."""
    device, server = console_imitation.serve(3)
    device.ended = [device.record(n, {"invite": f"i{n}", "peer": f"old-{n}@example.org", "incoming": True}) for n in range(40, 130)]
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    page = scene.open(url)
    sign_in(page)
    page.find('a[href="#/calls/1"]').send_keys(Keys.ENTER)
    wait("the name has the focus", lambda: page.run("return document.activeElement.id") == "party")
    page.find("#mute").send_keys(Keys.ENTER)
    shown(page, "#mute", "Unmute")
    if page.run("return document.activeElement.id") != "mute":
        raise Failed("the focus is lost when a button changes")
    page.find("#hang-up").send_keys(Keys.ENTER)
    wait("the question is there", lambda: page.sees("#ask"))
    page.find("#ask-no").send_keys(Keys.ESCAPE)
    wait("the question is gone", lambda: not page.sees("#ask"))
    page.keys("/")
    wait("the search has the focus", lambda: page.run("return document.activeElement.id") == "search")
    wait("a page of records", lambda: page.run("return document.querySelectorAll('#records li').length") == 40)
    page.find("#more").send_keys(Keys.ENTER)
    wait("another page", lambda: page.run("return document.querySelectorAll('#records li').length") == 80)
    page.find("#search").send_keys("old-41")
    wait("what fits", lambda: page.run("return document.querySelectorAll('#records li').length") == 1)
    page.find("#records a").send_keys(Keys.ENTER)
    shown(page, "#record-title", "old-41")
    shown(page, ".findings", "Packets to this device were lost")
    page.find("#timeline-at").send_keys(*[Keys.ARROW_RIGHT] * 35)
    shown(page, ".timeline-words", "3.5 s: Answered; Media flows")
    wait("the address has the moment", lambda: "at=3.5" in page.driver.current_url)
    for width, height, dark in ((1280, 860, False), (1280, 860, True), (360, 760, False), (360, 760, True)):
        scene.shoot(page, f"imitation-record-{width}{'-dark' if dark else ''}", width, height, dark)
    colleague = scene.open(page.driver.current_url)
    sign_in_at(colleague)
    shown(colleague, ".timeline-words", "3.5 s: Answered; Media flows")
    for one in (page, colleague):
        scene.pages.remove(one)
        one.close()
    server.shutdown()


# How much of a canvas is drawn on: opaque pixels of a hundred.
DRAWN = """
    const canvas = document.querySelector(arguments[0]);
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let index = 3; index < data.length; index += 4) count += data[index] > 127;
    return 100 * count / (data.length / 4);"""


def archive(*numbers: int) -> tuple[str, Any]:
    """The page's address with these records, and its server."""
    device, server = console_imitation.serve(0)
    device.ended = [device.record(n, {"invite": f"i{n}", "peer": f"old-{n}@example.org", "incoming": True}) for n in numbers]
    return f"http://127.0.0.1:{server.server_address[1]}/", server


def see(page: Phone, number: int) -> None:
    """Goes to a record."""
    page.driver.execute_script(f"location.hash = '#/history/record-{number}'")
    shown(page, "#record-title", f"old-{number}@")


def moment(page: Phone) -> float:
    """Where the moment is, in seconds."""
    return float(page.run("return document.querySelector('#timeline-at').value")) / 1000


def drawn(page: Phone, lane: str) -> float:
    return float(page.driver.execute_script(DRAWN, f"#lane-{lane} canvas"))


@check
def heard(scene: Scene) -> None:
    """A record has counters, gaps, moments and its recording on one axis; the sound moves the moment, and a link has it."""
    url, server = archive(61, 62)
    page = scene.open(url + "#/history/record-61")
    sign_in_at(page)
    wait("the waveform is there", lambda: page.sees("#lane-sound canvas"))
    wait("the waveform is drawn", lambda: drawn(page, "sound") > 5)
    for lane in ("level", "loss", "concealed", "stretch", "delay", "jitter"):
        words = page.run(f"return document.querySelector('#lane-{lane} canvas').getAttribute('aria-label')")
        if not re.search(r"\d", words) or drawn(page, lane) == 0:
            raise Failed(f"the lane {lane} shows nothing, or does not say what: {words!r}")
    page.driver.execute_script("const it = document.querySelector('#timeline-at'); it.value = 43500; it.dispatchEvent(new Event('input'))")
    shown(page, ".timeline-words", r"No packet came for 6\.0 s.*In this second: no packet came; 120 ms concealed; 880 ms silent")
    page.find(".moments li:nth-child(5) button").send_keys(Keys.ENTER)
    shown(page, ".timeline-words", r"^41\.[01] s: ")
    wait("the address has the moment", lambda: re.search(r"at=41\.[01]$", page.driver.current_url))
    shown(page, ".moments li:nth-child(7)", r"The program failed: <img src=x")
    if page.run("return document.querySelectorAll('main img').length"):
        raise Failed("a moment's text became markup")
    track = page.find("#lane-loss .lane-track")
    ActionChains(page.driver).move_to_element(track).click().perform()
    wait("a press in a lane moves the moment", lambda: abs(moment(page) - 40) < 0.5)
    page.find("#play-recording").send_keys(Keys.ENTER)
    shown(page, "#play-recording", "Pause")
    wait("the sound moves the moment", lambda: moment(page) > 41.5)
    lengths = page.run_async(FRAMES % 5)
    worst = lengths[int(len(lengths) * 0.99)]
    print(f"       {len(lengths)} frames in 5 s with sound: P99 {worst:.1f} ms, longest {lengths[-1]:.1f} ms")
    if worst > LONGEST_FRAME:
        raise Failed(f"P99 of a frame is {worst:.1f} ms while a recording is heard")
    page.find("#play-recording").send_keys(Keys.ENTER)
    shown(page, "#play-recording", "Play the recording")
    stood = moment(page)
    wait("the address has the moment", lambda: page.driver.current_url.endswith(f"at={stood:.1f}"))
    page.find("#timeline-at").send_keys(Keys.HOME)
    page.find("#timeline-at").send_keys(*[Keys.ARROW_RIGHT] * 50)
    page.find("#play-recording").send_keys(Keys.ENTER)
    wait("the sound begins where the slider is", lambda: 5.05 < moment(page) < 8)
    page.find("#play-recording").send_keys(Keys.ENTER)
    shown(page, "#play-recording", "Play the recording")
    for width, height, dark in ((1280, 1250, False), (1280, 1250, True), (360, 1700, False), (360, 1700, True)):
        scene.shoot(page, f"heard-{width}{'-dark' if dark else ''}", width, height, dark)
    colleague = scene.open(page.driver.current_url)
    sign_in_at(colleague)
    wait("a link opens the same moment", lambda: abs(moment(colleague) - moment(page)) < 0.11)
    wait("the waveform is drawn there", lambda: colleague.sees("#lane-sound canvas") and drawn(colleague, "sound") > 5)
    if TOKEN in colleague.run("return performance.getEntriesByType('resource').map((one) => one.name).join()"):
        raise Failed("the token is in a URL")
    see(page, 62)
    wait(
        "the other record has its own waveform",
        lambda: page.sees("#lane-sound canvas") and page.text("#play-recording") == "Play the recording",
    )
    problems = [line for one in (page, colleague) for line in one.complaints()]
    for one in (page, colleague):
        scene.pages.remove(one)
        one.close()
    server.shutdown()
    if problems:
        raise Failed(f"the browser complains: {problems}")


@check
def special_records(scene: Scene) -> None:
    """A recording that is gone says so; a record has 240 rows, or none; Ogg Opus is drawn and heard."""
    imitation = console_imitation
    url, server = archive(imitation.GONE, imitation.BARE, imitation.HOUR, imitation.OGG)
    page = scene.open(url)
    sign_in(page)
    see(page, imitation.BARE)
    shown(page, "#recording-note", "names no recording")
    if page.sees("#play-recording") or page.run("return document.querySelectorAll('.lane-plot, .moments').length"):
        raise Failed("a record without counters has plots, or something to hear")
    shown(page, ".timeline-words", r"^0\.0 s: Rings here until the answer$")
    for width, dark in ((1280, False), (360, True)):
        scene.shoot(page, f"record-bare-{width}", width, 900, dark)
    see(page, imitation.HOUR)
    wait("its waveform is there", lambda: page.sees("#lane-sound canvas"))
    page.driver.execute_script(
        "const it = document.querySelector('#timeline-at'); it.value = 1000000; it.dispatchEvent(new Event('input'))"
    )
    shown(page, ".timeline-words", r"In these 16 s: 64 of 800 packets lost|In these 16 s: 96 of 800 packets lost")
    for width, dark in ((1280, False), (360, False)):
        scene.shoot(page, f"record-hour-{width}", width, 1250, dark)
    see(page, imitation.OGG)
    wait("Ogg Opus has a waveform", lambda: page.sees("#lane-sound canvas") and drawn(page, "sound") > 5)
    page.click("#play-recording")
    wait("Ogg Opus is heard", lambda: moment(page) > 4)
    page.click("#play-recording")
    scene.shoot(page, "record-ogg", 1280, 1250)
    problems = page.complaints()
    see(page, imitation.GONE)
    shown(page, "#recording-note", "The recording is gone")
    if page.sees("#play-recording") or not page.sees("#lane-loss canvas"):
        raise Failed("a recording that is gone can be played, or hides the counters")
    page.driver.get_log("browser")  # The browser reports the answer 404.
    scene.shoot(page, "record-gone", 1280, 1100)
    scene.pages.remove(page)
    page.close()
    server.shutdown()
    if problems:
        raise Failed(f"the browser complains: {problems}")


def sign_in_at(page: Phone) -> None:
    """Signs in at an address that is not that of the calls."""
    wait("the token is asked for", lambda: page.sees("#token"))
    page.find("#token").send_keys(TOKEN, Keys.ENTER)
    wait("the record is there", lambda: page.sees("#record"))


# At a device.


class Device:
    """An exchange, a device whose calls meet in a room, and callers."""

    def __init__(self, handset: str) -> None:
        self.handset, self.exchange = handset, Exchange(handset)
        self.running: list[subprocess.Popen] = []
        self.folder = tempfile.TemporaryDirectory()
        self.place = pathlib.Path(self.folder.name)
        (self.place / "control.token").write_text(TOKEN)
        for user in ("alice", "bob", "caller"):
            (self.place / f"{user}.token").write_text(f"{user}-demo-token")
        (self.place / "device.yaml").write_text(f"""
account: {{ server: "{self.exchange.url.rstrip("/")}", media_token_file: alice.token }}
answer: {{ mode: auto }}
behaviour: {{ source: conference, conference: {{ room: team }} }}
media: {{ address: 127.0.0.1 }}
device: {{ name: front desk, call_records: calls.jsonl }}
control:
  socket: control.sock
  http: {{ listen: "127.0.0.1:0", token_file: control.token }}
""")
        for path in self.place.iterdir():
            path.chmod(0o600)
        with wave.open(str(self.place / "tone.wav"), "wb") as tone:
            tone.setparams((1, 2, 8000, 0, "NONE", ""))
            second = [int(8000 * math.sin(2 * math.pi * 440 * index / 8000)) for index in range(8000)]
            tone.writeframes(struct.pack("<8000h", *second) * 120)
        self.start("device", "run", "--config", "device.yaml", "--log-format", "json")
        text = wait("the device listens", lambda: self.log("device", r'"url":"(http://127[^"]+)"'), 20)
        self.url = text.group(1) + "/"
        wait("the device is ready", lambda: self.log("device", '"Ready"'), 20)

    def start(self, name: str, *arguments: str) -> subprocess.Popen:
        log = (self.place / f"{name}.log").open("w")
        process = subprocess.Popen([self.handset, *arguments], stderr=log, stdout=log, cwd=self.place)
        self.running.append(process)
        return process

    def log(self, name: str, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, (self.place / f"{name}.log").read_text())

    def call(self, user: str) -> subprocess.Popen:
        """A call of a user to the device, who says something all the time."""
        (self.place / f"{user}.yaml").write_text(f"""
account: {{ server: "{self.exchange.url.rstrip("/")}", media_token_file: {user}.token }}
media: {{ address: 127.0.0.1 }}
""")
        (self.place / f"{user}.yaml").chmod(0o600)
        return self.start(user, "call", "alice@localhost", "--config", f"{user}.yaml", "--play", "tone.wav")

    def end(self) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        self.exchange.stop()
        self.folder.cleanup()


def real_device(scene: Scene, handset: str) -> None:
    """A real call appears with its plots, is muted, is hung up, is found in the history, and has explain's sentences."""
    device = Device(handset)
    try:
        page = scene.open(device.url)
        scene.shoot(page, "signed-out", 1000, 720)
        sign_in(page)
        shown(page, "#calls-none", "no call now")
        device.call("bob")
        device.call("caller")
        wait("both calls are there", lambda: page.run("return document.querySelectorAll('#calls li').length") == 2, 30)
        row = wait("bob's row", lambda: [row for row in page.driver.find_elements("css selector", "#calls a") if "bob" in row.text])[0]
        row.click()
        shown(page, "#party", "bob")
        shown(page, "#plot-delay b", r"\d+, ")
        wait("sound comes in", lambda: re.search(r"−[0-5]?\d dB", page.text("#plot-level b")), 20)
        shown(page, "#facts", r"[1-9]\d*, 0 lost")
        if scene.folder:
            time.sleep(30)  # Plots with something in them.
        for width, height, dark in ((1280, 860, False), (1280, 860, True), (360, 760, False)):
            scene.shoot(page, f"call-{width}{'-dark' if dark else ''}", width, height, dark)
        page.click("#mute")
        shown(page, "#mute", "Unmute in the room")
        page.click("#mute")
        shown(page, "#mute", "Mute in the room")
        page.click("#hang-up")
        page.click("#ask-yes")
        shown(page, "#state", "This call has ended")
        page.click("#tab-history")
        page.find("#search").send_keys("BOB")
        wait("the record is found", lambda: page.run("return document.querySelectorAll('#records li').length") == 1, 20)
        scene.shoot(page, "history")
        page.click("#records a")
        shown(page, "#record-outcome", r"The call from bob lasted [\d.]+ s; this side hung up")
        explained = subprocess.run(
            [handset, "explain", "--config", "device.yaml", "bob"], cwd=device.place, capture_output=True, text=True, check=True
        ).stdout
        said = page.text("#record-outcome") + "\n" + page.text(".findings")
        for sentence in explained.splitlines():
            words = re.sub(r"^\S+Z |^ +(Because|Try): | \([^)]*\)$", "", sentence).strip()
            if words and words not in said:
                raise Failed(f"explain says {words!r}, and the page says {said!r}")
        for width, height, dark in ((1280, 1100, False), (1280, 1100, True), (360, 1200, False)):
            scene.shoot(page, f"record-{width}{'-dark' if dark else ''}", width, height, dark)
        page.click("#tab-calls")
        device.running[0].terminate()
        shown(page, "#link-text", "Reconnecting")
        page.driver.get_log("browser")  # It reports that the device is gone.
    finally:
        device.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset", nargs="?", help="the handset command to test")
    parser.add_argument("--screenshots", type=pathlib.Path, help="where to keep pictures of each state")
    parser.add_argument("--imitation", action="store_true", help="no device, only the imitation")
    parser.add_argument("--only", nargs="+", help="names of checks to do")
    options = parser.parse_args()
    if not options.handset and not options.imitation:
        parser.error("give HANDSET, or --imitation")
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    checks: list[tuple[str, Any]] = [(one.__name__, one) for one in CHECKS]
    if not options.imitation:
        checks.append(("real_device", lambda scene: real_device(scene, options.handset)))
    names = {**{one.__name__: one.__doc__ for one in CHECKS}, "real_device": real_device.__doc__}
    scene, failures = Scene(options.screenshots), 0
    try:
        for name, function in checks:
            if options.only and name not in options.only:
                continue
            start = time.monotonic()
            try:
                function(scene)
                problems = [line for page in scene.pages for line in page.complaints()]
                if problems:
                    raise Failed("the browser complains: " + "; ".join(map(str, problems)))
            except (Failed, WebDriverException) as error:
                failures += 1
                print(f"FAILED {name}: {names[name]}\n       {error}", flush=True)
                for page in scene.pages:
                    with contextlib.suppress(WebDriverException):
                        print(f"       {page.driver.current_url}: {page.text('body')[:400]!r}, {page.driver.get_log('browser')[:4]}")
                continue
            print(f"ok     {time.monotonic() - start:5.1f} s  {names[name]}", flush=True)
    finally:
        scene.end()
    print(f"{failures} failed" if failures else "all hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
