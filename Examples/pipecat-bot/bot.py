#!/usr/bin/env python3
"""A voice bot for Twilio's wire, by Pipecat: says back what it hears, and hangs up when the caller presses #."""

import os

import uvicorn
from fastapi import FastAPI, Response, WebSocket
from pipecat.frames.frames import EndWorkerFrame, InputAudioRawFrame, InputDTMFFrame, OutputAudioRawFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.runner.utils import parse_telephony_websocket
from pipecat.serializers.twilio import TwilioFrameSerializer
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.workers.runner import WorkerRunner

ACCOUNT = os.environ.get("TWILIO_ACCOUNT_SID", "AC" + "0" * 32)  # behaviour.bot.account
PASSWORD = os.environ.get("TWILIO_AUTH_TOKEN", "change me")  # behaviour.bot.requests.password_file
HANDSET = os.environ.get("HANDSET_URL", "http://127.0.0.1:7861")  # behaviour.bot.requests.listen
app = FastAPI()


class Echo(FrameProcessor):
    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            await self.push_frame(OutputAudioRawFrame(frame.audio, frame.sample_rate, frame.num_channels))
        elif isinstance(frame, InputDTMFFrame) and frame.button.value == "#":
            await self.push_frame(EndWorkerFrame(), FrameDirection.UPSTREAM)
        else:
            await self.push_frame(frame, direction)


@app.post("/answer")
def answer():
    return Response('<Response><Connect><Stream url="ws://127.0.0.1:7860/ws"/></Connect></Response>', media_type="text/xml")


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
        Pipeline([transport.input(), Echo(), transport.output()]),
        params=PipelineParams(audio_in_sample_rate=8_000, audio_out_sample_rate=8_000),
    )
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=7860)
