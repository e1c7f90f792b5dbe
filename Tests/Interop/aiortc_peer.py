"""Calls a user of an exchange with aiortc, which is no browser, or is called."""

from __future__ import annotations

import asyncio
import contextlib
import fractions
import threading
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import aiortc
import av
import numpy
from aiortc.sdp import candidate_from_sdp
from line import signed_in

if TYPE_CHECKING:
    from line import Line

RATE = 48_000


class Voice(aiortc.MediaStreamTrack):
    """Samples as a track, over and over, 20 ms at a time."""

    kind = "audio"

    def __init__(self, samples: numpy.ndarray) -> None:
        super().__init__()
        self.samples = (numpy.clip(samples, -1, 1) * 32_767).astype(numpy.int16)
        self.sent = 0
        self.start: float | None = None

    async def recv(self) -> av.AudioFrame:
        self.start = self.start or time.monotonic()
        await asyncio.sleep(max(0, self.start + self.sent / RATE - time.monotonic()))
        part = self.samples.take(range(self.sent, self.sent + 960), mode="wrap")
        frame = av.AudioFrame.from_ndarray(part.reshape(1, -1), format="s16", layout="mono")
        frame.pts, frame.sample_rate, frame.time_base = self.sent, RATE, fractions.Fraction(1, RATE)
        self.sent += 960
        return frame


async def _call(port: int, user: str, callee: str, samples: numpy.ndarray, seconds: float) -> tuple[float, numpy.ndarray]:
    async with signed_in(port, user) as line:
        return await _talk(line, callee, samples, seconds)


async def _talk(line: Line, callee: str, samples: numpy.ndarray, seconds: float) -> tuple[float, numpy.ndarray]:
    peer = aiortc.RTCPeerConnection()
    heard: list[numpy.ndarray] = []
    tracks = asyncio.Queue()
    peer.addTrack(Voice(samples))
    peer.on("track", tracks.put_nowait)
    await peer.setLocalDescription(await peer.createOffer())  # aiortc has no trickle ICE: its candidates are in here.
    started = time.monotonic()
    offer = {"type": "offer", "sdp": peer.localDescription.sdp}
    invite = (await line.ask("invite.send", to=callee, data={"offer": offer}, ttl=20, idempotency_key=uuid.uuid4().hex))["invite"]
    listening = asyncio.create_task(_listen(line, peer, invite))
    try:
        track = await asyncio.wait_for(tracks.get(), 20)
        frame = await asyncio.wait_for(track.recv(), 20)
        set_up = time.monotonic() - started
        resampler = av.AudioResampler("s16", "mono", RATE)
        while sum(part.size for part in heard) < seconds * RATE:
            heard += [part.to_ndarray().reshape(-1) for part in resampler.resample(frame)]
            frame = await asyncio.wait_for(track.recv(), 5)
        await line.ask("call.end", invite=invite, reason="completed", duration_ms=int(seconds * 1000))
    finally:
        listening.cancel()
        await peer.close()
    return set_up, numpy.concatenate(heard).astype(numpy.float32) / 32_768


async def _listen(line: Line, peer: aiortc.RTCPeerConnection, invite: str) -> None:
    while True:
        event = await line.events.get()
        data = event["data"]
        if data.get("invite") != invite:
            continue
        if event["type"] == "inviteAccepted":
            await peer.setRemoteDescription(aiortc.RTCSessionDescription(**data["data"]["answer"]))
        elif event["type"] == "callSignal" and data["type"] == "candidate":
            await add_candidate(peer, data["data"])


async def add_candidate(peer: aiortc.RTCPeerConnection, data: Any) -> None:
    text = data["candidate"]
    candidate = candidate_from_sdp(text.removeprefix("candidate:")) if text else None
    if candidate:
        candidate.sdpMid, candidate.sdpMLineIndex = data["sdpMid"], data["sdpMLineIndex"]
    await peer.addIceCandidate(candidate)


def call(port: int, user: str, callee: str, samples: numpy.ndarray, seconds: float) -> tuple[float, numpy.ndarray]:
    """Calls, sends `samples` over and over, and listens for `seconds`.

    Returns the seconds from the invite to the first sound, and the samples heard.
    """
    return asyncio.run(asyncio.wait_for(_call(port, user, callee, samples, seconds), seconds + 60))


class Answering:
    """A user of the demonstration who answers one call with aiortc, on a thread of its own."""

    def __init__(self, port: int, user: str, samples: numpy.ndarray) -> None:
        self.samples, self.parts = samples, []
        self.end: str | None = None
        self.error: Exception | None = None
        self.isThere = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(port, user), daemon=True)
        self.thread.start()

    def _run(self, port: int, user: str) -> None:
        try:
            asyncio.run(asyncio.wait_for(self._answer(port, user), 60))
        except Exception as error:  # Raised where the answer is awaited.
            self.error = error
            self.isThere.set()

    async def _answer(self, port: int, user: str) -> None:
        async with signed_in(port, user) as line:
            self.isThere.set()
            peer, tasks = None, []
            try:
                while self.end is None:
                    event = await line.events.get()
                    data = event["data"]
                    if event["type"] == "inviteReceived":
                        peer = aiortc.RTCPeerConnection()
                        peer.addTrack(Voice(self.samples))
                        # Kept, because the loop has only weak references to tasks.
                        peer.on("track", lambda track: tasks.append(asyncio.create_task(self._listen(track))))
                        await peer.setRemoteDescription(aiortc.RTCSessionDescription(**data["data"]["offer"]))
                        await peer.setLocalDescription(await peer.createAnswer())
                        answer = {"type": "answer", "sdp": peer.localDescription.sdp}
                        await line.ask("invite.accept", invite=data["invite"], data={"answer": answer})
                    elif event["type"] == "callSignal" and data["type"] == "candidate":
                        await add_candidate(peer, data["data"])
                    elif event["type"] in ("callEnded", "inviteEnded", "inviteCancelled"):
                        self.end = data.get("reason", self.end)
            finally:
                for task in tasks:
                    task.cancel()
                if peer:
                    await peer.close()

    async def _listen(self, track: aiortc.MediaStreamTrack) -> None:
        resampler = av.AudioResampler("s16", "mono", RATE)
        with contextlib.suppress(aiortc.mediastreams.MediaStreamError):
            while True:
                for part in resampler.resample(await track.recv()):
                    self.parts.append(part.to_ndarray().reshape(-1))

    def heard(self) -> numpy.ndarray:
        """The samples that came in."""
        return numpy.concatenate(self.parts).astype(numpy.float32) / 32_768


@contextlib.contextmanager
def answering(port: int, user: str, samples: numpy.ndarray) -> Iterator[Answering]:
    """In this context `user` is online, answers one call, and sends `samples` over and over."""
    peer = Answering(port, user, samples)
    try:
        if not peer.isThere.wait(20):
            raise TimeoutError(f"{user} is not there within 20 s")
        yield peer
    finally:
        peer.thread.join(20)
        if peer.error:
            raise peer.error
