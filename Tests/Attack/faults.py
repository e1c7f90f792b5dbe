"""Faults of a device, simulated between a bystander and a device without them. The model must find each, by a report that has `shows`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bystander import Path
from strangers import ELSEWHERE
from wire import request

if TYPE_CHECKING:
    from bystander import Call
    from model import Model
    from strangers import Stranger
    from wire import Address


class Mute(Path):
    """Datagrams of all hosts count together, so a flood mutes bystanders."""

    shows = "its INVITE failed"

    def out(self, call: Call, data: bytes, target: Address, is_media: bool) -> None:
        if not is_media and sum(count for _, count in self.model.lately) > 200:
            return
        super().out(call, data, target, is_media)


class Thief(Path):
    """The host that sent to a media port last gets the call's sound."""

    shows = "hears"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.thieves = {}
        model.stray = lambda call, socket: self.thieves.update({call: socket})

    def into(self, call: Call, data: bytes, source: Address, is_media: bool) -> None:
        if is_media and call in self.thieves:
            self.thieves[call].hear(data, source)
            return
        super().into(call, data, source, is_media)


class Obedient(Path):
    """A request in a call counts from any host."""

    shows = "its call was ended"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        model.spoofed = self.obey

    def obey(self, call: Call, method: str) -> None:
        if method == "BYE":
            host = self.model.device.address
            data = request("BYE", "sip:x@x", host, "z9hG4bKspoofed", call.remote, call.local, call.id, 9).data()
            call.take(data, host)


class Talkative(Path):
    """The address in a description gets all of a call's sound."""

    shows = "a third party got"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        model.names_victim = self.send

    def send(self, allowed: int = ELSEWHERE) -> None:
        type(self.model).names_victim(self.model, allowed)
        for _ in range(60):
            self.model.hear_as_victim(bytes(172), self.model.device.address)


class Hoarder(Path):
    """Requests are kept and never freed."""

    shows = "MiB of memory"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.ballast = 0
        model.sent = self.keep

    def keep(self, count: int, to_device: bool) -> None:
        type(self.model).sent(self.model, count, to_device)
        if to_device:
            self.ballast += count * 120_000


class Strangers(Path):
    """Media from any host is played."""

    shows = "have a stranger's sound"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.strays = {}
        model.stray = lambda call, socket: self.strays.update({call: time.monotonic()})

    def into(self, call: Call, data: bytes, source: Address, is_media: bool) -> None:
        if is_media and time.monotonic() - self.strays.get(call, -9) < 0.5 and call.theirs is None:
            data = data[:12] + self.model.strangers_tones[0].frame
        super().into(call, data, source, is_media)


class Asleep(Path):
    """Large headers stop the device: it no longer answers its server."""

    shows = "no answer to the server"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        model.step = self.stop

    def stop(self, stranger: Stranger, deed: str) -> None:
        type(self.model).step(self.model, stranger, deed)
        if deed == "huge_headers":
            self.model.server.socket.hear = lambda data, source: None


class Gullible(Path):
    """A forged answer makes the device believe that it is registered for a week."""

    shows = "did not register"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        model.forged = self.believe

    def believe(self) -> None:
        self.model.server.registered = [time.monotonic() - 120]


class Fickle(Path):
    """A forged refusal makes the device register again at once."""

    shows = "registered again"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        model.forged = lambda: model.server.registered.append(time.monotonic())


class Unlocked(Path):
    """Control over HTTP takes a wrong token."""

    shows = "answers a stranger"

    def answered(self, data: bytes) -> bytes:
        return data.replace(b"HTTP/1.1 401", b"HTTP/1.1 200")


PATHS = {path.__name__.lower(): path for path in (Mute, Thief, Obedient, Talkative, Hoarder, Strangers, Asleep, Gullible, Fickle, Unlocked)}
