#!/usr/bin/env python3
"""Measures a call's round trip by way of echoing bots: Handset's wires, aiortc and Chromium, with the same caller.

usage: beside.py HANDSET [--rounds N]

The caller is `handset loopback call`, whose jitter buffer and codec are part of every figure. Prints a JSON object for each bot. Needs
selenium, chromium-driver, websockets and aiortc.
"""

import argparse
import asyncio
import contextlib
import importlib.metadata
import json
import pathlib
import statistics
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "Interop"))
import aiortc  # noqa: E402
import botserver  # noqa: E402
from aiortc_peer import add_candidate  # noqa: E402
from devices import Device  # noqa: E402
from line import signed_in  # noqa: E402
from phones import Exchange, Phone  # noqa: E402

# A bot in a page: received sound goes through the browser's audio graph, where a program would read it, and back as its microphone.
PAGE = """(() => {
  const graph = new AudioContext({ latencyHint: 'interactive', sampleRate: 48000 });
  const back = graph.createMediaStreamDestination();
  MediaDevices.prototype.getUserMedia = async () => new MediaStream(back.stream.getTracks().map((track) => track.clone()));
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...given) {
      super(...given);
      this.addEventListener('track', ({ track }) => {
        graph.resume();
        graph.createMediaStreamSource(new MediaStream([track])).connect(back);
      });
    }
  };
  addEventListener('DOMContentLoaded', () => {
    new MutationObserver(() => {
      if (document.body.dataset.call === 'ringing') document.getElementById('answer').click();
      if (document.body.dataset.call === 'ended') setTimeout(() => document.getElementById('dismiss').click());
    }).observe(document.body, { attributes: true, attributeFilter: ['data-call'] });
  });
})();"""


class OnALoop:
    """An event loop on a thread, for what continues while this program waits."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, body, seconds=30):
        return asyncio.run_coroutine_threadsafe(body, self.loop).result(seconds)

    def start(self, body):
        return asyncio.run_coroutine_threadsafe(body, self.loop)


@contextlib.contextmanager
def device(handset, exchange, behaviour):
    running = Device(handset, exchange, behaviour=behaviour)
    try:
        yield "echo"
    finally:
        running.stop()


@contextlib.contextmanager
def wired(handset, exchange, loop, rate=None):
    """A device whose bot echoes over Twilio's wire, or AudioSocket at a rate."""
    server = botserver.Server(botserver.Cheap(), rate)
    loop.run(server.start())
    keys = ", ".join(row.strip() for row in server.yaml.splitlines())
    try:
        with device(handset, exchange, f"source: bot, bot: {{ {keys} }}") as user:
            yield user
    finally:
        loop.loop.call_soon_threadsafe(server.stop)


class Echo(aiortc.MediaStreamTrack):
    """Received sound, as it comes in."""

    kind = "audio"

    def __init__(self, source):
        super().__init__()
        self.source = source

    async def recv(self):
        return await self.source.recv()


async def echo_calls(port, user, is_there):
    """A user of the demonstration, who answers call after call with aiortc, and echoes."""
    async with signed_in(port, user) as line:
        is_there.set()
        peer = None
        try:
            while True:
                event = await line.events.get()
                data = event["data"]
                if event["type"] == "inviteReceived":
                    peer = aiortc.RTCPeerConnection()
                    peer.on("track", lambda track: peer.addTrack(Echo(track)))
                    await peer.setRemoteDescription(aiortc.RTCSessionDescription(**data["data"]["offer"]))
                    await peer.setLocalDescription(await peer.createAnswer())
                    answer = {"type": "answer", "sdp": peer.localDescription.sdp}
                    await line.ask("invite.accept", invite=data["invite"], data={"answer": answer})
                elif event["type"] == "callSignal" and data["type"] == "candidate":
                    await add_candidate(peer, data["data"])
                elif event["type"] == "callEnded":
                    await peer.close()
        finally:
            if peer:
                await peer.close()


@contextlib.contextmanager
def python_bot(exchange, loop):
    is_there = threading.Event()
    calls = loop.start(echo_calls(exchange.port, "bob", is_there))
    if not is_there.wait(20):
        raise TimeoutError(f"bob is not there within 20 s: {calls.exception() if calls.done() else ''}")
    try:
        yield "bob"
    finally:
        calls.cancel()


@contextlib.contextmanager
def browser(exchange, versions):
    phone = Phone(exchange.url, script=PAGE)
    try:
        versions["Chromium"] = phone.driver.capabilities["browserVersion"]
        phone.sign_in("alice")
        yield "alice"
    finally:
        phone.close()


def call(handset, exchange, user):
    """The round trip in ms; None if it could not be measured."""
    done = subprocess.run(
        [
            handset,
            "loopback",
            "call",
            f"{user}@localhost",
            "--server",
            f"http://127.0.0.1:{exchange.port}",
            "--json",
            "-",
            "--seconds",
            "5",
            "--rounds",
            "1",
            "--tones",
            "997",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if not done.stdout.strip():
        raise RuntimeError(f"the call to {user} has no report: {done.stderr[-1000:]}")
    report = json.loads(done.stdout)
    return report["timing"]["delay_ms"]["mean"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("handset")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    loop, versions = OnALoop(), {"aiortc": importlib.metadata.version("aiortc")}
    exchange = Exchange(options.handset)
    bots = {
        "source: echo": lambda: device(options.handset, exchange, "source: echo"),
        "Twilio's wire": lambda: wired(options.handset, exchange, loop),
        "AudioSocket at 48 kHz": lambda: wired(options.handset, exchange, loop, 48_000),
        "aiortc": lambda: python_bot(exchange, loop),
        "Chromium": lambda: browser(exchange, versions),
    }
    try:
        delays = {name: [] for name in bots}
        for _ in range(options.rounds):
            for name, bot in bots.items():
                with bot() as user:
                    # A process answers its second call, too.
                    delays[name] += [call(options.handset, exchange, user) for _ in range(2)]
                    print(f"beside: {name}: {delays[name][-2:]} ms", file=sys.stderr, flush=True)
        for name, found in delays.items():
            known = [delay for delay in found if delay is not None]
            print(
                json.dumps(
                    {
                        "kind": "beside",
                        "by": name,
                        "version": versions.get(name),
                        "calls": len(found),
                        "measured": len(known),
                        "delay_ms": round(statistics.median(known), 1) if known else None,
                        "least_ms": min(known, default=None),
                        "most_ms": max(known, default=None),
                    }
                )
            )
    finally:
        exchange.stop()


main()
