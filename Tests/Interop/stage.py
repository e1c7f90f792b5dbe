"""Parts of the checks of calls with devices: the participants, and functions that place, hear and time calls."""

from __future__ import annotations

import contextlib
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy
import speech
import tries
from devices import Caller, Device
from phones import Exchange, Failed, Phone, wait

if TYPE_CHECKING:
    from firefox import Firefox

SCRIPT = (pathlib.Path(__file__).parent / "page_side.js").read_text()
# The least wideband PESQ of speech over a network without loss, after one coding and after two. A change of path may
# cost a frame or two.
LEAST = {"one way": 4.0, "echo": 4.0, "echo, ICE restarted": 3.8}
# Time for the jitter buffers to settle, before what is heard is compared, in seconds.
SETTLING = 2.0
# How long to listen, in seconds, for all the phrases to be in what is heard; and how long a call is that plays them.
LISTENING = 11
PLAYING = 14


class TalkingPhone(speech.Ears, Phone):
    """A browser with the page open, whose samples can be read."""


class Stage:
    """An exchange, a device that echoes, and Alice's browser, whose microphone hears recorded voices."""

    def __init__(self, handset: str, exchange: Exchange | None = None, script: str = SCRIPT, media: str = "") -> None:
        self.handset, self.script, self.media = handset, script, media
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.original = speech.phrases()
        speech.write(self.path / "microphone.wav", self.original)
        speech.write(self.path / "play.wav", numpy.concatenate([numpy.zeros(int(SETTLING * speech.RATE), numpy.float32), self.original]))
        self.figures = {"versions": {}, "pesq": {}, "set-up": {}}
        self.open = contextlib.ExitStack()
        self.exchange = exchange or Exchange(handset)
        self.open.callback(self.exchange.stop)
        try:
            self.device = self.run()
            self.alice = self.open.enter_context(self.phone("alice"))
        except BaseException:
            self.close()
            raise
        self.figures["versions"]["Chromium"] = self.alice.driver.capabilities["browserVersion"]

    def run(self, **options: Any) -> Device:
        device = Device(self.handset, self.exchange, **{"media": self.media, **options})
        self.open.callback(device.stop)
        return device

    @contextlib.contextmanager
    def phone(self, name: str) -> Iterator[TalkingPhone]:
        phone = TalkingPhone(self.exchange.url, microphone=self.path / "microphone.wav", script=self.script)
        try:
            phone.sign_in(name)
            yield phone
        finally:
            phone.close()

    def caller(self, callee: str, *options: str) -> Caller:
        caller = Caller(self.handset, self.exchange, callee, *options)
        self.open.callback(caller.stop)
        return caller

    def close(self) -> None:
        self.open.close()
        self.folder.cleanup()


def talk(stage: Stage, name: str = "echo") -> None:
    """Alice calls a device, and hears something."""
    stage.alice.call(name)
    stage.alice.phase("talking")
    wait("sound comes in", lambda: stage.alice.run("return moments.media"))


def hang_up(phone: Phone) -> None:
    phone.click("#hang-up")
    phone.run_async("rest()")


def over(device: Device, count: int) -> dict:
    """The last of the device's records of its calls, once there are `count`."""
    wait(f"the device has noted {count} calls", lambda: len(device.tells("A call has ended")) >= count)
    return device.events("A call has ended")[-1]["metadata"]


def ended(device: Device, count: int, *reasons: str) -> None:
    found = over(device, count)["reason"]
    if found not in reasons:
        raise Failed(f"the device saw the end as {found}, not {' or '.join(reasons)}")


def noted(device: Device) -> int:
    return len(device.events("A call has ended"))


def judged(stage: Stage, what: str, measure: Callable[[], float], name: str | None = None) -> None:
    """Compares the median of three tries with the limit, and keeps all of them: a busy machine stalls both sides."""
    try:
        result = tries.judge(what, LEAST[what], measure)
    except tries.TooLow as error:
        raise Failed(str(error)) from None
    if name:
        stage.figures["pesq"][name] = result


def both_ways(stage: Stage, browser: str, recorded: numpy.ndarray, heard: numpy.ndarray) -> float:
    """The lesser PESQ of a call in which the device recorded the browser's microphone, and the browser heard a file."""
    ways = {
        f"{browser} → device": speech.score(stage.original, recorded, repeats=True),
        f"device → {browser}": speech.score(stage.original, heard),
    }
    for way, figure in ways.items():
        found = stage.figures["pesq"].setdefault(way, {"tries": []})
        found["tries"].append(round(figure, 2))
        found["median"] = statistics.median_low(found["tries"])
    return min(ways.values())


def quality(figures: dict) -> None:
    """Prints a line for each direction: its median, and every try."""
    for way, found in figures["pesq"].items():
        print(f"PESQ   {way}: {found['median']:.2f} of {', '.join(f'{figure:.2f}' for figure in found['tries'])}")


def flows(phone: Phone) -> bool:
    """Whether sound comes in, which is 50 packets a second, and not only RTCP."""
    before = phone.run_async("packets()")
    time.sleep(1)
    return phone.run_async("packets()") - before > 10


def quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "p50_ms": round(statistics.median(ordered), 1),
        "p90_ms": round(ordered[int(0.9 * (len(ordered) - 1))], 1),
        "max_ms": round(ordered[-1], 1),
    }


def time_calls(stage: Stage, name: str, phone: Phone | Firefox, callee: str, count: int) -> None:
    times = phone.run_async(f"callTimes('{callee}', {count}, 0.2)", 5 * count)
    stage.figures["set-up"][name] = {
        "path and keys": quantiles([one["connected"] for one in times]),
        "sound": quantiles([one["media"] for one in times]),
    }
