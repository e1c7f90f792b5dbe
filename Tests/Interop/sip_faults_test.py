#!/usr/bin/env python3
"""Devices at SIP servers that fail: names that lead to several servers, dead connections, other addresses, and two proxies of
which one is killed during a call.

usage: sip_faults_test.py HANDSET [CHECK…]

Exits with 0 if every check passed, and prints what was measured. Needs namespaces of its own for network and mounts: it replaces
resolv.conf, adds interfaces and drops packets. scripts/interop-sip makes them.
"""

import contextlib
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from sip_stage import (
    FOLDER,
    PEER,
    PORT,
    Device,
    Failed,
    Kamailio,
    Program,
    configuration,
    expect_tone,
    main,
    make_network,
    make_tone,
    records,
    run,
    running,
    wait,
)

# Connections to other addresses are in the clear here, so that no keys are written.
PLAIN = "allow_plain_rtp: true, offers: plain"
NODES = {1: (26161, 26261), 2: (26162, 26262)}
FAR, NEAR, NEW = "10.98.0.1", "10.98.0.2", "10.98.0.3"


class NameServer(Program):
    """dnsmasq at this machine's port 53."""

    def __init__(self, folder, *records):
        super().__init__(
            "dnsmasq",
            [
                "dnsmasq",
                "--keep-in-foreground",
                "--conf-file=/dev/null",
                "--no-resolv",
                "--no-hosts",
                "--bind-interfaces",
                "--listen-address=127.0.0.1",
                "--local=/test/",
                "--user=root",
                "--group=",
                "--pid-file=",
                "--local-ttl=30",
                "--log-queries",
                "--log-facility=-",
                *records,
            ],
            folder,
        )
        wait("dnsmasq answers", lambda: self.says("started, version"))


class Node(Program):
    """One of two proxies with one location."""

    def __init__(self, folder, number):
        self.number = number
        port, dmq = NODES[number]
        text = (FOLDER / "node.cfg").read_text()
        for word, value in (("OWNDMQ", dmq), ("OTHERDMQ", NODES[3 - number][1]), ("PORT", port)):
            text = text.replace(word, str(value))
        (folder / f"node{number}.cfg").write_text(text)
        (folder / f"run{number}").mkdir(exist_ok=True)
        super().__init__(
            f"node{number}",
            [
                "setsid",
                "--wait",
                "kamailio",
                "-DD",
                "-E",
                "-f",
                folder / f"node{number}.cfg",
                "-m",
                "64",
                "-M",
                "8",
                "-P",
                folder / f"node{number}.pid",
                "-Y",
                folder / f"run{number}",
            ],
            folder,
        )
        wait("kamailio listens", lambda: self.says("") or self.listens(port))
        self.pid = folder / f"node{number}.pid"

    @staticmethod
    def listens(port):
        import socket

        with contextlib.suppress(OSError), socket.create_connection((PEER, port), 1):
            return True
        return False

    def kill(self):
        """Ends all of its processes at once, without notice."""
        main = wait("its number", lambda: self.pid.exists() and self.pid.read_text().strip())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(os.getpgid(int(main)), signal.SIGKILL)

    def stop(self, seconds=10):
        self.kill()
        super().stop(seconds)


def moments(device, message):
    """When a device logged a message, in seconds."""
    found = []
    for line in device.text().splitlines():
        if f'"message":"{message}"' in line:
            stamp = json.loads(line)["time" if '"time"' in line else "timestamp"]
            found.append(datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp())
    return found


def rule(action, *words):
    run("iptables", action, *words)


@contextlib.contextmanager
def dropping(*ports):
    """Drops what goes to those TCP ports, without an answer."""
    rules = [
        (chain, "-p", "tcp", way, str(port), "-j", "DROP") for port in ports for chain, way in (("INPUT", "--dport"), ("INPUT", "--sport"))
    ]
    for words in rules:
        rule("-A", *words)
    try:
        yield
    finally:
        for words in rules:
            rule("-D", *words)


# --- Checks -----------------------------------------------------------------------------------------------------------


def names(handset, folder):
    """SRV and NAPTR records lead to kamailio; a server that is down is skipped."""
    hosts = [
        "--host-record=s1.sip.test,10.99.0.2",
        f"--host-record=s2.sip.test,{PEER}",
        "--srv-host=_sip._tcp.sip.test,s1.sip.test,25999,10,10",
        f"--srv-host=_sip._tcp.sip.test,s2.sip.test,{PORT},20,10",
        f"--srv-host=_sip._udp.sip.test,s2.sip.test,{PORT},10,10",
    ]
    rules = ["--naptr-record=sip.test,10,50,s,SIP+D2T,,_sip._tcp.sip.test", "--naptr-record=sip.test,20,50,s,SIP+D2U,,_sip._udp.sip.test"]
    for transport, extra, expected in (
        ("tcp", [], f"TCP {PEER}:{PORT}"),
        ("udp", [], f"UDP {PEER}:{PORT}"),
        ("auto", rules, f"TCP {PEER}:{PORT}"),
    ):
        with (
            running(NameServer(folder, *hosts, *extra)),
            running(Kamailio(folder)),
            running(Device(handset, folder, f"names-{transport}", transport, server="", account="allow_plain_text: true")) as device,
        ):
            opened = re.findall(r'"target":"([^"]*)"', device.text())
            if not opened or opened[-1] != expected:
                raise Failed(f"{transport}: opened {opened}, not {expected}")


def dead_flow(handset, folder):
    """A TCP connection that drops everything is noticed within a keepalive, and never used again."""
    with (
        running(Kamailio(folder)),
        running(Device(handset, folder, "dead", sip="keepalive_s: 5", server=f"{PEER}:{PORT}", account="allow_plain_text: true")) as device,
    ):
        # Kamailio answers pings, so silence is a fault.
        time.sleep(6)
        begun = time.time()
        with dropping(PORT):
            wait("the device notices", lambda: device.says("The flow to the SIP server has ended"), 30)
        noticed = time.time() - begun
        wait("registered again", lambda: device.count("Registered at the SIP server") == 2, 40)
        print(
            f"dead_flow: noticed after {noticed:.1f} s with keepalives each 5 s; registered again "
            f"{time.time() - begun - noticed:.1f} s after the way was free",
            flush=True,
        )
        if noticed > 6:
            raise Failed(f"noticed after {noticed:.1f} s")


@contextlib.contextmanager
def far_network():
    """A network namespace whose only connection is a link of its own."""
    run("ip", "netns", "add", "device")
    run("ip", "link", "add", "d2", "type", "veth", "peer", "name", "d3", "netns", "device")
    run("ip", "address", "add", f"{FAR}/24", "dev", "d2")
    run("ip", "link", "set", "d2", "up")
    inside("ip", "link", "set", "lo", "up")
    inside("ip", "address", "add", f"{NEAR}/24", "dev", "d3")
    inside("ip", "link", "set", "d3", "up")
    inside("ip", "route", "add", "default", "via", FAR)
    try:
        yield
    finally:
        run("ip", "netns", "delete", "device")


def inside(*command):
    run("ip", "netns", "exec", "device", *command)


class FarDevice(Device):
    """A device in the other network."""

    def __init__(self, handset, folder, name, **options):
        wrapper = folder / f"{name}.sh"
        wrapper.write_text(f'#!/bin/sh\nexec ip netns exec device {handset} "$@"\n')
        wrapper.chmod(0o755)
        super().__init__(wrapper, folder, name, server=f"{PEER}:{PORT}", account="allow_plain_text: true", media=PLAIN, **options)


def network_changes(handset, folder):
    """Another address registers at once, and repairs a call. A link that comes back registers within a second, or two: TCP repeats
    a first packet that was lost as the link came up after one (RFC 6298 section 2)."""
    with (
        far_network(),
        running(Kamailio(folder)),
        running(FarDevice(handset, folder, "roams", sip="keepalive_s: 5", behaviour="source: tone, frequency_hz: 500")) as device,
    ):
        recording, tone = folder / "alice.wav", folder / "tone.wav"
        make_tone(tone, 440)
        caller = subprocess.Popen(
            [
                handset,
                "call",
                "roams",
                "--config",
                str(caller_configuration(folder)),
                "--json",
                "--play",
                str(tone),
                "--record",
                str(recording),
                "--duration",
                "12",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        wait("the call is established", lambda: device.says('"message":"Media flows both ways"'), 20)
        begun = time.time()
        inside("ip", "address", "add", f"{NEW}/24", "dev", "d3")
        inside("ip", "address", "delete", f"{NEAR}/24", "dev", "d3")
        inside("sh", "-c", f"ip address show dev d3 | grep -q {NEW} || ip address add {NEW}/24 dev d3")
        inside("sh", "-c", f"ip route show default | grep -q . || ip route add default via {FAR}")
        wait("registered again", lambda: device.count("Registered at the SIP server") == 2, 20)
        print(f"network_changes: registered from another address {time.time() - begun:.2f} s after it came", flush=True)
        report = json.loads(caller.communicate(timeout=40)[0] or "{}")
        if report.get("outcome") != "completed":
            raise Failed(f"the call: {report}")
        received = int(re.findall(r'"received":"(\d+)"', device.text())[-1])
        if received < 400:
            raise Failed(f"the device received {received} packets, so its peer did not learn its address")
        inside("ip", "link", "set", "d3", "down")
        wait("the device notices", lambda: device.count("The flow to the SIP server has ended") == 2, 20)
        time.sleep(1)
        begun = time.time()
        inside("ip", "link", "set", "d3", "up")
        inside("sh", "-c", f"ip route show default | grep -q . || ip route add default via {FAR}")
        wait("registered again", lambda: device.count("Registered at the SIP server") == 3, 20)
        seconds = moments(device, "Registered at the SIP server")[-1] - begun
        print(f"network_changes: registered {seconds:.2f} s after the link came up", flush=True)
        if seconds > 2:
            raise Failed(f"registered {seconds:.2f} s after the link came up")


def caller_configuration(folder, name="alice", server=f"{PEER}:{PORT}", sip=""):
    files = folder / f"{name}-files"
    files.mkdir(exist_ok=True)
    return configuration(files, name, server=server, account="allow_plain_text: true", media=PLAIN, sip=sip)


def proxy_dies(handset, folder):
    """One of two kamailios that share their locations is killed during a call: media continues, both ends register at the other
    node, and either side hangs up through it."""
    hosts = [
        f"--host-record=s1.sip.test,{PEER}",
        f"--host-record=s2.sip.test,{PEER}",
        f"--srv-host=_sip._tcp.sip.test,s1.sip.test,{NODES[1][0]},10,10",
        f"--srv-host=_sip._tcp.sip.test,s2.sip.test,{NODES[2][0]},20,10",
    ]
    tone = folder / "tone.wav"
    make_tone(tone, 440, 60)
    for who in ("caller", "callee"):
        with running(NameServer(folder, *hosts)), running(Node(folder, 1)) as first, running(Node(folder, 2)):
            time.sleep(1)
            with running(
                Device(
                    handset,
                    folder,
                    f"desk-{who}",
                    server="",
                    sip="gruu: true",
                    account="allow_plain_text: true",
                    media=PLAIN,
                    behaviour="source: tone, frequency_hz: 500, record_folder: recordings",
                )
            ) as device:
                recording = folder / f"{who}.wav"
                words = folder / f"{who}.log"
                with open(words, "wb") as log:
                    caller = subprocess.Popen(
                        [
                            handset,
                            "call",
                            f"desk-{who}",
                            "--config",
                            str(caller_configuration(folder, server="", sip="gruu: true")),
                            "--json",
                            "--play",
                            str(tone),
                            "--record",
                            str(recording),
                            "--duration",
                            "14" if who == "caller" else "40",
                            "--log-level",
                            "debug",
                        ],
                        stdout=subprocess.PIPE,
                        stderr=log,
                        text=True,
                    )
                    wait("the call is established", lambda: device.says('"message":"Media flows both ways"'), 20)
                    time.sleep(2)
                    begun = time.time()
                    first.kill()
                    wait("registered at the other node", lambda: device.count("Registered at the SIP server") == 2, 20)
                    print(f"proxy_dies: registered at the other node {time.time() - begun:.2f} s after the kill", flush=True)
                    time.sleep(4)
                    if who == "callee":
                        run(handset, "control", "hangup", "--socket", device.folder / "control.sock")
                    report = json.loads(caller.communicate(timeout=60)[0] or "{}")
                if report.get("outcome") != "completed":
                    raise Failed(f"{who} hangs up: {report}: {words.read_text()[-3000:]}")
                wait("the other side's record", lambda: "completed" in records(device), 5)
                expect_tone(recording, 500, "the caller")
                seconds = report.get("duration_ms", report.get("duration", 0))
                print(f"proxy_dies: the {who} hung up through the other node; the call lasted {seconds}", flush=True)


CHECKS = [names, dead_flow, network_changes, proxy_dies]


def prepare():
    make_network()
    resolver = pathlib.Path(tempfile.mkdtemp()) / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:1\n")
    run("mount", "--bind", resolver, os.path.realpath("/etc/resolv.conf"))


if __name__ == "__main__":
    main(CHECKS, prepare)
