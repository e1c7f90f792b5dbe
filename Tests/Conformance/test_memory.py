"""The memory that an attacker can make the exchange use: in a control group of 256 MB, and by not reading what it asked for."""

import asyncio
import contextlib
import os
import pathlib
import secrets
import socket
import sqlite3
import ssl
import struct
import subprocess
import time

from client import Lost, Refused
from conformance import waits
from exchange import Exchange, invite

LIMIT = 256 << 20
GROUPS = pathlib.Path("/sys/fs/cgroup/memory")  # Version 1.
SECONDS = float(os.environ.get("HANDSET_MEMORY_SECONDS", 15))


def resident(exchange):
    """Resident bytes of the process, now and at most."""
    status = pathlib.Path(f"/proc/{exchange.process.pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return [int(fields[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM")]


@contextlib.asynccontextmanager
async def confined(stage, **settings):
    """An exchange in a control group of its own, if this machine allows one; else without."""
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
    """Joins a room and reads nothing any more."""
    await device.ask("room.join", room=room)
    device.line.socket.transport.pause_reading()


async def talk(device, room, until):
    """Sends as many signals to a room as it may."""
    with contextlib.suppress(Lost):
        while time.monotonic() < until:
            with contextlib.suppress(Refused):
                await device.ask("room.signal", room=room, type="t", data="x" * 8_000)


@waits
async def test_small_machine(stage):
    """INV-1, INV-16: In a control group of 256 MB, 16 accounts that send the largest invites, and 40 clients in a room that
    do not read, take down no other client: a pair that has nothing to do with them calls each other throughout
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
        calls, slowest = 0, 0.0
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
            # The kernel gives up pages of files before it kills a process.
            assert "oom_kill 0" in (group / "memory.oom_control").read_text()
        await exchange.kill()
        await exchange.start()
        back, _ = resident(exchange)
        assert back < LIMIT * 3 // 4, f"{back} after a restart"
        with contextlib.closing(sqlite3.connect(exchange.path / "exchange.sqlite")) as database:
            assert database.execute("pragma integrity_check").fetchone() == ("ok",)


@waits
async def test_answers_nobody_reads(stage):
    """AUTH-1: A client that asks for page after page, and reads none of them, makes the exchange hold one answer at a time, and
    loses the connection; one that reads late gets all that it asked for at once
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
        # A client that reads, however late, gets all that it asked for at once.
        client = socket.create_connection(("127.0.0.1", exchange.port))
        client.settimeout(5)
        client.sendall(request * 200)
        await asyncio.sleep(1)
        answers = b""
        while (length := answers.find(b"HTTP/1.1 200", 1)) < 0 or len(answers) < 200 * length:
            answers += await asyncio.to_thread(client.recv, 1 << 16)
        assert len(answers) == 200 * length and answers.count(b"HTTP/1.1 200") == 200, "each whole, and in order"
        client.close()


HEADS = 600


@waits
async def test_half_heads(stage):
    """AUTH-1: Clients that each send half a head of many lines take up no more than their connections and `login_memory_mib`"""
    settings = {"login_memory_mib": 4, "connections": HEADS + 100, "connections_from_this_machine": HEADS + 100}
    exchange = await Exchange(stage.handset, "heads", **settings).start()
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + (b"X-A: " + b"y" * 90 + b"\r\n") * 158

    def begin():
        client = socket.create_connection(("127.0.0.1", exchange.port))
        client.sendall(head)
        return client

    # The first connections bring code and tables into memory.
    for client in [await asyncio.to_thread(begin) for _ in range(20)]:
        client.close()
    await asyncio.sleep(1)
    before, _ = resident(exchange)
    clients = await asyncio.to_thread(lambda: [begin() for _ in range(HEADS)])
    await asyncio.sleep(0.5)
    _, most = resident(exchange)
    for client in clients:
        client.close()
    await exchange.stop()
    exchange.folder.cleanup()
    stage.findings.append(f"{HEADS} clients with half a head: {(most - before) >> 10} KiB")
    assert most - before < (4 << 20) + HEADS * (10 << 10), f"{(most - before) >> 10} KiB"


def field(data):
    """With its length of two bytes before it."""
    return struct.pack(">H", len(data)) + data


def worst_hello(size):
    """A hello of TLS 1.3 that names one cipher until it has `size` bytes: OpenSSL keeps a pointer for each."""
    share = struct.pack(">HH", 29, 32) + b"\x09" + b"k" * 31
    extensions = [(10, field(b"\x00\x1d")), (13, field(b"\x08\x04\x04\x01")), (43, b"\x02\x03\x04"), (51, field(share))]
    rest = b"\x01\x00" + field(b"".join(struct.pack(">H", kind) + field(body) for kind, body in extensions))
    head = b"\x03\x03" + b"r" * 32 + b"\x20" + b"s" * 32
    ciphers = b"\x13\x01" * ((size - len(head) - len(rest) - 2) // 2)
    body = head + field(ciphers) + rest
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + field(message)


CUT_RECORD = b"\x17\x03\x03\x40\x00" + b"x" * 16_000
CONNECTION = 96 << 10  # ConnectionBounds.encryptedBytes
HELLO = 4_096  # HelloLimit.bytes
COUNT = 150
OWN = 128 << 10  # What the process may take for itself meanwhile: a connection that halts takes up 95 KiB of its 96.


@waits
async def test_tls_connections(stage):
    """AUTH-1: A connection over TLS takes up no more than the exchange counts for it, also from a client that attacks: with a record
    that is not complete, and half-way through a handshake that began with the worst hello
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def halting(port):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(worst_hello(HELLO))
        assert client.recv(1)[0] == 22, "the server's part of the handshake"
        client.sendall(CUT_RECORD)
        return client

    def cutting(port):
        client = socket.create_connection(("127.0.0.1", port))
        client = context.wrap_socket(client)
        client = socket.socket(fileno=client.detach())
        client.sendall(CUT_RECORD)
        return client

    settings = {"connections_from_this_machine": COUNT * 2, "certificate": {"chain_file": "chain.pem", "key_file": "key.pem"}}
    for name, begin in {"halting": halting, "cutting": cutting}.items():
        exchange = Exchange(stage.handset, name, **settings)
        request = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out chain.pem -days 2 -subj /CN=localhost"
        subprocess.run(request.split(), cwd=exchange.path, capture_output=True, check=True)
        await exchange.start()
        descriptors = pathlib.Path(f"/proc/{exchange.process.pid}/fd")
        # The first connections bring code and tables into memory.
        for _ in range(20):
            (await asyncio.to_thread(begin, exchange.port)).close()
        await asyncio.sleep(1)
        (before, _), few = resident(exchange), len(list(descriptors.iterdir()))
        clients = await asyncio.to_thread(lambda: [begin(exchange.port) for _ in range(COUNT)])
        await asyncio.sleep(0.5)
        (after, _), many = resident(exchange), len(list(descriptors.iterdir()))
        for client in clients:
            client.close()
        await exchange.stop()
        exchange.folder.cleanup()
        each = (after - before - OWN) // COUNT
        # The exchange gives each ten seconds.
        is_slow = many - few < COUNT
        slow = ", on a machine that is too slow" if is_slow else ""
        stage.findings.append(f"A connection over TLS that is {name}: {each >> 10} KiB{slow}")
        assert each < CONNECTION and (is_slow or each > 20 << 10), f"{each} bytes for each connection that is {name}"
