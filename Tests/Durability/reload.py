"""Reloads an exchange and two devices while they have calls, and counts packets and frames that are late.

    reload.py HANDSET [--calls N] [--seconds S] [--reloads N] [--media sdes|webrtc] [--folder PATH] [--keep]

A device places N calls (40 by default) to one that answers with an echo, over an exchange. They last S seconds in which
nothing happens, and are hung up; then as many again, while all three processes get SIGHUP R times: with the file as it was, with another
answer policy and, every third time, with a wrong file, which each must refuse by file, line and key. Each device reports at a call's end
how many packets came too late to be played (`late`), and how many frames its worker did not run in time (`frames_skipped`).

Fails if a call ends by itself, if a process ends, if a file is not accepted or refused as it should be, or if packets are late in the
second series and none in the first. If some are late in the first, the machine is busy; that is printed, and not judged.
Prints one JSON object. Uses nothing but Python.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time

import soak

COUNTED = ("received", "lost", "late", "frames_skipped", "dropped")
ENDS = ("echo", "caller")


class Reload(soak.Soak):
    """The processes of a soak, with one caller, and their configurations to rewrite."""

    def start_both(self):
        self.start()
        # One of the two callers is enough.
        unused, self.caller_process = (self.webrtc, self.sdes) if self.arguments.media == "sdes" else (self.sdes, self.webrtc)
        unused.end()
        self.processes = [self.exchange, self.device, self.caller_process]
        self.texts = {}
        for process in self.processes:
            with open(self.path(process)) as file:
                self.texts[process.name] = file.read()

    @staticmethod
    def path(process):
        return os.path.join(process.folder, process.name + ".yaml")

    def log_text(self, process, since=0):
        with open(process.log.name, "rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace")

    def log_size(self, process):
        return os.stat(process.log.name).st_size

    async def connected(self, line, process):
        status = await line.open(process.socket)
        for _ in range(600):
            if status["connection"] == "connected":
                return
            await asyncio.sleep(0.1)
            status = (await line.ask("status"))["status"]
        raise SystemExit(f"{process.name} does not connect; see {process.log.name}")

    async def place(self):
        """Places the calls one after another; returns their futures."""
        calls = []
        for _ in range(self.arguments.calls):
            answer = await self.caller.line.ask("call", to="echo@localhost")
            if not answer["ok"]:
                self.fault(f"a call was refused: {answer['error']}")
                continue
            call = self.caller.futures(answer["call"])
            calls.append((answer["call"], call))
            await asyncio.wait(call.values(), timeout=soak.SETUP_LIMIT, return_when=asyncio.FIRST_COMPLETED)
            if not call["media"].done():
                self.fault("a call was not established")
        return calls

    async def series(self, name, act):
        since = {process.name: self.log_size(process) for process in self.processes}
        calls = await self.place()
        await act()
        for number, call in calls:
            if call["ended"].done():
                self.fault(f"{name}: a call ended by itself: {call['ended'].result()}")
            else:
                await self.caller.line.ask("hangup", call=number)
                await asyncio.wait_for(call["ended"], soak.END_LIMIT)
        await asyncio.sleep(2)  # The remote parties receive the end, and log it.
        counted = {}
        for end, process in zip(ENDS, (self.device, self.caller_process)):
            lines = [line for line in self.log_text(process, since[process.name]).splitlines() if "A call has ended" in line]
            if len(lines) != len(calls):
                self.fault(f"{name}: {process.name} reports {len(lines)} calls, and there were {len(calls)}")
            counted[end] = {key: sum(int(value) for line in lines for value in re.findall(rf"\b{key}=(\d+)", line)) for key in COUNTED}
        self.say(f"{name}: {counted}")
        return counted

    async def idle(self):
        await asyncio.sleep(self.arguments.seconds)

    async def reload(self, process, kind):
        text = self.texts[process.name]
        if kind == "wrong":
            text += "colour: red\n"
        elif kind == "changed":
            text = text.replace("max_calls: 1000", "max_calls: 999") if "max_calls" in text else text + "# changed\n"
        soak.private(self.path(process), text)
        since = self.log_size(process)
        process.process.send_signal(signal.SIGHUP)
        if process is self.exchange:
            taken, refused = "configuration was read again", "configuration is wrong"
        else:
            taken, refused = "The configuration was read again", "The configuration is wrong, so the earlier one stays in use"
        for _ in range(200):
            said = self.log_text(process, since)
            if taken.lower() in said.lower() or refused.lower() in said.lower():
                break
            await asyncio.sleep(0.05)
        else:
            return self.fault(f"{process.name} does not report a {kind} file: {said}")
        line = text.count("\n")
        if (refused.lower() in said.lower()) != (kind == "wrong"):
            self.fault(f"{process.name} takes a {kind} file as another: {said}")
        elif kind == "wrong" and not re.search(rf"{re.escape(self.path(process))}:{line}: colour:", said):
            self.fault(f"{process.name} does not say what is wrong: {said}")
        soak.private(self.path(process), self.texts[process.name])

    async def reloads(self):
        began = time.monotonic()
        pause = self.arguments.seconds / (self.arguments.reloads + 1)
        for number in range(self.arguments.reloads):
            await asyncio.sleep(max(0, began + pause * (number + 1) - time.monotonic()))
            for process in self.processes:
                await self.reload(process, ("same", "changed", "wrong")[number % 3])
        await asyncio.sleep(max(0, began + self.arguments.seconds - time.monotonic()))

    async def run(self):
        self.tasks = set()
        self.callee = soak.Line(lambda said: None)
        self.caller = soak.Caller(self, self.caller_process)
        await self.connected(self.callee, self.device)
        await self.connected(self.caller.line, self.caller_process)
        quiet = await self.series("without reloads", self.idle)
        loud = await self.series("with reloads", self.reloads)
        for process in self.processes:
            if process.process.poll() is not None:
                self.fault(f"{process.name} ended by itself")

        def late(counted):
            return sum(counted[end][key] for end in ENDS for key in ("late", "frames_skipped"))

        is_judged = late(quiet) == 0
        if is_judged and late(loud) > 0:
            self.fault(f"{late(loud)} packets and frames are late while files are read again, and none otherwise")
        if not is_judged:
            self.say("the machine is late without reloads, so lateness under reloads is not judged")
        return {
            "calls": self.arguments.calls,
            "seconds": self.arguments.seconds,
            "reloads": self.arguments.reloads,
            "media": self.arguments.media,
            "without_reloads": quiet,
            "with_reloads": loud,
            "judged": is_judged,
            "faults": self.faults,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("handset")
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--reloads", type=int, default=12)
    parser.add_argument("--media", choices=("sdes", "webrtc"), default="sdes")
    parser.add_argument("--folder")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.folder or tempfile.mkdtemp(prefix="handset-reload-")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    run = Reload(arguments, folder)
    run.log_file = open(os.path.join(folder, "reload.log"), "w")
    try:
        run.start_both()
        result = asyncio.run(run.run())
    finally:
        for process in run.processes:
            process.end()
    print(json.dumps(result, indent=2))
    if not arguments.keep and not run.faults:
        shutil.rmtree(folder)
    elif arguments.keep or run.faults:
        print(f"logs are in {folder}", file=sys.stderr)
    sys.exit(1 if run.faults else 0)


if __name__ == "__main__":
    main()
