"""A server of the Realtime API's WebSocket, with the types of openai-python, takes part in a real call of a Handset device.

    realtime.py HANDSET

HANDSET is the program. A device with `source: bot` and `wire: realtime` answers a call of `handset call`. No framework serves this API, so
the server is scripted; but all that Handset sends must be valid by the vendor's types, and so is all that the server sends. It confirms
the session, greets with a tone when it is asked for a response, echoes what it hears for a second and a half, and begins a story of half
a minute, which it interrupts after a second, as if the caller spoke. When it learns how much was heard, it says a last word and calls the
function that ends the call.
"""

import asyncio
import base64
import json
import pathlib
import subprocess
import sys
import tempfile

from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent
from pydantic import TypeAdapter
from trial import GREETING, LAST_WORD, VOICE, end, heard, started_device, started_exchange, tone, write_voice
from websockets.asyncio.server import serve

KEY, RATE, STORY = "the key", 24_000, 1_500
FROM_HANDSET: TypeAdapter = TypeAdapter(RealtimeClientEvent)
FROM_SERVER: TypeAdapter = TypeAdapter(RealtimeServerEvent)
SESSION = {
    "instructions": "Be brief.",
    "tools": [
        {"type": "function", "name": "end_call", "description": "Ends the call.", "parameters": {"type": "object", "properties": {}}}
    ],
}


class Conversation:
    """One session."""

    def __init__(self, socket, seen):
        self.socket, self.seen = socket, seen
        self.events, self.pieces = 0, 0

    async def send(self, kind, **members):
        self.events += 1
        event = {"type": kind, "event_id": f"event_{self.events}", **members}
        FROM_SERVER.validate_python(event)
        await self.socket.send(json.dumps(event))

    async def say(self, item, sound, is_whole=True):
        """Says something, as a response or as a piece of one."""
        place = {"response_id": f"resp_{item}", "item_id": item, "output_index": 0, "content_index": 0}
        for start in range(0, len(sound), RATE):
            await self.send("response.output_audio.delta", **place, delta=base64.b64encode(sound[start : start + RATE]).decode())
        if is_whole:
            await self.send("response.output_audio.done", **place)

    async def take(self, event):
        self.seen.setdefault(event["type"], []).append(event)
        match event["type"]:
            case "session.update":
                await self.send("session.updated", session=event["session"])
            case "response.create":
                await self.say("greeting", tone(1, GREETING, RATE))
            case "input_audio_buffer.append":
                self.pieces += 1
                await self.hear(base64.b64decode(event["audio"]))
            case "conversation.item.truncate":
                await self.say("goodbye", tone(0.5, LAST_WORD, RATE))
                call = {"type": "function_call", "name": "end_call", "call_id": "call_1", "arguments": "{}", "status": "completed"}
                await self.send("response.output_item.done", response_id="resp_goodbye", output_index=1, item=call)

    async def hear(self, sound):
        # A greeting of a second, and pieces of 20 ms.
        if 75 < self.pieces <= 150:
            await self.say("echo", sound, is_whole=False)
        elif self.pieces == 200:
            await self.say("story", tone(30, STORY, RATE), is_whole=False)
        elif self.pieces == 250:
            await self.send("input_audio_buffer.speech_started", audio_start_ms=5_000, item_id="speech")


async def served(seen):
    async def talk(socket):
        seen["key"] = socket.request.headers.get("Authorization")
        seen["path"] = socket.request.path
        conversation = Conversation(socket, seen)
        await conversation.send("session.created", session={"type": "realtime"})
        async for text in socket:
            event = json.loads(text)
            FROM_HANDSET.validate_python(event)
            await conversation.take(event)

    return await serve(talk, "127.0.0.1", 0)


async def call(handset, exchange, record, voice):
    caller = await asyncio.create_subprocess_exec(
        *[handset, "call", "echo@localhost", "--server", exchange, "--play", voice, "--record", record],
        *["--duration", "20", "--json", "--log-level", "error"],
        stdout=subprocess.PIPE,
    )
    return json.loads((await asyncio.wait_for(caller.communicate(), 40))[0])


async def main():
    handset = sys.argv[1]
    seen: dict = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_voice(folder / "voice.wav")
        (folder / "key").write_text(KEY)
        (folder / "key").chmod(0o600)
        exchange, url = await started_exchange(handset, folder)
        server = await served(seen)
        port = server.sockets[0].getsockname()[1]
        keys = [
            f"url: ws://127.0.0.1:{port}/v1/realtime?model=m",
            "wire: realtime\nauth_token_file: key\nspeaks_first: true\nhang_up_function: end_call",
            f"session: '{json.dumps(SESSION)}'",
        ]
        try:
            device, log = await started_device(handset, folder, url, "\n".join(keys))
            try:
                report = await call(handset, url, folder / "heard.wav", folder / "voice.wav")
            finally:
                end(device)
        finally:
            end(exchange)
            server.close()
        sounds = {word: heard(folder / "heard.wav", hertz) for word, hertz in TONES.items()}
        problems = [text for is_right, text in verdict(report, seen, sounds) if not is_right]
        print(f"realtime: {'ok' if not problems else 'FAILED: ' + '; '.join(problems) + log.read_text()} (heard: {sounds})")
    sys.exit(1 if problems else 0)


TONES = {"greeting": GREETING, "echo": VOICE, "story": STORY, "last word": LAST_WORD}


def verdict(report, seen, sounds):
    """What must hold, with words for what does not."""
    truncations = seen.get("conversation.item.truncate", [])
    milliseconds = truncations[0]["audio_end_ms"] if truncations else 0
    return [
        (report.get("outcome") == "completed" and report.get("duration_ms", 20_000) < 15_000, f"the call ended as {report}"),
        (seen.get("key") == f"Bearer {KEY}" and seen.get("path") == "/v1/realtime?model=m", f"it was opened with {seen.get('path')}"),
        (len(seen.get("session.update", [])) == 1 and len(seen.get("response.create", [])) == 1, f"the session began with {list(seen)}"),
        (len(truncations) == 1 and truncations[0]["item_id"] == "story", f"it was truncated {truncations}"),
        (abs(milliseconds / 1_000 - sounds["story"]) < 0.15, f"{milliseconds} ms of the story were reported"),
        (0.1 < sounds["story"] < 2, f"{sounds['story']} s of the story were heard, which begins and is interrupted"),
        (sounds["greeting"] > 0.9 and sounds["echo"] > 1.2 and sounds["last word"] > 0.4, "something was not heard"),
    ]


asyncio.run(main())
