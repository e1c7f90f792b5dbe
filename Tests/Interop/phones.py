"""Parts of the web phone's checks: an exchange, a wire that can be cut, and browsers with the page open."""

from __future__ import annotations

import contextlib
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


class Failed(Exception):
    """A check failed."""


def wait(what: str, condition: Callable[[], Any], seconds: float = 15) -> Any:
    """Waits until a condition holds. Returns its value."""
    end = time.monotonic() + seconds
    seen = None
    while time.monotonic() < end:
        try:
            seen = condition()
        except WebDriverException:
            seen = None
        if seen:
            return seen
        time.sleep(0.1)
    raise Failed(f"{what} (waited {seconds} s, last seen: {seen!r})")


class Exchange:
    """`handset serve` on a port of this machine."""

    def __init__(self, handset: str, *options: str) -> None:
        self.handset, self.options, self.port = handset, options, 0
        self.process: subprocess.Popen | None = None
        self.start()

    def start(self) -> None:
        self.log = tempfile.NamedTemporaryFile(suffix=".log")
        command = [self.handset, "serve", "--listen", f"127.0.0.1:{self.port}", "--log-format", "json", *self.options]
        self.process = subprocess.Popen(command, stderr=self.log)
        text = wait("the exchange listens", lambda: self._listening(), 20)
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", text).group(1))

    def _listening(self) -> str | None:
        if self.process.poll() is not None:
            raise Failed("the exchange ended: " + pathlib.Path(self.log.name).read_text())
        text = pathlib.Path(self.log.name).read_text()
        return text if '"Listening"' in text else None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/"

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)


class Wire:
    """A connection to the exchange that can be cut and restored."""

    def __init__(self, port: int) -> None:
        self.target, self.isCut, self.open = port, False, []
        self.server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.server.getsockname()[1]}/"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.server.accept()
                if self.isCut:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self.target))
                self.open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self.isCut = True
        for end in self.open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.open = []

    def mend(self) -> None:
        self.isCut = False

    def close(self) -> None:
        self.cut()
        self.server.close()


class Levels:
    """The level of incoming sound that a page shows, in any browser."""

    run: Callable[..., Any]

    def level(self) -> int | None:
        """The level of the other side's sound, in dB; None while it is not known."""
        found = re.match(r"(−?\d+)", self.run("return document.getElementById('value-level').textContent") or "")
        return int(found.group(1).replace("−", "-")) if found else None

    def hears(self) -> bool:
        """Whether there is sound: the fake microphone beeps, and what is muted is below −80 dB."""
        level = self.level()
        return level is not None and level > -65


class Phone(Levels):
    """One browser with the page open.

    `microphone` is "fake" (beeps), "refused", "none", "cards" (the sound cards of the machine), or the path of a WAV file
    that is played over and over. `script` runs before the page's own. The browser gets further `arguments`, and
    `environment` in place of this program's.
    """

    def __init__(
        self,
        url: str,
        microphone: str | pathlib.Path = "fake",
        script: str = "",
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--window-size=1280,860",
            "--autoplay-policy=no-user-gesture-required",
            "--allow-loopback-in-peer-connection",
            "--lang=en-GB",
            "--disable-background-timer-throttling",
            "--disable-renderer-backgrounding",
            "--host-resolver-rules=MAP phone.test 127.0.0.1",
            *arguments,
        ]:
            options.add_argument(argument)
        if microphone == "fake":
            options.add_argument("--use-fake-device-for-media-stream")
            options.add_argument("--use-fake-ui-for-media-stream")
        elif isinstance(microphone, pathlib.Path):
            options.add_argument("--use-fake-device-for-media-stream")
            options.add_argument("--use-fake-ui-for-media-stream")
            options.add_argument(f"--use-file-for-fake-audio-capture={microphone}")
        elif microphone == "cards":
            options.add_argument("--use-fake-ui-for-media-stream")
        elif microphone == "refused":
            options.add_argument("--use-fake-device-for-media-stream")
            options.add_argument("--deny-permission-prompts")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver", env=environment))
        if microphone == "none":
            # The machine may have a microphone, so the browser's answer is replaced with the one without.
            self.driver.execute_cdp_cmd(
                "Page.addScriptToEvaluateOnNewDocument",
                {
                    "source": """
                MediaDevices.prototype.getUserMedia = async () => {
                  throw new DOMException('Requested device not found', 'NotFoundError');
                };"""
                },
            )
        # The page's connections, to do to them what a network would.
        self.driver.execute_cdp_cmd(
            "Page.addScriptToEvaluateOnNewDocument",
            {
                "source": """
            window.connections = [];
            window.RTCPeerConnection = class extends RTCPeerConnection {
              constructor(...given) {
                super(...given);
                window.connections.push(this);
              }
            };"""
            },
        )
        if script:
            self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        self.url = url
        self.driver.get(url)

    def close(self) -> None:
        with contextlib.suppress(WebDriverException):
            self.driver.quit()

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        wait(f"{selector} can be clicked", lambda: self.find(selector).is_displayed() and self.find(selector).is_enabled())
        self.find(selector).click()

    def text(self, selector: str) -> str:
        return self.find(selector).text

    def sees(self, selector: str) -> bool:
        found = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return bool(found) and found[0].is_displayed()

    def keys(self, text: str) -> None:
        self.find("body").send_keys(text)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def run_async(self, expression: str, seconds: float = 60) -> Any:
        """The result of a promise in the page."""
        self.driver.set_script_timeout(seconds)
        result = self.driver.execute_async_script(
            f"const done = arguments[0];({expression}).then((value) => done({{ value }}), (error) => done({{ error: String(error) }}));"
        )
        if "error" in result:
            raise Failed(f"{expression}: {result['error']}")
        return result.get("value")

    # Actions of a user.

    def sign_in(self, name: str) -> None:
        wait("there are guests", lambda: self.sees(".guest"))
        next(button for button in self.driver.find_elements(By.CSS_SELECTOR, ".guest") if button.text.lower() == name).click()
        self.online()

    def sign_in_with(self, name: str, password: str) -> None:
        """Signs in at a configured exchange, which has no guests."""
        self.find("#user").send_keys(name)
        self.find("#password").send_keys(password, Keys.ENTER)
        self.online()

    def online(self, seconds: float = 15) -> None:
        wait("the phone is online", lambda: self.run("return document.getElementById('link').dataset.state") == "ready", seconds)

    def person(self, name: str) -> str:
        return f'li[data-user="{name}"] button'

    def call(self, name: str) -> None:
        wait(f"{name} is there", lambda: self.sees(f'li[data-user="{name}"][data-there="true"]'))
        self.click(self.person(name))

    def phase(self, *phases: str, seconds: float = 15) -> None:
        wait(f"the call is {' or '.join(phases)}", lambda: self.run("return document.body.dataset.call") in phases, seconds)

    def says(self, text: str, selector: str = "#state", seconds: float = 15) -> None:
        wait(f"{selector} says “{text}”", lambda: text in self.text(selector), seconds)

    def rest(self) -> None:
        if self.sees("#dismiss"):
            self.click("#dismiss")
        self.phase("idle")

    def complaints(self) -> list[str]:
        """Unexpected messages of the browser's console."""

        def matters(text: str) -> bool:
            # Refused logins, and an exchange that is away, are expected.
            return not ("Failed to load resource" in text and "/v1" in text)

        wrong = ("Content Security Policy", "signal not used", "answer not used")
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if (entry["level"] == "SEVERE" or any(word in entry["message"] for word in wrong)) and matters(entry["message"])
        ]


class Scene:
    """An exchange with two phones, Alice's and Bob's, signed in."""

    def __init__(self, handset: str, screenshots: pathlib.Path | None) -> None:
        self.handset, self.folder = handset, screenshots
        self.exchange = Exchange(handset)
        self.phones = []
        self.alice = self.open()
        self.bob = self.open()

    def open(self, **options: Any) -> Phone:
        phone = Phone(options.pop("url", self.exchange.url), **options)
        self.phones.append(phone)
        return phone

    def shut(self, phone: Phone) -> None:
        self.phones.remove(phone)
        phone.close()

    def end(self) -> None:
        for phone in self.phones:
            phone.close()
        self.exchange.stop()

    def shoot(self, phone: Phone, name: str, width: int = 1280, height: int = 800, dark: bool = False, scale: int = 1) -> None:
        """Keeps what a phone shows, if pictures are wanted."""
        if not self.folder:
            return
        phone.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}
        )
        phone.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 720}
        )
        time.sleep(0.8)
        phone.driver.save_screenshot(str(self.folder / f"{name}.png"))
        overflow = phone.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        phone.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        phone.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        if overflow > 0:
            raise Failed(f"at {width} px the page is {overflow} px too wide ({name})")
