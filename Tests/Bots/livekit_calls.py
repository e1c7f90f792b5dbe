"""A LiveKit agent answers real calls of a Handset device, through livekit-gateway, which speaks Plivo's wire.

    livekit_calls.py HANDSET

HANDSET is the program. A device with `source: bot` asks the gateway's answer webhook, and connects with the stream that it names;
the gateway gives the job to a worker of livekit-agents. The agent greets with a tone, echoes what it hears, and after two
seconds says a last word of half a second and ends its job; the gateway then closes the stream. Two calls follow each other.

The gateway names its stream always with wss, so a proxy with TLS is in front of it, as in its users' installations.
"""

import asyncio
import json
import math
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile

from trial import GREETING, LAST_WORD, RATE, VOICE, end, free_port, heard, logged, started_device, started_exchange, tone, write_voice

GREETING_SECONDS, LAST_WORD_SECONDS, TALK_SECONDS = 0.4, 0.5, 2.0


def agent():
    """The agent's own process."""
    import livekit_gateway  # noqa: F401, it must come first
    from livekit import rtc
    from livekit.agents import JobContext, JobExecutorType, WorkerOptions, cli

    async def answer(context: JobContext):
        await context.connect()
        source = rtc.AudioSource(RATE, 1)
        await context.room.local_participant.publish_track(rtc.LocalAudioTrack.create_audio_track("bot", source))

        async def say(seconds, hertz):
            sound, size = tone(seconds, hertz), RATE // 50 * 2
            for start in range(0, len(sound), size):
                await source.capture_frame(rtc.AudioFrame(sound[start : start + size], RATE, 1, size // 2))

        caller = await context.wait_for_participant()
        await say(GREETING_SECONDS, GREETING)
        tracks = [publication.track for publication in caller.track_publications.values() if publication.track]
        seconds = 0.0
        async for event in rtc.AudioStream(tracks[0], sample_rate=RATE, num_channels=1):
            seconds += event.frame.samples_per_channel / RATE
            if seconds > TALK_SECONDS:
                break
            await source.capture_frame(event.frame)
        await say(LAST_WORD_SECONDS, LAST_WORD)
        await source.wait_for_playout()
        await asyncio.sleep(0.2)  # a frame is on its way to the gateway for that long at most
        context.shutdown()

    # A busy machine would make the worker refuse jobs, and take long to start processes for them.
    cli.run_app(
        WorkerOptions(
            entrypoint_fnc=answer,
            num_idle_processes=1,
            job_executor_type=JobExecutorType.THREAD,
            load_threshold=math.inf,
            initialize_process_timeout=60,
        )
    )


async def tls_proxy(folder, port):
    """Listens with TLS, and passes on to a port of this machine."""
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            folder / "key.pem",
            "-out",
            folder / "cert.pem",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")

    async def pass_on(source, sink):
        try:
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()

    async def take(reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=context)
    return server, server.sockets[0].getsockname()[1]


async def call(handset, number, exchange, folder):
    record = folder / f"call-{number}.wav"
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
    problems = []
    if report.get("outcome") != "completed":
        problems.append(f"the call ended as {report.get('outcome')}: {report.get('error')}")
    elif report["duration_ms"] > 15_000:
        problems.append("the agent has not hung up")
    sounds = {"greeting": (GREETING, GREETING_SECONDS), "echo": (VOICE, 1.0), "last word": (LAST_WORD, LAST_WORD_SECONDS)}
    # The echo begins with what the caller said during the greeting.
    lengths = {name: heard(record, hertz) if record.exists() else 0 for name, (hertz, _) in sounds.items()}
    for name, (_, least) in sounds.items():
        if lengths[name] < least - 0.1:
            problems.append(f"of the {name} {lengths[name]:.2f} s were heard, of {least:.2f}")
    state = "ok" if not problems else "FAILED: " + "; ".join(problems)
    print(f"livekit-agents, call {number}: {state} (heard: {', '.join(f'{name} {lengths[name]:.2f} s' for name in sounds)})", flush=True)
    return not problems


async def main(handset):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_voice(folder / "voice.wav")
        exchange, url = await started_exchange(handset, folder)
        processes = [exchange]
        try:
            port, worker_port = free_port(), free_port()
            proxy, tls_port = await tls_proxy(folder, port)
            surroundings = os.environ | {
                "PLIVO_WS_ADDR": f"127.0.0.1:{port}",
                "LIVEKIT_AGENT_WS_ADDR": f"127.0.0.1:{worker_port}",
                "LIVEKIT_URL": f"ws://localhost:{worker_port}",
                "PLIVO_PUBLIC_HOST": f"127.0.0.1:{tls_port}",
                "LKG_GATEWAY_LOG": str(folder / "gateway.log"),
                "RUST_LOG": "info",
            }
            with open(folder / "agent.log", "w") as sink:
                processes.append(subprocess.Popen([sys.executable, __file__, "agent", "start"], env=surroundings, stdout=sink, stderr=sink))
            await logged(folder / "gateway.log", "worker registered", processes[-1])
            processes.append(
                (
                    await started_device(
                        handset,
                        folder,
                        url,
                        f"""
                url: http://127.0.0.1:{port}/answer
                wire: plivo
                status_callback: http://127.0.0.1:{port}/status
                trust_roots: cert.pem
                """,
                    )
                )[0]
            )
            passed = [await call(handset, number, url, folder) for number in (1, 2)]
            if not all(passed):
                for log in ("device", "agent", "gateway"):
                    print((folder / f"{log}.log").read_text()[-8_000:])
            proxy.close()
        finally:
            end(*processes)
    sys.exit(0 if all(passed) else 1)


if sys.argv[1] == "agent":
    del sys.argv[1]
    agent()
else:
    asyncio.run(main(sys.argv[1]))
