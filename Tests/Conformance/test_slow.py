"""A client that stops reading while events are sent to it delays only itself."""

import asyncio
import secrets
import time

from client import PATIENCE
from exchange import call

SIGNAL = "x" * 8000
MOST = 4000  # Signals: more than the kernel's buffers and the 1 MiB that may wait for a client.


async def test_socket_that_stops_reading(exchange):
    """SIG-1, CONN-5: A client that reads nothing is dropped once 1 MiB waits for it; others receive everything without delay"""
    alice, bob, slow = await exchange.party(1, 1, 1)
    room = f"room-{secrets.token_hex(4)}"
    for device in slow, alice, bob:
        await device.ask("room.join", room=room)
    transport = slow.line.socket.transport
    transport.pause_reading()
    sent, worst = 0, 0.0
    while not bob.heard("streamDropped", connection=slow.connection):
        assert sent < MOST, "no client was notified that the one that does not read is gone"
        await asyncio.gather(
            *(alice.ask("room.signal", room=room, type="t", data=[sent, SIGNAL], to=slow.connection) for _ in range(49)),
            alice.ask("room.signal", room=room, type="t", data=[sent, SIGNAL]),
        )
        sent += 50
        begun = time.monotonic()
        await bob.ask("ping")
        worst = max(worst, time.monotonic() - begun)
    assert worst < PATIENCE / 2, f"a ping of another client took {worst:.1f} s"
    await bob.ask("ping")
    assert [signal["data"][0] for signal in bob.heard("roomSignal")] == list(range(0, sent, 50))
    await alice.hear("callEnded", invite=await hang_up(alice, bob))
    transport.resume_reading()
    assert await slow.line.closing() == 1006, "there is no room for a close frame"
    heard = [signal["data"][0] for signal in slow.heard("roomSignal")]
    assert heard == sorted(heard) and len(heard) < sent
    # More is missed than is kept: it must start a new session, and is answered so.
    await slow.resume()
    assert not slow.answer["resumed"]


async def hang_up(alice, bob):
    """A call that is made and ended meanwhile; its invite."""
    number = await call(alice, bob)
    await bob.ask("call.end", invite=number, reason="completed", duration_ms=1)
    return number
