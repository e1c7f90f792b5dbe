"""An agent makes calls with `handset mcp`, through the client of PyPI's package `mcp`.

    calls.py HANDSET

An exchange, the agent's device and a device that echoes run in a folder of their own, on loopback. The agent's voice makes tones
(tone_voice.py), and its recogniser measures them (tone_recogniser.py), so what it says comes back as what it hears. Ends with 1 at the
first thing that is not as it should be.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

HERE = pathlib.Path(__file__).resolve().parent
TONE, RANGE = 700, range(690, 711)
BOB = "bob@localhost"
SPEECH = "/usr/share/sounds/alsa/Front_Center.wav"


def check(holds: object, what: str) -> None:
    if not holds:
        sys.exit(f"calls.py: {what}")


def wait(what: str, holds: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < end, f"waited {seconds} s: {what}")
        time.sleep(0.02)


class Process:
    """A `handset` with its log in a file."""

    def __init__(self, handset: str, folder: pathlib.Path, name: str, *arguments: str) -> None:
        self.log = folder / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([handset, *arguments, "--log-format", "json"], cwd=folder, stderr=log)

    def says(self, word: str) -> bool:
        return word in self.log.read_text()

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(20)


class Stage:
    """The exchange, the devices, and the agent's door."""

    def __init__(self, handset: str, folder: pathlib.Path) -> None:
        self.handset, self.folder = handset, folder
        self.exchange = Process(handset, folder, "serve", "serve", "--listen", "127.0.0.1:0")
        wait("the exchange listens", lambda: self.exchange.says('"Listening"'))
        found = re.search(r'"url":"([^"]+)"', self.exchange.log.read_text())
        self.server = found.group(1) if found else ""
        self.configure("alice", "behaviour: { source: silence }\ndevice: { call_records: calls.jsonl }\n" + self.agent())
        self.configure("bob", "behaviour: { source: echo }\nanswer: { mode: ring }\n")
        self.bob = self.run("bob")
        self.alice = self.run("alice")

    def agent(self) -> str:
        say, hear = (json.dumps([sys.executable, str(HERE / name)]) for name in ("tone_voice.py", "tone_recogniser.py"))
        return f"mcp: {{ say: {say}, hear: {hear}, folder: sound, callees: [{BOB}] }}\n"

    def configure(self, user: str, more: str) -> None:
        token = self.folder / f"{user}.token"
        token.write_text(f"{user}-demo-token")
        token.chmod(0o600)
        text = f"account: {{ server: {self.server}, media_token_file: {user}.token }}\ncontrol: {{ socket: {user}.sock }}\n{more}"
        (self.folder / f"{user}.yaml").write_text(text)

    def run(self, user: str) -> Process:
        device = Process(self.handset, self.folder, user, "run", "--config", f"{user}.yaml")
        wait(f"{user} is ready", lambda: device.says('"Ready"'))
        return device

    def control(self, *words: str) -> dict[str, Any]:
        """Has Bob's device do something."""
        command = [self.handset, "control", "--socket", "bob.sock", "--json", *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        answer: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
        return answer

    def bob_has(self, state: str) -> bool:
        return any(call["state"] == state for call in self.control("status").get("status", {}).get("calls", []))

    @contextlib.asynccontextmanager
    async def door(self, mode: str = "auto", *more: str) -> AsyncIterator[Client]:
        words = ["mcp", *(more or ("--config", "alice.yaml"))]
        server = StdioServerParameters(command=self.handset, args=words, cwd=self.folder)
        async with Client(stdio_client(server), mode=mode) as client:
            yield client

    def close(self) -> None:
        for process in (self.alice, self.bob, self.exchange):
            if process.process.poll() is None:
                process.end()


@contextlib.contextmanager
def staged(handset: str) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(handset, pathlib.Path(folder))
        try:
            yield stage
        finally:
            stage.close()


async def use(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """Calls a tool, which must succeed."""
    result = await client.call_tool(tool, arguments)
    check(not result.is_error, f"{tool}: {result.content}")
    structured: dict[str, Any] = result.structured_content
    return structured


async def refused(client: Client, tool: str, **arguments: object) -> str:
    """Calls a tool, which must fail, and returns what it says."""
    result = await client.call_tool(tool, arguments)
    check(result.is_error, f"{tool} did not fail: {result.content}")
    return "".join(part.text for part in result.content if part.type == "text")


async def establish(stage: Stage, client: Client) -> int:
    """Places a call, which Bob answers."""

    async def answer() -> None:
        while not stage.control("answer").get("ok"):
            await asyncio.sleep(0.05)

    answering = asyncio.create_task(answer())
    placed = await use(client, "place_call", to=BOB, timeout=20)
    await answering
    check(placed["state"] == "talking", f"placed: {placed}")
    return int(placed["call"])


async def talk(stage: Stage, client: Client) -> None:
    """A call is placed, spoken to, heard, and ended."""
    call = await establish(stage, client)
    listed = await use(client, "list_calls")
    check(listed["connection"] == "connected" and listed["calls"][0]["peer"] == BOB, f"listed: {listed}")
    began = time.monotonic()
    check(await use(client, "say", call=call, text=f"A tone of {TONE} hertz, $(touch shell)") == {"heard": "all"}, "said")
    check(time.monotonic() - began > 1.4, "say returned before the text was heard")
    heard = await use(client, "hear", call=call, timeout=3)
    found = re.fullmatch(r"(\d+) Hz for (\d\.\d) s", heard["text"])
    check(found and int(found.group(1)) in RANGE and 0.2 < float(found.group(2)) < 1.7, f"heard: {heard}")
    check(not (stage.folder / "shell").exists(), "a shell has read the text")
    await use(client, "press_keys", call=call, keys="12#")
    wait(
        "Bob hears the keys",
        lambda: stage.bob.log.read_text().count('"The peer pressed a key"') % 3 == 0 and stage.bob.says('"The peer pressed a key"'),
    )
    await use(client, "play_file", call=call, file=SPEECH)
    heard = await use(client, "hear", call=call, timeout=20)
    check(heard["ended_by"] == "pause" and heard["text"], f"heard speech: {heard}")
    heard = await use(client, "hear", call=call, timeout=1)
    check(heard["ended_by"] == "timeout" and heard["text"] == "", f"heard silence: {heard}")
    ended = await use(client, "hang_up", call=call)
    check(ended["reason"] == "completed" and ended["ended_by"] == "local", f"ended: {ended}")
    events = await use(client, "wait_for_event", call=call, events=["established", "ended"])
    check([event["event"] for event in events["events"]] == ["established", "ended"], f"events: {events}")
    explained = await use(client, "explain_call", call=call)
    check(explained["peer"] == BOB and explained["reason"] == "completed", f"explained: {explained}")
    print("a call was placed, spoken to, heard and ended")


async def refusals(client: Client) -> None:
    """What cannot be is said."""
    check("call 99" in await refused(client, "say", call=99, text="hello"), "say without a call")
    check("callees" in await refused(client, "place_call", to="eve@localhost"), "callees")
    check("to" in await refused(client, "place_call"), "no callee")
    check("timeout" in await refused(client, "place_call", to=BOB, timeout="soon"), "a wrong timeout")
    try:
        await client.call_tool("dance", {})
        check(False, "an unknown tool was called")
    except MCPError as error:
        check(error.error.code == -32602, f"unknown tool: {error}")
    print("wrong calls of tools were refused")


async def cancelled(stage: Stage, client: Client) -> None:
    """A call that is cancelled while it rings is ended."""
    with anyio.move_on_after(1.5) as scope:
        await client.call_tool("place_call", {"to": BOB})
    check(scope.cancelled_caught, "the call was not cancelled")
    await asyncio.to_thread(wait, "Bob's telephone stops ringing", lambda: not stage.control("status")["status"]["calls"])
    listed = await use(client, "list_calls")
    check(listed["calls"] == [] or listed["calls"][0]["state"] == "ending", f"after a cancel: {listed}")
    print("a cancelled call ended")


async def losses(stage: Stage) -> None:
    """The device ends in mid-call, and comes back; and the client goes in mid-call."""
    async with stage.door("legacy") as client:
        call = await establish(stage, client)
        hearing = asyncio.create_task(refused(client, "hear", call=call, timeout=60))
        waiting = asyncio.create_task(refused(client, "wait_for_event", events=["incoming"]))
        await asyncio.sleep(0.5)
        await asyncio.to_thread(stage.alice.end, signal.SIGKILL)
        check("has ended" in await waiting, "wait without a device")
        check("has ended" in await hearing, "hear without a device")
        check("control socket" in await refused(client, "list_calls"), "list without a device")
        stage.alice = await asyncio.to_thread(stage.run, "alice")
        check((await use(client, "list_calls"))["connection"] == "connected", "the device is back")
        await asyncio.to_thread(wait, "Bob's call has ended", lambda: not stage.control("status")["status"]["calls"], 40)
        await establish(stage, client)
    await asyncio.to_thread(wait, "Bob's call ends with the client", lambda: not stage.control("status")["status"]["calls"], 10)
    check(list((stage.folder / "sound").iterdir()) == [], "files were left")
    print("a device and a client that go end what they should")


async def readers(stage: Stage) -> None:
    async with stage.door("auto", "--config", "alice.yaml", "--read-only") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        check(names == ["list_calls", "explain_call"], f"tools of a reader: {names}")
        check((await use(client, "explain_call"))["has_media"] in (True, False), "a reader explains")
    async with stage.door("auto", "--socket", "nobody.sock") as client:
        check("nobody.sock" in await refused(client, "list_calls"), "a device that does not run")
        check("mcp.hear" in await refused(client, "hear", call=1), "no recogniser")
        check("mcp.say" in await refused(client, "say", call=1, text="hello"), "no voice")
    print("a reader reads, and a missing device is named")


def rubbish(stage: Stage) -> None:
    """Lines that are no messages are answered, and nothing else comes on standard output."""
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    lines = [
        b"rubbish",
        b"\xff\xfe\x00",
        b"[]",
        b"{",
        b"x" * 10_000_000,
        json.dumps(initialize).encode(),
        b'{"jsonrpc":"2.0","id":2,"method":"ping"}',
    ]
    command = [stage.handset, "mcp", "--config", "alice.yaml"]
    done = subprocess.run(command, cwd=stage.folder, input=b"\n".join(lines), capture_output=True, timeout=30, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    check([answer["jsonrpc"] for answer in answers] == ["2.0"] * 7, f"answers to rubbish: {answers}")
    check([answer.get("id") for answer in answers] == [None] * 5 + [1, 2], f"ids of answers to rubbish: {answers}")
    print("rubbish was refused")


async def main() -> None:
    with staged(sys.argv[1]) as stage:
        rubbish(stage)
        for mode in ("auto", "legacy"):
            async with stage.door(mode) as client:
                check(len((await client.list_tools()).tools) == 12, "the list of tools")
                await talk(stage, client)
                await refusals(client)
                await cancelled(stage, client)
        await readers(stage)
        await losses(stage)


asyncio.run(main())
