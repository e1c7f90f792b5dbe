"""What an attacker can make the exchange hold: in a control group of 256 MB, and by not reading what it asked for."""

import asyncio
import contextlib
import os
import pathlib
import secrets
import socket
import sqlite3
import time

from client import Lost, Refused
from conformance import waits
from exchange import Exchange, invite

LIMIT = 256 << 20
GROUPS = pathlib.Path("/sys/fs/cgroup/memory")  # Version 1.
SECONDS = float(os.environ.get("HANDSET_MEMORY_SECONDS", 15))


def resident(exchange):
    """Bytes that the process holds, and the most that it ever held."""
    status = pathlib.Path(f"/proc/{exchange.process.pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return [int(fields[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM")]


@contextlib.asynccontextmanager
async def confined(stage, **settings):
    """An exchange in a control group of its own, if this machine lets us make one; else without."""
    group = GROUPS / f"handset-{secrets.token_hex(4)}"
    exchange = Exchange(stage.handset, "confined", database="exchange.sqlite", database_durability="normal", **settings)
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
        start = exchange.path / "confined"
        start.write_text(f'#!/bin/sh\necho $$ > {group}/cgroup.procs && exec "{stage.handset}" "$@"\n')
        start.chmod(0o755)
        exchange.handset = str(start)
    except OSError as error:
        stage.findings.append(f"no control group of {LIMIT} bytes, so that only resident memory was looked at: {error}")
        group = None
    try:
        yield await exchange.start(), group
    finally:
        await exchange.stop()
        exchange.folder.cleanup()
        if group and group.exists():
            group.rmdir()


async def attack(exchange, device, victims, until):
    """Sends and cancels the largest invites, over and over, as fast as they are answered."""
    data, counts = "x" * 58_000, [0, 0]
    while time.monotonic() < until:
        for victim in victims:
            try:
                number = await invite(device, victim, ttl=0, data=data)
                counts[0] += 1
                if counts[0] % 3:
                    await device.ask("invite.cancel", invite=number, data=data)
            except Refused as error:
                assert error.name == "tooManyRequests", error.name
                counts[1] += 1
                await asyncio.sleep(0.01)
            except Lost:
                return counts
    return counts


async def ignore(device, room):
    """Joins a room and reads no more of what is said there."""
    await device.ask("room.join", room=room)
    device.line.socket.transport.pause_reading()


async def talk(device, room, until):
    """Says as much in a room as it may."""
    with contextlib.suppress(Lost):
        while time.monotonic() < until:
            with contextlib.suppress(Refused):
                await device.ask("room.signal", room=room, type="t", data="x" * 8_000)


@waits
async def test_small_machine(stage):
    """INV-1, INV-16: In a control group of 256 MB, 16 accounts that send the largest invites, and 40 clients in a room that
    do not read, bring nobody down: a pair that has nothing to do with them calls each other all the while
    """
    async with confined(stage) as (exchange, group):
        attackers = await exchange.party(*[1] * 16)
        victims = await exchange.party(*[1] * 8)
        alice, bob = await exchange.party(1, 1)
        deaf = await exchange.party(*[1] * 40)
        for device in deaf:
            await ignore(device, "crowd")
        talkers = await exchange.party(1, 1)
        for device in talkers:
            await device.ask("room.join", room="crowd")
        until = time.monotonic() + SECONDS
        work = [asyncio.create_task(attack(exchange, device, victims, until)) for device in attackers]
        work += [asyncio.create_task(talk(device, "crowd", until)) for device in talkers]
        calls, slowest = 0, 0
        while time.monotonic() < until:
            begun = time.monotonic()
            number = await invite(alice, bob)
            await bob.hear("inviteReceived", invite=number)
            await bob.ask("invite.accept", invite=number)
            await alice.hear("inviteAccepted", invite=number)
            await alice.ask("call.end", invite=number, reason="completed", duration_ms=1)
            calls, slowest = calls + 1, max(slowest, time.monotonic() - begun)
            assert exchange.process.poll() is None, exchange.log.read_text()[-2000:]
            await asyncio.sleep(0.1)
        counts = [one for one in await asyncio.gather(*work) if one]
        sent, refused = (sum(column) for column in zip(*counts))
        _, most = resident(exchange)
        stage.findings.append(
            f"In 256 MB, {SECONDS:.0f} s: {sent} large invites, {refused} refused, at most {most >> 20} MB resident; "
            f"{calls} calls of others, the slowest took {slowest:.2f} s"
        )
        assert sent > 20 and calls > 1
        assert most < LIMIT, most
        if group:
            # Pages of files are given up before anybody is killed.
            assert "oom_kill 0" in (group / "memory.oom_control").read_text()
        await exchange.kill()
        await exchange.start()
        back, _ = resident(exchange)
        assert back < LIMIT * 3 // 4, f"{back} after a restart"
        with contextlib.closing(sqlite3.connect(exchange.path / "exchange.sqlite")) as database:
            assert database.execute("pragma integrity_check").fetchone() == ("ok",)


@waits
async def test_answers_nobody_reads(stage):
    """AUTH-1: Whoever asks for page after page, and reads none of them, makes the exchange hold one answer at a time, and
    loses the connection; whoever reads late gets all that it asked for at once
    """
    async with confined(stage, web_phone=True) as (exchange, _):
        before, _ = resident(exchange)
        request = b"GET /phone/main.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
        sockets = []
        for _ in range(30):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", exchange.port))
            client.settimeout(0.2)
            with contextlib.suppress(OSError):
                client.sendall(request * 3000)
            sockets.append(client)
        await asyncio.sleep(4)
        _, most = resident(exchange)
        assert most - before < 60 << 20, f"{(most - before) >> 20} MB for 30 clients that read nothing"
        for client in sockets:
            client.close()
        # Whoever reads, however late, gets all of what it asked for at once.
        client = socket.create_connection(("127.0.0.1", exchange.port))
        client.settimeout(5)
        client.sendall(request * 200)
        await asyncio.sleep(1)
        answers = b""
        while (length := answers.find(b"HTTP/1.1 200", 1)) < 0 or len(answers) < 200 * length:
            answers += await asyncio.to_thread(client.recv, 1 << 16)
        assert len(answers) == 200 * length and answers.count(b"HTTP/1.1 200") == 200, "each whole, and in order"
        client.close()
