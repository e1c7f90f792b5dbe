"""Checks `handset loopback bot` against scripted bots whose delays are known.

    measured.py HANDSET

HANDSET is the program. Bots of Twilio's wire and of AudioSocket at 48 kHz answer 400 ms after a caller's last packet with sound,
and fall silent with `clear`, or talk on. One is called through an exchange and a device as well. This program's timers make their
delays, so figures may be greater by 20 ms for the caller's frame, 20 ms for the bot's, and what the machine adds.
"""

import asyncio
import contextlib
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Benchmarks" / "Bots"))
import botserver  # noqa: E402

ANSWER, STOP = 0.4, 0.2
#: What is above the scripted delay: two frames, and a busy machine.
MOST_MORE = 90
#: Network, codec and jitter buffers of a call, there and back.
CALL = 120


class Talker(botserver.Silent):
    """Answers ANSWER seconds after speech, and stops STOP seconds after its onset if it can."""

    def __init__(self, stops):
        self.stops = stops

    def begin(self, line):
        line.state = {"voice": 0, "quiet": 100, "asked": False, "until": 0, "timer": None}
        line.sound = line.encode(botserver.tone(6_000, line.rate))
        line.play(line.sound[: len(line.sound) // 10])

    def hear(self, line, sound):
        state, loop = line.state, asyncio.get_running_loop()
        if line.is_loud(sound):
            if state["timer"]:
                state["timer"].cancel()
                state["timer"] = None
            if state["quiet"] > 15 and loop.time() < state["until"] and self.stops:
                state["until"] = 0
                loop.call_later(STOP, line.clear)
            state["quiet"] = 0
            state["voice"] += 1
        else:
            state["quiet"] += 1
        # A pause within a sentence restarts the timer.
        if state["quiet"] == 1 and state["voice"] > 10:
            state["timer"] = loop.call_later(ANSWER - 0.02, self.answer, line)

    def answer(self, line):
        state, loop = line.state, asyncio.get_running_loop()
        state["voice"], state["timer"] = 0, None
        if loop.time() < state["until"]:
            return
        state["until"] = loop.time() + 6
        line.play(line.sound)


async def run(handset, *options):
    process = await asyncio.create_subprocess_exec(
        handset, "loopback", "bot", *options, "--json", "-", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    text, log = await asyncio.wait_for(process.communicate(), 180)
    return process.returncode, json.loads(text) if text else log.decode()


async def measure(handset, server, *options):
    await server.start()
    url = f"tcp://127.0.0.1:{server.port}" if server.rate else f"ws://127.0.0.1:{server.port}/ws"
    wire = ["--wire", "audiosocket", "--rate", str(server.rate)] if server.rate else []
    try:
        return await run(handset, url, *wire, *options)
    finally:
        server.stop()


@contextlib.asynccontextmanager
async def program(handset, message, *arguments):
    """Starts a daemon and waits for a message in its log. Returns that line."""
    process = await asyncio.create_subprocess_exec(handset, *arguments, "--log-format", "json", stderr=asyncio.subprocess.PIPE)
    async for line in process.stderr:
        if f'"{message}"' in line.decode():
            break
    else:
        sys.exit(f"handset {arguments[0]} did not get ready")
    rest = asyncio.create_task(process.stderr.read())
    try:
        yield json.loads(line)
    finally:
        process.terminate()
        await process.wait()
        await rest


async def measure_call(handset, server, *options):
    """The same through an exchange and a device, whose bot this is."""
    await server.start()
    try:
        async with program(handset, "Listening", "serve", "--listen", "127.0.0.1:0") as line:
            url = find(line, "url")
            with tempfile.TemporaryDirectory() as folder:
                configuration = pathlib.Path(folder) / "device.yaml"
                configuration.write_text(
                    f"account:\n  server: {url}\n  media_token_file: {ROOT}/config/demo-echo.token\n"
                    f"media:\n  address: 127.0.0.1\nbehaviour:\n  source: bot\n  bot:\n{server.yaml}"
                )
                async with program(handset, "Ready", "run", "--config", str(configuration)):
                    return await run(handset, "echo@localhost", "--server", url, *options)
    finally:
        server.stop()


def times(report, figure, items):
    """The times of turns or interruptions that are not withheld: a busy machine makes some late."""
    return [item["ms"] for item in report[figure][items] if item["ms"] is not None]


def find(value, key):
    """The member of that name, wherever it is in an object."""
    if isinstance(value, dict):
        return value.get(key) or next((found for inner in value.values() if (found := find(inner, key))), None)
    return None


async def main():
    handset, failures = sys.argv[1], 0

    def expect(what, condition, report):
        nonlocal failures
        failures += not condition
        print(f"{what}: {'ok' if condition else 'FAILED: ' + json.dumps(report)}", flush=True)

    def near(values, seconds, more=MOST_MORE):
        middle = sorted(values)[len(values) // 2] if values else -1
        return 0 <= middle - 1_000 * seconds <= more

    code, report = await measure(handset, botserver.Server(Talker(stops=True)), "--turns", "2", "--interruptions", "2")
    expect("Twilio's wire: response", code == 0 and near(times(report, "response", "turns"), ANSWER), report)
    expect("Twilio's wire: barge-in", near(times(report, "barge_in", "interruptions"), STOP), report)
    expect("Twilio's wire: both talk", near(report["talk_over"]["interruptions_ms"], STOP - 0.02), report)

    code, report = await measure(handset, botserver.Server(Talker(stops=False), 48_000), "--turns", "1", "--interruptions", "1")
    expect("AudioSocket: response", near(times(report, "response", "turns"), ANSWER), report)
    expect(
        "AudioSocket: a bot that talks on",
        code == 12 and [one["outcome"] for one in report["barge_in"]["interruptions"]] == ["ignored"],
        report,
    )

    code, report = await measure_call(handset, botserver.Server(Talker(stops=True)), "--turns", "2", "--interruptions", "1")
    expect("a call: response", code == 0 and near(times(report, "response", "turns"), ANSWER, MOST_MORE + CALL), report)
    expect("a call: barge-in", near(times(report, "barge_in", "interruptions"), STOP, MOST_MORE + CALL), report)

    code, report = await measure(handset, botserver.Server(botserver.Silent()), "--turns", "1", "--interruptions", "0", "--patience", "1")
    expect("a bot that says nothing", code == 13 and report["response"]["count"] == 0, report)
    sys.exit(1 if failures else 0)


asyncio.run(main())
