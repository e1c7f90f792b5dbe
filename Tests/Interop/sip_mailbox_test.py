#!/usr/bin/env python3
"""The lamp of a telephone: baresip subscribes to a mailbox through kamailio (RFC 3842), and is notified of a message that is left, heard
and deleted; Linphone is notified without a subscription; a telephone that is not listed is refused.

usage: sip_mailbox_test.py HANDSET [CHECK…]

Exits with 0 if every check passed. Needs a network namespace of its own; scripts/interop-sip makes it.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from collections.abc import Callable

from sip_stage import Baresip, Device, Failed, Kamailio, Linphone, call, main, running, wait

SOUNDS = pathlib.Path("/usr/share/sounds/alsa")


class Telephone(Baresip):
    """baresip with its module for message-waiting: it subscribes to its own address, whose mailbox is a device."""

    modules = ("mwi",)

    def waiting(self) -> list[str]:
        """What each notification said, in order: `yes 1/0` or `no 0/1`."""
        found = re.findall(r"Messages-Waiting: (\w+).*?Voice-Message: (\d+/\d+)", self.text(), re.DOTALL)
        return [f"{waits} {counts}" for waits, counts in found]

    def shows(self, state: str) -> Callable[[], bool]:
        """Whether the lamp's newest state is this one, for `wait`."""
        return lambda: self.waiting()[-1] == state


def voicemail(handset: str, device: Device, *arguments: str) -> str:
    command = [handset, "voicemail", *arguments, "--folder", str(device.folder / "mailbox")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def leave_message(handset: str, folder: pathlib.Path) -> None:
    script = folder / "caller.script"
    sounds = "".join(f"play {SOUNDS / name}.wav\n" for name in ("Rear_Left", "Side_Right", "Front_Left"))
    script.write_text(f"limit 30 s\nwait for sound within 10 s\nwait for silence\n{sounds}wait 1 s\npress #\nwait for hang-up\n")
    code, report, text = call(handset, folder, "device", "--script", str(script))
    if code != 0:
        raise Failed(f"the message could not be left ({code}): {json.dumps(report)[:500]} {text[-500:]}")


def lamp(handset: str, folder: pathlib.Path) -> None:
    """baresip subscribes, and its lamp lights with a message, and follows when that is heard, new again, and deleted."""
    behaviour = "source: voicemail, voicemail: { folder: mailbox, notify: [bob] }"
    with running(Kamailio(folder)), running(Device(handset, folder, behaviour=behaviour)) as device, running(Telephone(folder)) as bob:
        wait("baresip is notified at once", lambda: bob.waiting() == ["no 0/0"], 20)
        leave_message(handset, folder)
        wait("the lamp is on", lambda: bob.waiting()[-1] == "yes 1/0")
        message = voicemail(handset, device, "list").split()[0]
        for arguments, state in ((["mark"], "no 0/1"), (["mark", "--new"], "yes 1/0"), (["delete"], "no 0/0")):
            voicemail(handset, device, *arguments, message)
            wait(f"the lamp after {arguments}", bob.shows(state))
        if device.count("A peer is notified of the mailbox") != 1:
            raise Failed("there is not one subscription")
        device.stop()
        wait("the subscription ends with the device", lambda: bob.says("probation|subscription .* closed"))


def stranger(handset: str, folder: pathlib.Path) -> None:
    """A telephone that is not listed gets 403, and learns nothing."""
    behaviour = "source: voicemail, voicemail: { folder: mailbox, notify: [carol] }"
    with running(Kamailio(folder)), running(Device(handset, folder, behaviour=behaviour)) as device, running(Telephone(folder)) as bob:
        wait("the device refuses", lambda: device.says("A peer was not allowed to be notified of the mailbox"), 20)
        wait("baresip is refused", lambda: bob.says("403"))
        if bob.waiting():
            raise Failed(f"baresip knows of messages: {bob.waiting()}")


def announced(handset: str, folder: pathlib.Path) -> None:
    """Linphone takes a notification without a subscription."""
    behaviour = "source: voicemail, voicemail: { folder: mailbox, announce_to: [carol] }"
    with running(Kamailio(folder)), running(Linphone(folder)), running(Device(handset, folder, behaviour=behaviour)) as device:
        leave_message(handset, folder)
        wait("the message is counted", lambda: voicemail(handset, device, "list").split())
        if device.says("A notification of the mailbox was not taken"):
            raise Failed("Linphone refuses the notification")


CHECKS = [lamp, stranger, announced]

if __name__ == "__main__":
    main(CHECKS)
