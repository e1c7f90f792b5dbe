"""Real Pipecat bots, with the stock serializers, answer real calls of a Handset device.

    calls.py HANDSET [WIRE...]

HANDSET is the program. For each wire (twilio, telnyx, plivo, exotel, vonage, jambonz, asterisk, smallwebrtc, realtime) a device with
`source: bot` answers a call of `handset call`. The bot is a pipeline of Pipecat behind its FastAPI WebSocket transport: it greets with a
tone, echoes what it hears, gets a telephone key, and after two seconds says a last word of half a second and ends its pipeline. Its
serializer then hangs up by its own request, which Handset answers; Exotel's and Vonage's have none, and close. Twilio's bot is asked by
its webhook first. For jambonz and Asterisk's chan_websocket Pipecat has no serializer: those bots are scripted, and also set a mark.

With smallwebrtc the bot is behind Pipecat's SmallWebRTC transport, at the path and with the request handler of Pipecat's runner. With
realtime the same bot is behind the form of `POST /v1/realtime/calls`, which is written here. Both are sent sound over ICE, DTLS and
Opus by aiortc, get no keys, because aiortc has none, and hang up by closing their peer connection.

The serializers of Telnyx and Plivo have the addresses of these services built in. Requests to them are sent to Handset by a change
of aiohttp in this program, as DNS would do it.
"""

import asyncio
import json
import pathlib
import socket
import subprocess
import sys
import tempfile

import aiohttp
import uvicorn
from fastapi import BackgroundTasks, FastAPI, Request, Response, WebSocket
from loguru import logger
from trial import GREETING, LAST_WORD, RATE, VOICE, end, free_port, heard, started_device, started_exchange, tone, write_voice

logger.remove()

from pipecat.frames.frames import EndWorkerFrame, InputAudioRawFrame, InputDTMFFrame, OutputAudioRawFrame, StartFrame  # noqa: E402
from pipecat.pipeline.pipeline import Pipeline  # noqa: E402
from pipecat.pipeline.worker import PipelineParams, PipelineWorker  # noqa: E402
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor  # noqa: E402
from pipecat.runner.utils import parse_telephony_websocket  # noqa: E402
from pipecat.serializers.exotel import ExotelFrameSerializer  # noqa: E402
from pipecat.serializers.plivo import PlivoFrameSerializer  # noqa: E402
from pipecat.serializers.telnyx import TelnyxFrameSerializer  # noqa: E402
from pipecat.serializers.twilio import TwilioFrameSerializer  # noqa: E402
from pipecat.serializers.vonage import VonageFrameSerializer  # noqa: E402
from pipecat.transports.base_transport import TransportParams  # noqa: E402
from pipecat.transports.smallwebrtc.connection import SmallWebRTCConnection  # noqa: E402
from pipecat.transports.smallwebrtc.request_handler import SmallWebRTCRequest, SmallWebRTCRequestHandler  # noqa: E402
from pipecat.transports.smallwebrtc.transport import SmallWebRTCTransport  # noqa: E402
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport  # noqa: E402
from pipecat.workers.runner import WorkerRunner  # noqa: E402

LEGS = {"smallwebrtc": "/api/offer", "realtime": "/v1/realtime/calls"}
#: Orders of the scripted bots.
SCRIPTS = {
    "jambonz": {
        "mark": '{"type": "mark", "data": {"name": "greeting"}}',
        "hang up": '{"type": "disconnect"}',
        "subprotocol": "audio.jambonz.org",
    },
    "asterisk": {"mark": "MARK_MEDIA greeting", "hang up": "HANGUP", "subprotocol": "media"},
}
WIRES = ["twilio", "telnyx", "plivo", "exotel", "vonage", *SCRIPTS, *LEGS]
ACCOUNT, PASSWORD = "AC00000000000000000000000000000003", "a password"
WIDE_RATE = 16_000
GREETING_SECONDS, LAST_WORD_SECONDS, TALK_SECONDS = 0.4, 0.5, 2.0


class Echo(FrameProcessor):
    """Greets, echoes what it hears, says a last word, and ends."""

    def __init__(self, seen, rate=RATE, greets=True):
        super().__init__()
        self.seen, self.rate, self.greets = seen, rate, greets
        self.heard = 0.0
        self.is_done = False

    async def say(self, sound):
        await self.push_frame(OutputAudioRawFrame(audio=sound, sample_rate=self.rate, num_channels=1))

    async def greet(self):
        await self.say(tone(GREETING_SECONDS, GREETING, self.rate))

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, StartFrame):
            await self.push_frame(frame, direction)
            if self.greets:
                await self.greet()
        elif isinstance(frame, InputAudioRawFrame):
            self.heard += len(frame.audio) / 2 / frame.sample_rate
            if self.heard < TALK_SECONDS:
                await self.say(frame.audio)
            elif not self.is_done:
                self.is_done = True
                await self.say(tone(LAST_WORD_SECONDS, LAST_WORD, self.rate))
                await self.push_frame(EndWorkerFrame(), FrameDirection.UPSTREAM)
        elif isinstance(frame, InputDTMFFrame):
            self.seen["key"] = frame.button.value
        else:
            await self.push_frame(frame, direction)


class Server:
    """The bot's server, the same for each service."""

    def __init__(self):
        self.app = FastAPI()
        self.seen = {}
        self.base = ""
        self.app.post("/answer")(self.answer)
        self.app.websocket("/ws")(self.take)
        self.app.websocket("/vonage")(self.take_vonage)
        self.app.websocket("/script/{wire}")(self.script)
        self.app.post(LEGS["smallwebrtc"])(self.offer)
        self.app.post(LEGS["realtime"])(self.create)
        self.handler = SmallWebRTCRequestHandler()

    async def answer(self, request: Request):
        self.seen["form"] = (await request.body()).decode()
        self.seen["signature"] = request.headers.get("X-Twilio-Signature")
        return Response(
            f'<Response><Connect><Stream url="ws://127.0.0.1:{self.port}/ws"><Parameter name="who" value="you"/></Stream>'
            '</Connect><Pause length="20"/></Response>',
            media_type="text/xml",
        )

    def serializer(self, wire, call):
        match wire:
            case "twilio":
                return TwilioFrameSerializer(
                    stream_sid=call["stream_id"], call_sid=call["call_id"], account_sid=ACCOUNT, auth_token=PASSWORD, base_url=self.base
                )
            case "telnyx":
                return TelnyxFrameSerializer(
                    stream_id=call["stream_id"],
                    call_control_id=call["call_id"],
                    outbound_encoding=call["outbound_encoding"],
                    inbound_encoding="PCMU",
                    api_key=PASSWORD,
                )
            case "plivo":
                return PlivoFrameSerializer(stream_id=call["stream_id"], call_id=call["call_id"], auth_id=ACCOUNT, auth_token=PASSWORD)
            case "exotel":
                return ExotelFrameSerializer(stream_sid=call["stream_id"], call_sid=call["call_id"])

    async def take(self, websocket: WebSocket):
        await websocket.accept()
        wire, call = await parse_telephony_websocket(websocket)
        self.seen["wire"], self.seen["call"] = wire, dict(call)
        await self.talk(websocket, self.serializer(wire, call))

    async def take_vonage(self, websocket: WebSocket):
        await websocket.accept()
        # Its serializer reads the opening itself.
        self.seen["wire"] = "vonage"
        await self.talk(websocket, VonageFrameSerializer())

    async def talk(self, websocket, serializer):
        transport = FastAPIWebsocketTransport(
            websocket=websocket,
            params=FastAPIWebsocketParams(audio_in_enabled=True, audio_out_enabled=True, add_wav_header=False, serializer=serializer),
        )
        echo = Echo(self.seen)
        worker = PipelineWorker(
            Pipeline([transport.input(), echo, transport.output()]),
            params=PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE),
        )
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        await runner.run()

    async def script(self, websocket: WebSocket, wire: str):
        script = SCRIPTS[wire]
        await websocket.accept(subprotocol=script["subprotocol"] if script["subprotocol"] in websocket.scope["subprotocols"] else None)
        self.seen["wire"], self.seen["texts"] = wire, [await websocket.receive_text()]
        await websocket.send_bytes(tone(GREETING_SECONDS, GREETING, RATE))
        await websocket.send_text(script["mark"])
        heard = 0.0
        while (message := await websocket.receive())["type"] == "websocket.receive":
            if (text := message.get("text")) is not None:
                self.seen["texts"].append(text)
            elif heard < TALK_SECONDS:
                heard += len(message["bytes"]) / 2 / RATE
                await websocket.send_bytes(message["bytes"])
                if heard >= TALK_SECONDS:
                    await websocket.send_bytes(tone(LAST_WORD_SECONDS, LAST_WORD, RATE))
                    await websocket.send_text(script["hang up"])

    async def offer(self, request: SmallWebRTCRequest, tasks: BackgroundTasks):
        self.seen["wire"], self.seen["data"] = "smallwebrtc", request.request_data

        async def begin(connection):
            tasks.add_task(self.speak, connection)

        return await self.handler.handle_web_request(request, begin)

    async def create(self, request: Request, tasks: BackgroundTasks):
        form = await request.form()
        self.seen["wire"], self.seen["data"] = "realtime", json.loads(form["session"])
        self.seen["key"] = request.headers.get("Authorization")
        connection = SmallWebRTCConnection()
        await connection.initialize(sdp=form["sdp"], type="offer")
        tasks.add_task(self.speak, connection)
        return Response(
            connection.get_answer()["sdp"], status_code=201, media_type="application/sdp", headers={"Location": f"{LEGS['realtime']}/rtc_1"}
        )

    async def speak(self, connection):
        transport = SmallWebRTCTransport(connection, TransportParams(audio_in_enabled=True, audio_out_enabled=True))
        echo = Echo(self.seen, WIDE_RATE, greets=False)
        worker = PipelineWorker(
            Pipeline([transport.input(), echo, transport.output()]),
            params=PipelineParams(audio_in_sample_rate=WIDE_RATE, audio_out_sample_rate=WIDE_RATE),
        )

        @transport.event_handler("on_client_connected")
        async def greet(transport, client):
            await echo.greet()

        @transport.event_handler("on_client_disconnected")
        async def leave(transport, client):
            await worker.cancel()

        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        await runner.run()

    async def start(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.server = uvicorn.Server(uvicorn.Config(self.app, log_level="error", ws="websockets-sansio"))
        self.task = asyncio.create_task(self.server.serve(sockets=[listener]))

    async def stop(self):
        self.server.should_exit = True
        await self.task


requests = []
aiohttp_request = aiohttp.ClientSession._request


def send_requests_to(server):
    async def request(self, method, url, **arguments):
        url = str(url)
        for service in ("https://api.telnyx.com", "https://api.plivo.com"):
            url = url.replace(service, server.base)
        answer = await aiohttp_request(self, method, url, **arguments)
        requests.append(f"{method} {answer.status}")
        return answer

    aiohttp.ClientSession._request = request


def surroundings(wire, port):
    match wire:
        case "smallwebrtc":
            return "parameters: [tenant=acme]"
        case "realtime":
            return 'session: \'{"type": "realtime"}\''
        case "vonage" | "jambonz":
            return "parameters: [tenant=acme]"
        case "asterisk":
            return "encoding: linear"
        case _:
            return f"requests:\n  listen: 127.0.0.1:{port}\n  password_file: password"


async def call(handset, wire, server, exchange, folder):
    port = free_port()
    server.base = f"http://127.0.0.1:{port}"
    server.seen.clear()
    requests.clear()
    match wire:
        case "twilio":
            address = f"http://127.0.0.1:{server.port}/answer"
        case "vonage":
            address = f"ws://127.0.0.1:{server.port}/vonage"
        case _ if wire in SCRIPTS:
            address = f"ws://127.0.0.1:{server.port}/script/{wire}"
        case _ if wire in LEGS:
            address = f"http://127.0.0.1:{server.port}{LEGS[wire]}"
        case _:
            address = f"ws://127.0.0.1:{server.port}/ws"
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o600)
    device, log = await started_device(
        handset,
        folder,
        exchange,
        f"url: {address}\nwire: {wire}\naccount: {ACCOUNT}\nauth_token_file: password\n{surroundings(wire, port)}",
        wire,
    )
    try:
        record = folder / f"{wire}.wav"
        caller = await asyncio.create_subprocess_exec(
            handset,
            "call",
            "echo@localhost",
            "--server",
            exchange,
            "--play",
            folder / "voice.wav",
            "--record",
            record,
            "--press",
            "5",
            "--duration",
            "20",
            "--json",
            "--log-level",
            "error",
            stdout=subprocess.PIPE,
        )
        report = json.loads((await asyncio.wait_for(caller.communicate(), 40))[0])
    finally:
        end(device)
    problems = []

    def expect(condition, what):
        if not condition:
            problems.append(what)

    expect(report.get("outcome") == "completed", f"the call ended as {report.get('outcome')}")
    # The caller itself hangs up after 20 s.
    expect(report.get("duration_ms", 20_000) < 15_000, f"the bot has not hung up: {report}")
    expect(server.seen.get("wire") == wire, f"Pipecat takes the wire for {server.seen.get('wire')}")
    if wire in LEGS:
        expect(server.seen.get("data") == ({"tenant": "acme"} if wire == "smallwebrtc" else {"type": "realtime"}), f"{server.seen}")
    elif wire == "vonage":
        expect(server.seen.get("key") == "5", f"the bot got the key {server.seen.get('key')}")
    elif wire in SCRIPTS:
        texts = server.seen.get("texts", [])
        for part in {
            "jambonz": ("sampleRate", '"dtmf":"5"', "playout"),
            "asterisk": ("MEDIA_START", "DTMF_END digit:5", "MEDIA_MARK_PROCESSED greeting"),
        }[wire]:
            expect(any(part in text for text in texts), f"the bot got no {part}: {texts}")
    elif wire != "exotel":
        expect(server.seen.get("key") == "5", f"the bot got the key {server.seen.get('key')}")
        expect(
            requests == [{"twilio": "POST 200", "telnyx": "POST 200", "plivo": "DELETE 204"}[wire]],
            f"its requests were answered {requests}",
        )
    if wire == "realtime":
        expect(server.seen.get("key") == f"Bearer {PASSWORD}", "the bearer token is wrong")
    if wire == "twilio":
        expect("From=caller" in server.seen.get("form", ""), f"the webhook received {server.seen.get('form')}")
        expect(server.seen.get("signature"), "the webhook's request was not signed")
    sounds = {
        "greeting": (heard(record, GREETING), GREETING_SECONDS),
        "echo": (heard(record, VOICE), 1.0),
        "last word": (heard(record, LAST_WORD), LAST_WORD_SECONDS),
    }
    for name, (seconds, least) in sounds.items():
        expect(seconds >= least - 0.06, f"of the {name} {seconds:.2f} s were heard, of {least:.2f}")
    state = "ok" if not problems else "FAILED: " + "; ".join(problems) + "\n" + log.read_text()
    print(f"{wire}: {state} (heard: {', '.join(f'{name} {seconds:.2f} s' for name, (seconds, _) in sounds.items())})", flush=True)
    return not problems


async def main():
    handset, wires = sys.argv[1], sys.argv[2:] or WIRES
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_voice(folder / "voice.wav")
        exchange, url = await started_exchange(handset, folder)
        try:
            server = Server()
            await server.start()
            send_requests_to(server)
            passed = [await call(handset, wire, server, url, folder) for wire in wires]
            await server.stop()
        finally:
            end(exchange)
    sys.exit(0 if all(passed) else 1)


asyncio.run(main())
