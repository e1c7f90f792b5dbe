#!/usr/bin/env python3
"""Streams from and to real browsers over WHIP and WHEP: `handset serve`, `handset run`, and a Chromium.

usage: whip_test.py HANDSET

Ends with 0 if every check held. Needs selenium and chromium-driver; scripts/interop sees to both.
"""

import argparse
import base64
import contextlib
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import wave

import mdns
from phones import Exchange, Failed, Phone, wait
from selenium.common.exceptions import WebDriverException

CHECKS = []

# A client of both protocols, as small as they are. `window.stream` is the one that is under way.
CLIENT = """
window.begin = async ({ url, token, direction, trickles, videos }) => {
  const connection = new RTCPeerConnection();
  const headers = { Authorization: `Bearer ${token}` };
  const stream = { connection, headers, waiting: [], isEnded: false };
  window.stream = stream;
  if (direction === 'recvonly') {
    connection.addTransceiver('audio', { direction });
  } else {
    const sound = await navigator.mediaDevices.getUserMedia({ audio: true });
    connection.addTransceiver(sound.getAudioTracks()[0], { direction });
  }
  for (let count = 0; count < videos; count += 1) connection.addTransceiver('video', { direction });
  connection.ontrack = ({ track }) => {
    const element = new Audio();
    element.srcObject = new MediaStream([track]);
    element.play();
    stream.element = element;
  };
  const gathered = new Promise((done) => {
    connection.onicecandidate = ({ candidate }) => {
      if (candidate && candidate.candidate) stream.waiting.push(candidate.candidate);
      else done();
    };
  });
  await connection.setLocalDescription();
  const bare = connection.localDescription.sdp;
  if (!trickles) await gathered;
  const body = trickles ? bare : connection.localDescription.sdp;
  const response = await fetch(url, {
    method: 'POST', body, headers: { ...headers, 'Content-Type': 'application/sdp' } });
  const answer = await response.text();
  if (response.status !== 201) return { status: response.status, problem: JSON.parse(answer) };
  stream.session = new URL(response.headers.get('Location'), url).href;
  stream.tag = response.headers.get('ETag');
  await connection.setRemoteDescription({ type: 'answer', sdp: answer });
  let patch = 0;
  if (trickles) {
    await gathered;
    patch = (await window.patch(stream.tag, window.fragment(connection.localDescription.sdp, stream.waiting))).status;
  }
  return { status: 201, patch, answer, offered: /a=candidate:/.test(body), length: body.length, hidden: stream.waiting };
};

window.fragment = (sdp, candidates) => [
  sdp.match(/a=ice-ufrag:.*/)[0].trim(), sdp.match(/a=ice-pwd:.*/)[0].trim(),
  'm=audio 9 UDP/TLS/RTP/SAVPF 0', `a=mid:${sdp.match(/a=mid:(.*)/)[1].trim()}`,
  ...candidates.map((candidate) => `a=${candidate}`), 'a=end-of-candidates', '',
].join('\\r\\n');

window.patch = (tag, body) => fetch(window.stream.session, {
  method: 'PATCH', body,
  headers: { ...window.stream.headers, 'If-Match': tag, 'Content-Type': 'application/trickle-ice-sdpfrag' } });

window.end = async () => {
  const { connection, session, headers } = window.stream;
  connection.close();
  return (await fetch(session, { method: 'DELETE', headers })).status;
};

// A restart keeps everything but ICE (RFC 9725 §4.3.3).
window.restart = async () => {
  const { connection } = window.stream;
  const before = connection.remoteDescription.sdp;
  const waiting = [];
  const gathered = new Promise((done) => {
    connection.onicecandidate = ({ candidate }) => {
      if (candidate && candidate.candidate) waiting.push(candidate.candidate);
      else done();
    };
  });
  await connection.setLocalDescription(await connection.createOffer({ iceRestart: true }));
  await gathered;
  const response = await window.patch('*', window.fragment(connection.localDescription.sdp, waiting));
  if (response.status !== 200) return { status: response.status };
  const lines = (await response.text()).split('\\r\\n');
  const pick = (name) => lines.find((line) => line.startsWith(`a=${name}:`));
  const candidates = lines.filter((line) => line.startsWith('a=candidate:'));
  const sdp = before.split('\\r\\n').filter((line) => !/^a=(candidate:|end-of-candidates)/.test(line))
    .map((line) => line.startsWith('a=ice-ufrag:') ? pick('ice-ufrag') : line)
    .map((line) => line.startsWith('a=ice-pwd:') ? pick('ice-pwd') : line);
  await connection.setRemoteDescription({ type: 'answer', sdp: [...sdp.slice(0, -1), ...candidates, ''].join('\\r\\n') });
  return { status: 200, tag: response.headers.get('ETag'), old: window.stream.tag, isNew: !before.includes(pick('ice-pwd')) };
};

window.measure = async () => {
  const found = { packets: 0, energy: 0, state: window.stream.connection.connectionState };
  for (const report of (await window.stream.connection.getStats()).values()) {
    if (report.type === 'inbound-rtp') Object.assign(found, {
      packets: report.packetsReceived, energy: report.totalAudioEnergy || 0 });
    if (report.type === 'outbound-rtp') found.sent = report.packetsSent;
  }
  return found;
};
"""


def check(function):
    """Marks a function as one of the checks; its first docstring line says what holds."""
    CHECKS.append(function)
    return function


class Device:
    """`handset run` as one of the demonstration's users."""

    def __init__(self, scene, user, behaviour):
        folder = pathlib.Path(scene.folder.name)
        token = folder / f"{user}.token"
        token.write_text(f"{user}-demo-token")
        token.chmod(0o600)
        lines = [f"  {key}: {value}" for key, value in behaviour.items()]
        config = folder / f"{user}.yaml"
        config.write_text(
            "\n".join(
                [
                    "account:",
                    f"  server: http://127.0.0.1:{scene.exchange.port}",
                    f"  media_token_file: {token}",
                    "device:",
                    f"  name: {user}",
                    "answer:",
                    "  mode: auto",
                    "behaviour:",
                    *lines,
                    "",
                ]
            )
        )
        self.log = folder / f"{user}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([scene.handset, "run", "--config", str(config), "--log-format", "json"], stderr=log)
        wait(f"{user} is ready", lambda: '"Ready"' in self.log.read_text(), 20)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)


class Scene:
    """An exchange, devices and a browser."""

    def __init__(self, handset):
        self.handset, self.folder, self.devices = handset, tempfile.TemporaryDirectory(), []
        self.exchange = Exchange(handset)
        self.echo = self.device("echo", source="echo", record_folder=self.folder.name)
        self.device("caller", source="tone")
        self.browser = Phone(self.exchange.url)
        self.browser.driver.set_script_timeout(40)
        self.browser.run(CLIENT)
        self.token = self.login()

    def device(self, user, **behaviour):
        self.devices.append(Device(self, user, behaviour))
        return self.devices[-1]

    def login(self):
        body = json.dumps({"type": "Cima", "media_token": "alice-demo-token"}).encode()
        request = urllib.request.Request(
            self.exchange.url + "v1.1/login",
            body,
            {"Authorization": "Basic " + base64.b64encode(b"demo:demo").decode(), "Content-Type": "application/json"},
        )
        return json.load(urllib.request.urlopen(request, timeout=10))["token"]

    def do(self, call):
        """Runs a JavaScript expression, waits for its promise, and hands back what it gave."""
        result = self.browser.driver.execute_async_script(
            f"const done = arguments[0]; Promise.resolve({call}).then((it) => done([it]), (error) => done(String(error)));"
        )
        if not isinstance(result, list):
            raise Failed(f"the browser: {result}")
        return result[0]

    def begin(self, kind, user, direction, trickles=True, videos=0):
        options = {
            "url": f"{self.exchange.url}{kind}/{user}",
            "token": self.token,
            "direction": direction,
            "trickles": trickles,
            "videos": videos,
        }
        return self.do(f"window.begin({json.dumps(options)})")

    def hears(self):
        """Waits until sound comes: half a second of it, and not silence."""
        first = wait("media comes", lambda: (found := self.do("window.measure()"))["packets"] > 0 and found)

        def more():
            found = self.do("window.measure()")
            return found["packets"] > first["packets"] + 25 and found["energy"] > first["energy"] + 1e-6

        wait("what comes is not silent", more)

    def sends(self):
        """Waits until a hundred more packets have gone."""
        first = self.do("window.measure()").get("sent", 0)
        wait("a hundred packets have gone", lambda: self.do("window.measure()").get("sent", 0) > first + 100)

    def recording(self):
        """A function that returns the highest sample of the device's next recording, of all of it or of its last seconds."""
        before = set(pathlib.Path(self.folder.name).glob("*.wav"))

        def loudest(seconds=None):
            new = set(pathlib.Path(self.folder.name).glob("*.wav")) - before
            if not new:
                return 0
            try:
                sound = wave.open(str(new.pop()))
            except FileNotFoundError:
                return 0  # It is whole, and has got its name in this moment.
            with contextlib.closing(sound):
                if seconds:
                    sound.setpos(max(0, sound.getnframes() - seconds * sound.getframerate()))
                data = sound.readframes(sound.getnframes())
            samples = struct.unpack(f"<{len(data) // 2}h", data)
            return max(map(abs, samples), default=0)

        return loudest

    def end(self):
        if (status := self.do("window.end()")) != 200:
            raise Failed(f"DELETE returned {status}")

    def close(self):
        self.browser.close()
        for device in self.devices:
            device.stop()
        self.exchange.stop()
        self.folder.cleanup()


def expect(what, is_so):
    if not is_so:
        raise Failed(what)


@check
def listens(scene):
    """A client of WHEP that sends its candidates one by one hears the device."""
    begun = scene.begin("whep", "caller", "recvonly")
    expect(f"created: {begun}", begun["status"] == 201 and begun["patch"] == 204 and not begun["offered"])
    expect("the answer has the device's candidates", "a=candidate:" in begun["answer"])
    scene.hears()


@check
def restarts(scene):
    """The same stream restarts ICE by PATCH, and sound continues."""
    restarted = scene.do("window.restart()")
    expect(f"restarted: {restarted}", restarted["status"] == 200 and restarted["isNew"] and restarted["tag"] != restarted["old"])
    wait("it is connected", lambda: scene.do("window.measure()")["state"] == "connected")
    time.sleep(1)
    scene.hears()
    scene.end()
    expect("the session is gone", scene.do("window.end()") == 404)


@check
def restarts_at_length(scene):
    """A stream of WHIP whose offer is longer than a signal of a device may be, for it has video, restarts ICE as well."""
    recording = scene.recording()
    begun = scene.begin("whip", "echo", "sendrecv", videos=2)
    expect(f"created: {begun}", begun["status"] == 201)
    expect(f"an offer of {begun['length']} bytes is long", begun["length"] > 8_192)
    expect("an offer of both ways is answered with one", "a=recvonly" in begun["answer"] and "a=sendrecv" not in begun["answer"])
    scene.sends()
    restarted = scene.do("window.restart()")
    expect(f"restarted: {restarted}", restarted["status"] == 200 and restarted["isNew"] and restarted["tag"] != restarted["old"])
    wait("it is connected", lambda: scene.do("window.measure()")["state"] == "connected")
    time.sleep(1)
    scene.sends()
    expect("nothing comes back", scene.do("window.measure()")["packets"] == 0)
    scene.end()
    wait("what was recorded since the restart is not silent", lambda: recording(seconds=2) > 1000)


@check
def records(scene):
    """A client of WHIP that only sends, with video and all its candidates in the offer, is heard by the device."""
    recording = scene.recording()
    begun = scene.begin("whip", "echo", "sendonly", trickles=False, videos=1)
    expect(f"created: {begun}", begun["status"] == 201 and begun["offered"])
    expect("the device only listens", "a=recvonly" in begun["answer"])
    expect("the device takes no video", "m=video 0 " in begun["answer"])
    scene.sends()
    scene.end()
    wait("the recording is not silent", lambda: recording() > 1000)


@check
def plays(scene):
    """A client of WHEP hears what the device sends."""
    scene.token = "caller-demo-token"  # The user's own stream token.
    begun = scene.begin("whep", "caller", "recvonly")
    expect(f"created: {begun}", begun["status"] == 201)
    expect("the device only sends", "a=sendonly" in begun["answer"])
    scene.hears()
    scene.end()
    scene.token = scene.login()


@check
def is_hidden(scene):
    """A browser without leave to listen hides its addresses behind names, which the device looks up, and is heard."""
    page, scene.browser = scene.browser, Phone(scene.exchange.url, microphone="refused")
    token, scene.token = scene.token, "caller-demo-token"
    names = mdns.Listener()
    try:
        scene.browser.driver.set_script_timeout(40)
        scene.browser.run(CLIENT)
        begun = scene.begin("whep", "caller", "recvonly")
        expect(f"created: {begun}", begun["status"] == 201)
        hosts = [candidate.split()[4] for candidate in begun["hidden"] if " typ host" in candidate]
        expect(f"the addresses are hidden: {hosts}", hosts and all(host.endswith(".local") for host in hosts))
        scene.hears()
        asked = wait("the device asks for a name", lambda: names.asked & set(hosts))
        wait(f"the browser answers for {asked}", lambda: names.answered & asked)
        scene.end()
    finally:
        names.close()
        scene.browser.close()
        scene.browser, scene.token = page, token


@check
def refuses(scene):
    """A callee that is not there and a caller that is not allowed get their errors; a device that goes away ends the session."""
    found = scene.begin("whip", "bob", "sendonly")
    expect(f"no device there: {found}", found["status"] == 409 and found["problem"]["code"] == "noDeviceOnline")
    token, scene.token = scene.token, "nonsense"
    found = scene.begin("whip", "echo", "sendonly")
    expect(f"no token: {found}", found["status"] == 401)
    scene.token = token
    expect("created", scene.begin("whip", "echo", "sendonly")["status"] == 201)
    scene.sends()
    scene.echo.stop()
    wait("the session is gone", lambda: scene.do("window.patch('*', 'a=end-of-candidates').then((it) => it.status)") == 404)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset", help="the handset command to test")
    scene = Scene(parser.parse_args().handset)
    failures = 0
    try:
        for function in CHECKS:
            start = time.monotonic()
            try:
                function(scene)
            except (Failed, WebDriverException) as error:
                failures += 1
                print(f"FAILED {function.__name__}: {function.__doc__}\n       {error}", flush=True)
                for device in scene.devices:
                    print("       " + "\n       ".join(device.log.read_text().splitlines()[-5:]))
                break  # What follows builds on it.
            print(f"ok     {time.monotonic() - start:5.1f} s  {function.__doc__}", flush=True)
    finally:
        scene.close()
    print(f"{failures} failed" if failures else f"all {len(CHECKS)} hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
