#!/usr/bin/env python3
"""Pion, the WebRTC of many servers in Go, calls a device, and streams to it over WHIP.

usage: pion_test.py HANDSET PION_PEER

Exits with 0 if every check passed. PION_PEER is built from pion_peer.go; needs websockets and selenium (which phones.py
imports). scripts/interop installs both.
"""

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
import uuid

from devices import Device
from line import fetch, signed_in
from phones import Exchange, Failed

# Pion's own tick is 200 ms; a check that prompts it to nominate spares the wait for it.
SOONEST_MS = 100


class Pion:
    """One pion_peer process."""

    def __init__(self, command, *options):
        self.process = subprocess.Popen(
            [command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.offer = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed("pion_peer: " + self.process.stderr.read())
        return json.loads(line)

    def tell(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def stop(self):
        self.process.kill()
        self.process.communicate()


async def call(port, pion, callee):
    """Calls with Pion's offer. Returns the outcome."""
    async with signed_in(port, "bob") as line:
        invite = (await line.ask("invite.send", to=callee, data={"offer": pion.offer}, ttl=20, idempotency_key=uuid.uuid4().hex))["invite"]
        outcome = asyncio.create_task(asyncio.to_thread(pion.read))
        while not outcome.done():
            try:
                event = await asyncio.wait_for(line.events.get(), 0.2)
            except TimeoutError:
                continue
            data = event["data"]
            if event["type"] == "inviteAccepted":
                await asyncio.to_thread(pion.tell, data["data"]["answer"])
            elif event["type"] == "callSignal" and data["type"] == "candidate":
                await asyncio.to_thread(pion.tell, data["data"])
            elif event["type"] in ("inviteRejected", "callEnded"):
                pion.stop()
                raise Failed(f"{event['type']}: {data}")
        await line.ask("call.end", invite=invite, reason="completed", duration_ms=1000)
        return outcome.result()


def calls(exchange, command):
    """Pion offers sound and then video, its key on P-256 or P-384: it is answered, and hears the device at once."""
    connected = []
    for options in [(), ("-curve", "P-384"), (), ()]:
        pion = Pion(command, *options)
        try:
            result = asyncio.run(call(exchange.port, pion, "echo"))
        finally:
            pion.stop()
        if result["received"] < 50:
            raise Failed(f"of the device's packets {result['received']} came back ({options})")
        connected.append(result["connected_ms"])
    if min(connected) > SOONEST_MS:
        raise Failed(f"ICE and DTLS took {connected} ms from the answer on")
    return f"{min(connected):.0f} to {max(connected):.0f} ms from the answer to ICE and DTLS"


def streams(exchange, command):
    """Pion streams over WHIP, with sound and then video in its offer."""
    base = f"http://127.0.0.1:{exchange.port}"
    token = fetch(f"{base}/v1.1/login", "Basic ZGVtbzpkZW1v", {"type": "Cima", "media_token": "alice-demo-token"})
    headers = {"Authorization": "Bearer " + token["token"], "Content-Type": "application/sdp"}
    pion = Pion(command, "-one-way")
    try:
        request = urllib.request.Request(f"{base}/whip/echo", pion.offer["sdp"].encode(), headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            place, text = answer.headers["Location"], answer.read().decode()
        pion.tell({"type": "answer", "sdp": text})
        result = pion.read()
        session = place if place.startswith("http") else base + place
        urllib.request.urlopen(urllib.request.Request(session, headers=headers, method="DELETE"), timeout=10).close()
    finally:
        pion.stop()
    return f"connected {result['connected_ms']:.0f} ms after the answer"


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    handset, command = sys.argv[1:]
    exchange = Exchange(handset)
    device, failures = Device(handset, exchange), 0
    try:
        for check in (calls, streams):
            start = time.monotonic()
            try:
                figures = check(exchange, command)
                print(f"ok     {time.monotonic() - start:5.1f} s  {check.__doc__}\n       {figures}", flush=True)
            except (Failed, OSError, RuntimeError) as error:
                failures += 1
                print(f"FAILED {check.__doc__}\n       {error}", flush=True)
    finally:
        device.stop()
        exchange.stop()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
