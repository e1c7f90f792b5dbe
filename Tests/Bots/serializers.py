"""Compares the fixtures of Tests/BotWireTests with the stock serializers of Pipecat.

    serializers.py FIXTURES            fails unless the serializers accept what this side sends (FIXTURES/to-bot), and send
                                       what the fixtures have (FIXTURES/from-bot, FIXTURES/requests.json)
    serializers.py FIXTURES --renew    writes the fixtures that come from the serializers

The Swift tests compare the wires with the same files, so that no socket is needed. Needs pipecat-ai and fastapi.
"""

import asyncio
import json
import pathlib
import sys
import types

import aiohttp
from loguru import logger

logger.remove()

from pipecat.audio.dtmf.types import KeypadEntry  # noqa: E402
from pipecat.frames.frames import (  # noqa: E402
    EndFrame,
    InputAudioRawFrame,
    InputDTMFFrame,
    InterruptionFrame,
    OutputAudioRawFrame,
    OutputTransportMessageFrame,
)
from pipecat.runner.utils import parse_telephony_websocket  # noqa: E402
from pipecat.serializers.exotel import ExotelFrameSerializer  # noqa: E402
from pipecat.serializers.plivo import PlivoFrameSerializer  # noqa: E402
from pipecat.serializers.telnyx import TelnyxFrameSerializer  # noqa: E402
from pipecat.serializers.twilio import TwilioFrameSerializer  # noqa: E402

# The call of the fixtures.
CALL = {"twilio": "CA00000000000000000000000000000001", "telnyx": "v3:call", "plivo": "call-uuid", "exotel": "call-sid"}
STREAM = {"twilio": "MZ00000000000000000000000000000002", "telnyx": "stream-uuid", "plivo": "stream-uuid", "exotel": "stream-sid"}
ACCOUNT = "AC00000000000000000000000000000003"
FROM, TO = "+15550100", "+15550199"


class Telephone:
    """What parse_telephony_websocket reads of a WebSocket."""

    def __init__(self, messages):
        self.messages = messages

    async def iter_text(self):
        for message in self.messages:
            yield message


class Requests:
    """Replaces aiohttp's session: keeps what would be sent."""

    def __init__(self):
        self.kept = []

    def __call__(self):
        return self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return False

    def post(self, url, auth=None, data=None, headers=None):
        return self.keep("POST", url, auth, data, headers)

    def delete(self, url, auth=None):
        return self.keep("DELETE", url, auth, None, None)

    def keep(self, method, url, auth, data, headers):
        # As aiohttp's own request writes it.
        request = aiohttp.ClientRequest(
            method, aiohttp.client_reqrep.URL(url), auth=auth, data=data, headers=headers, loop=asyncio.get_running_loop()
        )
        body = request.body
        self.kept.append(
            {
                "method": method,
                "target": request.url.raw_path_qs,
                "authorization": request.headers.get("Authorization"),
                "contentType": request.headers.get("Content-Type"),
                "body": bytes(getattr(body, "_value", body) or b"").decode(),
            }
        )
        status = 204 if method == "DELETE" else 200
        return Answer(status)


class Answer:
    def __init__(self, status):
        self.status = status

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return False

    async def text(self):
        return ""


def make(name):
    """The serializer as Pipecat's runner makes it."""
    if name == "twilio":
        return TwilioFrameSerializer(STREAM[name], CALL[name], ACCOUNT, "token", base_url="http://127.0.0.1:8080/")
    if name == "telnyx":
        return TelnyxFrameSerializer(STREAM[name], "PCMU", "PCMU", call_control_id=CALL[name], api_key="key")
    if name == "plivo":
        return PlivoFrameSerializer(STREAM[name], CALL[name], "auth-id", "token")
    return ExotelFrameSerializer(STREAM[name], CALL[name])


def tone(rate):
    """20 ms that are the same in every run."""
    return b"".join(int(8_000 * (((i * 7) % 40) / 20 - 1)).to_bytes(2, "little", signed=True) for i in range(rate // 50))


async def ready(name):
    serializer = make(name)
    await serializer.setup(types.SimpleNamespace(audio_in_sample_rate=8_000))
    return serializer


async def says(name):
    """What the stock serializer sends: sound, a clear, and a message of the bot's own."""
    serializer = await ready(name)
    frames = (
        OutputAudioRawFrame(tone(8_000), 8_000, 1),
        InterruptionFrame(),
        OutputTransportMessageFrame({"event": "of-the-bot", "said": ["ä"]}),
    )
    return [await serializer.serialize(frame) for frame in frames]


async def asks():
    """The requests by which the stock serializers end a call."""
    requests = Requests()
    real, aiohttp.ClientSession = aiohttp.ClientSession, requests
    try:
        for name in ("twilio", "telnyx", "plivo"):
            serializer = await ready(name)
            assert await serializer.serialize(EndFrame()) is None
    finally:
        aiohttp.ClientSession = real
    return requests.kept


async def hears(name, lines):
    """The stock serializer reads what this side sends."""
    kind, call = await parse_telephony_websocket(Telephone(lines))
    assert kind == name, f"{name}: taken for {kind}"
    assert call["call_id"] == CALL[name] and call["stream_id"] == STREAM[name], f"{name}: {call}"
    if name in ("telnyx", "exotel"):
        assert (call["from"], call["to"]) == (FROM, TO), f"{name}: {call}"
    if name == "telnyx":
        assert call["outbound_encoding"] == "PCMU", call
    if name == "twilio":
        assert call["body"] == {"from_number": FROM, "to_number": TO, "who": 'Ä "x"'}, call
        assert call["from"] == FROM and call["to"] == TO, call
    serializer = await ready(name)
    frames = [await serializer.deserialize(line) for line in lines]
    sounds = [frame for frame in frames if isinstance(frame, InputAudioRawFrame)]
    keys = [frame.button for frame in frames if isinstance(frame, InputDTMFFrame)]
    said = [json.loads(line) for line in lines]
    assert len(sounds) == sum(message["event"] == "media" for message in said) == 2, f"{name}: {len(sounds)} frames of sound"
    assert all(len(frame.audio) == 320 and frame.sample_rate == 8_000 for frame in sounds), name
    # Both are the same ramp, the second one negated: compared after the codec.
    assert abs(int.from_bytes(sounds[0].audio[160:162], "little", signed=True)) > 1_000, name
    assert keys == [KeypadEntry.FIVE, KeypadEntry.POUND], f"{name}: {keys}"


async def main(folder, renew):
    failed = []
    produced = {f"from-bot/{name}.jsonl": "".join(message + "\n" for message in await says(name)) for name in CALL}
    produced["requests.json"] = json.dumps(await asks(), indent=2) + "\n"
    for path, text in produced.items():
        file = folder / path
        if renew:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            failed.append(f"{path}: the stock serializers send something else; --renew writes it")
    for name in CALL:
        file = folder / f"to-bot/{name}.jsonl"
        try:
            await hears(name, file.read_text().splitlines())
        except (AssertionError, OSError) as error:
            failed.append(f"to-bot/{name}.jsonl: {error}")
    for fault in failed:
        print(fault, file=sys.stderr)
    print(f"serializers: {len(produced) + len(CALL) - len(failed)} of {len(produced) + len(CALL)} fixtures agree")
    sys.exit(1 if failed else 0)


asyncio.run(main(pathlib.Path(sys.argv[1]), "--renew" in sys.argv[2:]))
