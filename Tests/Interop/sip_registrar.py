#!/usr/bin/env python3
"""A SIP server over UDP that accepts every registration and is busy for every call, where no real one can be installed.

usage: sip_registrar.py ADDRESS PORT

Prints the first line of each request.
"""

import re
import socket
import sys

ANSWERS = {"REGISTER": "200 OK", "OPTIONS": "200 OK", "INVITE": "486 Busy Here"}


def answer(request):
    """The response to a request; None for a request without one."""
    method = request.split(" ", 1)[0]
    if method == "ACK":
        return None
    headers = request.split("\r\n\r\n")[0].split("\r\n")[1:]
    lines = [f"SIP/2.0 {ANSWERS.get(method, '501 Not Implemented')}"]
    for line in headers:
        name = line.split(":", 1)[0].lower()
        if name == "to" and "tag=" not in line:
            line += ";tag=registrar"
        if name in ("via", "from", "to", "call-id", "cseq"):
            lines.append(line)
        elif name == "contact" and method == "REGISTER":
            lines.append(re.sub(r";expires=\d+", "", line) + ";expires=60")
    return "\r\n".join([*lines, "Content-Length: 0", "", ""])


def main():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((sys.argv[1], int(sys.argv[2])))
    while True:
        data, sender = server.recvfrom(65_535)
        request = data.decode(errors="replace")
        if not request.strip():  # A keepalive.
            continue
        print(request.split("\r\n", 1)[0], flush=True)
        response = answer(request)
        if response:
            server.sendto(response.encode(), sender)


if __name__ == "__main__":
    main()
