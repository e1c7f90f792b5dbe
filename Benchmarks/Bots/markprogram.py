#!/usr/bin/env python3
"""A program of `source: exec` that sends bursts of tone with a mark after each, and records the marks' events.

usage: markprogram.py DIRECTORY MARKS

Writes DIRECTORY/CALL.json: for each mark its name, the samples written before it, `played` of its event, and when that came.
"""

import json
import os
import pathlib
import socket
import sys
import threading
import time

import botserver


def write_all(sound):
    while sound:
        sound = sound[os.write(1, sound) :]


def main():
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    control = socket.socket(fileno=3)
    lines = control.makefile(encoding="utf-8")
    begin = json.loads(next(lines))
    rate, written, marks, came = begin["rate_hz"], [], [], threading.Event()

    def hear():
        for line in lines:
            at, event = botserver.now(), json.loads(line)
            if event["event"] == "mark":
                number = int(event["name"])
                came.set()
                marks.append({"mark": number, "written": written[number], "played": event.get("played"), "at": at})
                if len(marks) == count:
                    (folder / f"{begin['call']}.json").write_text(json.dumps(marks))

    threading.Thread(target=hear, daemon=True).start()
    line = botserver.AudioSocketLine(0, None, rate)
    total = 0
    time.sleep(2)
    for number in range(count):
        # Lengths that end anywhere in a frame.
        sound = botserver.tone(200 + number * 37 % 100, rate)[: -(number * 7 + 1)]
        write_all(line.encode(sound))
        total += len(sound)
        written.append(total)
        control.sendall(json.dumps({"command": "mark", "name": str(number)}).encode() + b"\n")
        # What is written before the command is read counts as before the mark.
        came.wait(5)
        came.clear()
        silence = [0] * (rate * 3 // 10)
        write_all(line.encode(silence))
        total += len(silence)
    while os.read(0, 1 << 16):
        pass


main()
