#!/usr/bin/env python3
"""Measures mouth to ear between two Chromiums, each on simulated sound cards and in the web phone of `handset serve`.

usage: chromium.py HANDSET RESULTS SECONDS

Expects in RESULTS the program `air`, libasound's configuration `asound.conf` with the cards here_mic, here_speaker, there_mic
and there_speaker, and their pages. Chromium opens them through libasound, because no sound server can be reached.
Prints one JSON object: how each microphone's sweeps arrived, and the browsers' own statistics.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Tests/Interop"))

from phones import Exchange, Phone

#: Unprocessed sound: the processing that the page requests otherwise adds delay, and removes sweeps as noise.
PLAIN = """
    const given = MediaDevices.prototype.getUserMedia;
    MediaDevices.prototype.getUserMedia = function () {
      return given.call(this, { audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
    };"""
#: Time for both jitter buffers to settle, in seconds.
SETTLING = 15
COUNTS = """
    (async () => {
      const found = { emitted: 0, delay: 0, concealed: 0, playout: 0, played: 0 };
      for (const report of (await connections.at(-1).getStats()).values()) {
        if (report.type === 'inbound-rtp' && report.kind === 'audio') {
          found.emitted = report.jitterBufferEmittedCount;
          found.delay = report.jitterBufferDelay;
          found.concealed = report.concealedSamples;
        }
        if (report.type === 'media-playout') {
          found.playout = report.totalPlayoutDelay;
          found.played = report.totalSamplesCount;
        }
      }
      return found;
    })()"""


def environment(results):
    """Without a sound server: Chromium then takes libasound's cards."""
    return {
        **os.environ,
        "ALSA_CONFIG_PATH": str(results / "asound.conf"),
        "PULSE_SERVER": f"unix:{results}/no-server",
        "PIPEWIRE_REMOTE": "none",
    }


def mean_ms(before, after, delay, count):
    number = after[count] - before[count]
    return round(1000 * (after[delay] - before[delay]) / number, 1) if number else None


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    handset, results, seconds = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    with contextlib.ExitStack() as open_:
        exchange = Exchange(handset)
        open_.callback(exchange.stop)
        phones = []
        for user, side in (("alice", "here"), ("bob", "there")):
            phone = Phone(
                exchange.url,
                "cards",
                PLAIN,
                environment=environment(results),
                arguments=[f"--alsa-input-device={side}_mic", f"--alsa-output-device={side}_speaker"],
            )
            open_.callback(phone.close)
            phone.sign_in(user)
            phones.append(phone)
        alice, bob = phones
        alice.call("bob")
        bob.phase("ringing")
        bob.click("#answer")
        for phone in phones:
            phone.phase("talking")
        time.sleep(SETTLING)
        before = [phone.run_async(COUNTS) for phone in phones]
        cards = [str(results / name) for name in ("here_mic", "there_speaker", "there_mic", "here_speaker")]
        heard = subprocess.run([results / "air", "measure", str(seconds), *cards], check=True, capture_output=True, text=True).stdout
        after = [phone.run_async(COUNTS) for phone in phones]
        print(
            json.dumps(
                {
                    "version": alice.driver.capabilities["browserVersion"],
                    "ways": [json.loads(line) for line in heard.splitlines()],
                    "jitter_buffer_ms": [mean_ms(*pair, "delay", "emitted") for pair in zip(before, after)],
                    "playout_ms": [mean_ms(*pair, "playout", "played") for pair in zip(before, after)],
                }
            )
        )
        alice.click("#hang-up")


if __name__ == "__main__":
    main()
