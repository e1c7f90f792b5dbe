"""A Firefox with the web phone open, driven by WebDriver BiDi (https://w3c.github.io/webdriver-bidi), which it speaks
without another program in between."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Any

import av
import numpy
import websocket
from phones import Failed, Levels, wait

PREFERENCES = {
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
    "media.autoplay.default": 0,
    "media.peerconnection.ice.loopback": True,
    "media.peerconnection.ice.obfuscate_host_addresses": False,
    "dom.min_background_timeout_value": 4,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
}

# Firefox's fake microphone hums and takes no file; so the page gets permission to use it, and plays speech instead.
# Without a sound card Web Audio does not run, but an element plays.
MICROPHONE = """() => {
  const open = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = async function (constraints) {
    for (const track of (await open.call(this, constraints)).getTracks()) track.stop();
    const bytes = Uint8Array.from(atob(SPEECH), (character) => character.charCodeAt(0));
    const voice = new Audio(URL.createObjectURL(new Blob([bytes], { type: 'audio/wav' })));
    voice.loop = true;
    // The voice of the call before would continue, one more with each call.
    window.voice?.pause();
    window.voice = voice;
    await voice.play();
    return voice.mozCaptureStream();
  };
}"""


class Firefox(Levels):
    """One Firefox with the page open."""

    def __init__(self, url: str, microphone: pathlib.Path, script: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        profile = pathlib.Path(self.folder.name)
        (profile / "user.js").write_text(
            "".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items())
        )
        self.log = profile / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["firefox-esr", "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"],
                stdout=log,
                stderr=log,
            )
        self.last = 0
        found = wait("Firefox listens", lambda: re.search(r"BiDi listening on (ws://\S+)", self.log.read_text()), 60)
        self.socket = websocket.create_connection(found.group(1) + "/session", suppress_origin=True, timeout=90)
        self.version = self.ask("session.new", capabilities={})["capabilities"]["browserVersion"]
        self.context = self.ask("browsingContext.getTree")["contexts"][0]["context"]
        speech = json.dumps(base64.b64encode(microphone.read_bytes()).decode())
        for code in (MICROPHONE.replace("SPEECH", speech), f"() => {{ {script} }}"):
            self.ask("script.addPreloadScript", functionDeclaration=code)
        self.ask("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def reload(self) -> None:
        """Loads the page again, as the key F5 does."""
        self.ask("browsingContext.reload", context=self.context, wait="complete")

    def ask(self, method: str, **parameters: Any) -> dict:
        self.last += 1
        self.socket.send(json.dumps({"id": self.last, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") != self.last:
                continue  # An event.
            if answer["type"] == "error":
                raise Failed(f"{method}: {answer['message']}")
            return answer["result"]

    def run_async(self, expression: str, seconds: float = 60) -> Any:
        """The result of a promise in the page."""
        self.socket.settimeout(seconds)
        answer = self.ask(
            "script.evaluate",
            expression=f"Promise.resolve({expression}).then((value) => JSON.stringify(value ?? null))",
            target={"context": self.context},
            awaitPromise=True,
            userActivation=True,
        )
        if answer["type"] != "success":
            raise Failed(f"{expression}: {answer['exceptionDetails']['text']}")
        return json.loads(answer["result"]["value"])

    def run(self, script: str) -> Any:
        """The result of a script with a `return`."""
        return self.run_async(f"(() => {{ {script} }})()")

    # What people see and do; buttons are pressed from within the page.

    def click(self, selector: str) -> None:
        one = f"document.querySelector({json.dumps(selector)})"
        wait(f"{selector} can be clicked", lambda: self.run(f"return !!{one} && !{one}.disabled && {one}.checkVisibility()"))
        self.run(f"return void {one}.click()")

    def text(self, selector: str) -> str:
        return self.run(f"return document.querySelector({json.dumps(selector)}).innerText")

    def sees(self, selector: str) -> bool:
        return self.run(f"return document.querySelector({json.dumps(selector)})?.checkVisibility() ?? false")

    def hear(self, seconds: float) -> numpy.ndarray:
        """The samples that come in during `seconds`, after the coding of Firefox's recorder at 256 kb/s."""
        data = base64.b64decode(self.run_async(f"record({seconds})", seconds + 30))
        with av.open(io.BytesIO(data)) as file:
            to_mono = av.AudioResampler("flt", "mono", 48_000)
            parts = [part.to_ndarray()[0] for frame in file.decode(audio=0) for part in to_mono.resample(frame)]
        return numpy.concatenate(parts)

    def sign_in(self, name: str) -> None:
        guest = f"[...document.querySelectorAll('.guest')].find((button) => button.textContent.trim().toLowerCase() === '{name}')"
        wait("there are guests", lambda: self.run(f"return !!{guest}"))
        self.run(f"{guest}.click()")
        wait("the phone is online", lambda: self.run("return document.getElementById('link').dataset.state") == "ready")

    def phase(self, *phases: str, seconds: float = 15) -> None:
        wait(f"the call is {' or '.join(phases)}", lambda: self.run("return document.body.dataset.call") in phases, seconds)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.ask("browser.close")
        with contextlib.suppress(Exception):
            self.socket.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def is_installed() -> bool:
    return shutil.which("firefox-esr") is not None
