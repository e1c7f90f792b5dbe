#!/usr/bin/env python3
"""Offers one media worker on one core more and more calls, and reports the quality of the accepted ones.

usage: overload.py HANDSET CALLERS LOADGEN CONFIGURATION DIRECTORY --offers "N N…" --seconds S [--max-calls LIMIT]
                   -- CALLERS' OPTIONS

CONFIGURATION is that of an echoing device, to which `max_calls` and a control socket are added. For each N a fresh device
is offered N calls, 20 per second; accepted calls send speech from then on. Prints one JSON object per line: calls offered,
accepted, busy and failed; the share of packets that came back in accepted calls, in the measured seconds and in
all; the CPU that the device used, in cores; the complexity to which Opus was limited. Then all calls beyond the smallest N
are hung up, and `recovered_s` is the time until the device had recovered, if that took at most 15 s.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

#: Seconds until the load is steady, once all calls have been offered.
WARM_UP = 3
PATIENCE = 15


def pinned(core, command):
    return ["taskset", "-c", str(core), *command] if (os.cpu_count() or 1) > 1 else command


class Device:
    def __init__(self, handset, configuration, directory, limit):
        self.handset, self.socket = handset, directory / "control.sock"
        text = re.sub(r"max_calls: \S+", f"max_calls: {limit}", configuration.read_text())
        (directory / "overload.yaml").write_text(text + f"control:\n  socket: {self.socket}\n")
        self.log = (directory / "overload.log").open("w")
        self.process = subprocess.Popen(
            pinned(0, [handset, "run", "--config", directory / "overload.yaml"]), stdout=self.log, stderr=self.log
        )

    def load(self):
        answer = subprocess.run(
            pinned(1, [self.handset, "control", "status", "--json", "--socket", self.socket]), capture_output=True, text=True, timeout=60
        )
        return json.loads(answer.stdout)["status"]["load"] if answer.returncode == 0 else None

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()


def settle(device):
    """Seconds until nothing is limited any more; None if that takes too long."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        load = device.load()
        if load and load["complexity_limit"] == 10 and load["takes_calls"]:
            return round(time.monotonic() - began, 1)
        time.sleep(0.25)
    return None


def measure(arguments, offered, kept):
    device = Device(arguments.handset, arguments.configuration, arguments.directory, arguments.max_calls)
    callers = subprocess.Popen(
        pinned(1, [arguments.callers, *arguments.options, "--offer", str(offered)]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    loadgen = subprocess.Popen(
        pinned(
            1,
            [
                arguments.loadgen,
                "--growing",
                "--warm-up",
                str(WARM_UP),
                "--seconds",
                str(arguments.seconds),
                "--measure",
                str(device.process.pid),
            ],
        ),
        stdin=callers.stdout,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        taken = json.loads(callers.stderr.readline())
        totals, result = [], None
        while result is None:
            line = json.loads(loadgen.stdout.readline())
            if "cpu_us" in line:
                result = line
            else:
                totals.append(line)
        load, whole = device.load(), totals[-1]
        row = {
            "calls": offered,
            **taken,
            "delivered": round(result["received"] / max(1, result["sent"]), 4),
            # The last packets are still on their way.
            "delivered_whole": round(min(1, (whole["received"] + whole["calls"]) / max(1, whole["sent"])), 4),
            "cpu": round(result["cpu_us"] * result["calls"] * 50 / 1e6, 3),
            "complexity_limit": load["complexity_limit"] if load else None,
            "takes_calls": load["takes_calls"] if load else None,
            "generator_late": result["late"],
            "others_cpu": result["others_cpu"],
        }
        callers.stdin.write(f"keep {kept}\n")
        callers.stdin.flush()
        row["recovered_s"] = settle(device)
        return row
    finally:
        callers.stdin.close()
        callers.wait(timeout=60)
        loadgen.wait(timeout=30)
        device.end()


def main():
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("handset", "callers", "loadgen"):
        parser.add_argument(name)
    for name in ("configuration", "directory"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--offers", required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--max-calls", default="auto")
    arguments = parser.parse_args(sys.argv[1:split])
    arguments.options = sys.argv[split + 1 :]
    offers = [int(offered) for offered in arguments.offers.split()]
    for offered in offers:
        print(f"overload: {offered} calls", file=sys.stderr)
        print(json.dumps(measure(arguments, offered, min(offers))), flush=True)


if __name__ == "__main__":
    main()
