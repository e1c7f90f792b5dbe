"""Checks of the web phone for users with a keyboard, a small telephone, a dark room, or weak eyesight."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from phones import Failed, wait
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

if TYPE_CHECKING:
    from phones import Phone, Scene

Check = Callable[["Scene"], None]
CHECKS: list[Check] = []
CONTRAST = (pathlib.Path(__file__).parent / "page_contrast.js").read_text()

# What a pointer and a keyboard do to a control.
STATES = {"at rest": [], "under the pointer": ["hover"], "pressed": ["hover", "active"], "focused": ["focus", "focus-visible"]}

# All that Tab should reach, in the page or in the dialog on top of it.
REACHABLE = """
    const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document;
    window.reachable = [...top.querySelectorAll('button, input, select, a[href]')].filter((element) =>
      element.checkVisibility({ visibilityProperty: true }) && !element.matches(':disabled'));
    return window.reachable.map((element) => element.id || element.getAttribute('aria-label') || element.textContent.trim());"""

# Which of these has the focus, and what is wrong with its outline.
FOCUSED = """
    const focused = document.activeElement;
    const style = getComputedStyle(focused);
    const { left, right, top, bottom } = focused.getBoundingClientRect();
    const wrong = [];
    const hasRing = focused.matches(':focus-visible') && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    if (!hasRing) wrong.push('has no ring');
    if (left < -1 || top < -1 || right > innerWidth + 1 || bottom > innerHeight + 1) wrong.push('is not in view');
    return [window.reachable.indexOf(focused), wrong];"""

# What reaches over the edge of the page, and what of the page can be scrolled sideways.
TOO_WIDE = """
    const root = document.documentElement;
    const wide = [...document.querySelectorAll('body *')].filter((element) => {
      const { left, right, width } = element.getBoundingClientRect();
      return width > 0 && (right > innerWidth + 0.5 || left < -0.5) && element.checkVisibility();
    }).map((element) => element.id || element.className || element.tagName);
    return root.scrollWidth > root.clientWidth || wide.length ? [root.scrollWidth, wide.slice(0, 5)] : null;"""


# Keys and buttons of a call that are not in view, are covered, or are smaller than a finger.
OUT_OF_REACH = """
    const controls = [...document.querySelectorAll('#pad button, #controls button')];
    if (controls.length !== 15) return [`${controls.length} controls`];
    return controls.filter((control) => {
      const { left, right, top, bottom, width, height } = control.getBoundingClientRect();
      const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
      return left < 0 || top < 0 || right > innerWidth || bottom > innerHeight || width < 44 || height < 44 || !control.contains(there);
    }).map((control) => control.id || control.getAttribute('aria-label'));"""


def check(function: Check) -> Check:
    """Marks a function as one of the checks; its first docstring line is its name."""
    CHECKS.append(function)
    return function


def press(phone: Phone, *keys: str) -> None:
    """Presses keys, wherever the focus is."""
    ActionChains(phone.driver).send_keys(*keys).perform()


def focus(phone: Phone) -> Any:
    """What has the keyboard's focus: its id, or the user that it calls, or the name of its tag."""
    return phone.run("""
        const { activeElement: focused } = document;
        return focused.id || focused.closest('li[data-user]')?.dataset.user || focused.tagName.toLowerCase();""")


def has_focus(phone: Phone, name: str) -> None:
    wait(f"the focus is on {name}", lambda: focus(phone) == name or None, 5)


def tab_to(phone: Phone, name: str) -> None:
    """Goes with Tab to an element, by its id, its person, or its text."""
    for _ in range(40):
        if name in (focus(phone), phone.run("return document.activeElement.textContent.trim()")):
            return
        press(phone, Keys.TAB)
    raise Failed(f"Tab does not reach {name}")


def reaches_everything(phone: Phone, state: str) -> None:
    """Tab reaches each control that is shown, where the focus can be seen."""
    start = phone.driver.execute_script("return document.activeElement")
    names = phone.run(REACHABLE)
    missing = set(range(len(names)))
    for _ in range(2 * len(names) + 6):
        press(phone, Keys.TAB)
        index, wrong = phone.run(FOCUSED)
        if index < 0:
            continue  # Outside of the page, between its last and its first.
        if wrong:
            raise Failed(f"{state}: by Tab the focus comes to {names[index]}, which {' and '.join(wrong)}")
        missing.discard(index)
        if not missing:
            break
    else:
        raise Failed(f"{state}: Tab does not reach {[names[index] for index in missing]}")
    phone.driver.execute_script("arguments[0].focus()", start)


def is_readable(phone: Phone, state: str) -> None:
    """Everything has contrast, in the light and in the dark, in each state of a control."""
    driver = phone.driver
    driver.execute_cdp_cmd("DOM.enable", {})
    driver.execute_cdp_cmd("CSS.enable", {})
    root = driver.execute_cdp_cmd("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    nodes = driver.execute_cdp_cmd("DOM.querySelectorAll", {"nodeId": root, "selector": "button, input, select"})["nodeIds"]
    faults = []
    for scheme in ("light", "dark"):
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]},
        )
        for what, classes in STATES.items():
            for node in nodes:
                driver.execute_cdp_cmd("CSS.forcePseudoState", {"nodeId": node, "forcedPseudoClasses": classes})
            faults += [f"{state}, {scheme}, {what}: {fault}" for fault in phone.run(f"return (\n{CONTRAST})")]
        for node in nodes:
            driver.execute_cdp_cmd("CSS.forcePseudoState", {"nodeId": node, "forcedPseudoClasses": []})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.execute_cdp_cmd("CSS.disable", {})
    if faults:
        raise Failed(f"{len(faults)} have too little contrast: " + "; ".join(faults[:8]))


def inspect(phone: Phone, state: str) -> None:
    """Checks each state of the page, on the smallest telephone."""
    wide = phone.run(TOO_WIDE)
    if wide:
        raise Failed(f"{state}: at 320 px something is too wide: {wide}")
    is_readable(phone, state)
    reaches_everything(phone, state)


def shrink(phone: Phone, width: int = 320, height: int = 568) -> None:
    """Makes the page as small as the smallest telephone in use."""
    phone.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    )


def sign_in_again(phone: Phone, name: str) -> None:
    """Signs out and in, by keyboard alone."""
    tab_to(phone, "sign-out")
    press(phone, Keys.ENTER)
    wait("there are guests", lambda: phone.sees(".guest"))
    has_focus(phone, "user")
    inspect(phone, "signing in")
    tab_to(phone, "signin-other")
    press(phone, Keys.SPACE)
    wait("it asks for a token", lambda: phone.sees("#token"))
    inspect(phone, "signing in with a token")
    tab_to(phone, "token")
    press(phone, "wrong", Keys.ENTER)
    phone.says("No user has that token", "#signin-problem")
    has_focus(phone, "token")
    inspect(phone, "a wrong token")
    tab_to(phone, "signin-other")
    press(phone, Keys.ENTER)
    tab_to(phone, name)
    press(phone, Keys.ENTER)
    phone.online()
    has_focus(phone, "people-title")


def talk(alice: Phone, bob: Phone) -> None:
    """A call, by keyboard alone, from the first ring to the end."""
    wait("bob is there", lambda: alice.sees('li[data-user="bob"][data-there="true"]'))
    tab_to(alice, "bob")
    press(alice, Keys.SPACE)
    bob.phase("ringing")
    has_focus(alice, "party")
    inspect(alice, "calling")
    has_focus(bob, "incoming-name")
    press(bob, Keys.ESCAPE, Keys.ENTER, Keys.SPACE)
    bob.phase("ringing")
    inspect(bob, "ringing")
    tab_to(bob, "answer")
    press(bob, Keys.ENTER)
    for phone in (alice, bob):
        phone.phase("talking")
        has_focus(phone, "party")
    wait("there are numbers", lambda: alice.text("#value-trip") != "–")
    inspect(alice, "talking")
    tab_to(alice, "mute")
    press(alice, Keys.SPACE)
    alice.says("You are muted")
    has_focus(alice, "mute")
    inspect(alice, "muted")
    press(alice, "m")
    alice.says("Connected")
    tab_to(alice, "keys")
    press(alice, Keys.ENTER)
    wait("the keypad is open", lambda: alice.sees("#pad"))
    inspect(alice, "keypad open")
    tab_to(alice, "2ABC")
    press(alice, Keys.ENTER, Keys.SPACE, "3")
    wait("the keys are shown", lambda: alice.run("return document.getElementById('sent').value") == "223")
    press(alice, Keys.ESCAPE)
    wait("the keypad is closed", lambda: not alice.sees("#pad"))
    has_focus(alice, "keys")
    press(alice, Keys.ESCAPE)
    alice.phase("talking")
    tab_to(alice, "hang-up")
    press(alice, Keys.ENTER)
    for phone in (alice, bob):
        phone.phase("ended")
        has_focus(phone, "dismiss")


@check
def serves_keyboards(scene: Scene) -> None:
    """By keyboard alone and at 320 × 568 px: Tab reaches everything, the focus is seen and kept, all has contrast."""
    alice, bob = scene.alice, scene.bob
    for phone in (alice, bob):
        shrink(phone)
    sign_in_again(alice, "alice")
    inspect(alice, "people")
    tab_to(alice, "open-sound")
    press(alice, Keys.ENTER)
    wait("devices are listed", lambda: alice.run("return document.querySelectorAll('#microphone option').length") > 1)
    inspect(alice, "choosing sound")
    press(alice, Keys.ESCAPE)
    has_focus(alice, "open-sound")
    talk(alice, bob)
    inspect(alice, "ended")
    press(alice, Keys.ESCAPE)
    press(bob, Keys.ENTER)
    for phone, other in ((alice, "bob"), (bob, "alice")):
        phone.phase("idle")
        has_focus(phone, other)
    inspect(alice, "people, with recent calls")
    tab_to(bob, "alice")
    press(bob, Keys.ENTER)
    alice.phase("ringing")
    tab_to(bob, "hang-up")
    press(bob, Keys.SPACE)
    alice.says("Missed call")
    has_focus(alice, "dismiss")
    press(alice, Keys.SPACE)
    press(bob, Keys.ESCAPE)
    inspect(alice, "people, with a missed call")
    keeps_focus_without_exchange(scene, alice, bob)
    for phone in (alice, bob):
        phone.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@check
def shows_whole_keypad(scene: Scene) -> None:
    """On the smallest telephone, upright and on its side, the whole keypad is in view beside the call's buttons, and works."""
    alice, bob = scene.alice, scene.bob
    alice.call("bob")
    bob.phase("ringing")
    bob.click("#answer")
    alice.phase("talking")
    alice.click("#keys")
    sent = ""
    for width, height in ((320, 568), (568, 320), (800, 360)):
        shrink(alice, width, height)
        wait("the page has that size", lambda: alice.run("return innerHeight") == height)
        missing = alice.run(f"window.scrollTo(0, 0); {OUT_OF_REACH}")
        if missing:
            raise Failed(f"at {width} × {height} px these are out of reach: {', '.join(missing)}")
        for label, key in (("1", "1"), ("Star", "*"), ("Hash", "#")):
            alice.click(f'#pad [aria-label="{label}"]')
            sent += key
        wait("the keys are shown", lambda: alice.run("return document.getElementById('sent').value") == sent)
        scene.shoot(alice, f"keypad-{width}x{height}", width, height)
    alice.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    alice.click("#hang-up")
    for phone in (alice, bob):
        phone.phase("ended")
        phone.rest()


def keeps_focus_without_exchange(scene: Scene, alice: Phone, bob: Phone) -> None:
    """The notice that the exchange is away comes and goes without taking the focus along."""
    tab_to(alice, "bob")
    scene.exchange.stop()
    alice.says("The exchange cannot be reached", "#notices")
    has_focus(alice, "bob")
    inspect(alice, "the exchange is away")
    press(alice, Keys.ENTER)
    alice.phase("idle")
    tab_to(alice, "Try now")
    scene.exchange.start()
    for phone in (alice, bob):
        phone.online(60)
    wait("the notice is gone", lambda: not alice.sees(".notice"))
    if focus(alice) == "body":
        raise Failed("the focus went away with the notice")


@check
def comes_back_soon(scene: Scene) -> None:
    """The exchange is killed: nothing says Online while it is away, and phones are back within twice that time and 5 s."""
    phones = scene.alice, scene.bob
    time.sleep(10)  # A connection of a shorter time makes the next wait longer.
    scene.exchange.process.kill()
    killed = time.monotonic()
    scene.exchange.process.wait()
    for phone in phones:
        wait("it shows that", lambda: "Online" not in phone.text("body"), 2)
    while time.monotonic() < killed + 6:
        if any("Online" in phone.text("body") for phone in phones):
            raise Failed("it says Online without an exchange")
        time.sleep(0.1)
    scene.exchange.start()
    away = time.monotonic() - killed
    for phone in phones:
        phone.online(killed + 2 * away + 5 - time.monotonic())
    print(f"       away for {away:.1f} s, both back after {time.monotonic() - killed:.1f} s", flush=True)
    wait("alice sees bob", lambda: scene.alice.sees('li[data-user="bob"][data-there="true"]'))
