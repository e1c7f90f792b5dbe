#!/usr/bin/env python3
"""Says back what the caller says, and hangs up when the caller presses #."""

import json
import os
import socket
import threading

control = socket.socket(fileno=3)


def listen():
    for line in control.makefile(encoding="utf-8"):
        if json.loads(line).get("key") == "#":
            control.sendall(b'{"command":"hangup"}\n')


threading.Thread(target=listen, daemon=True).start()
while sound := os.read(0, 640):  # 20 ms at 16 kHz
    os.write(1, sound)
