"""Strangers, which send hostile datagrams to a device's ports, one deed after another in an order set by the seed."""

from __future__ import annotations

import asyncio
import random
import struct
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from control import Intruder
from device import SERVER
from wire import MAGIC, Address, Description, Headers, Hear, Keys, Message, Socket, offer, packet, request

if TYPE_CHECKING:
    from bystander import Call
    from model import Model

VICTIM = "127.9.9.9"  # A third party, which takes no part.
# Bytes that one INVITE may have sent to a third party (docs/security.md): RTP, and 8 reports of at most 120 bytes.
ELSEWHERE = 3_096 + 8 * 120
# Bytes of ICE that a description may have sent to it, and for each candidate: `UnprovenChecks`, and its pace for 10 s.
CHECKS, OF_CANDIDATE = 6_600, 300
METHODS = ["OPTIONS", "REGISTER", "SUBSCRIBE", "NOTIFY", "MESSAGE", "INFO", "UPDATE", "PRACK", "REFER", "PUBLISH", "BYE", "ACK"]
METHODS += ["CANCEL", "INVITE", "FOO", "options", "I" * 300]
WAYS = ["a=sendrecv", "a=sendonly", "a=recvonly", "a=inactive", "a=rtcp-mux", "a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level"]
BURST = 20  # Datagrams between two turns of the loop.


class Stranger:
    """One attacker with many addresses."""

    def __init__(self, model: Model, number: int, random: random.Random) -> None:
        self.model, self.number, self.random = model, number, random
        self.tone = model.strangers_tones[number % len(model.strangers_tones)]
        self.deeds = {
            self.options_flood: 6,
            self.crowd: 3,
            self.rubbish: 6,
            self.mutants: 8,
            self.huge_headers: 3,
            self.huge_bodies: 3,
            self.invite_and_vanish: 6,
            self.invite_and_cancel: 5,
            self.invite_elsewhere: 4,
            self.invite_with_candidates: 2,
            self.call: 8,
            self.odd_requests: 8,
            self.spoofed_requests: 10,
            self.spoofed_responses: 5,
            self.forged_registrar: 3,
            self.stray_rtp: 12,
            self.stray_reports: 5,
            self.stray_ice: 4,
            self.many_sources_of_rtp: 3,
            self.control: 5,
        }

    def __str__(self) -> str:
        return f"stranger-{self.number}"

    def host(self) -> str:
        return f"127.{self.random.randrange(20, 200)}.{self.random.randrange(256)}.{self.random.randrange(1, 255)}"

    def token(self, bits: int = 64) -> str:
        return f"{self.random.getrandbits(bits):x}"

    def caller(self) -> str:
        """A caller that the device admits (`answer.allow`), so that only counted calls use up its limit."""
        return f"<sip:caller@evil.test>;tag={self.token(32)}"

    async def live(self) -> None:
        deeds, weights = list(self.deeds), list(self.deeds.values())
        while self.model.is_running:
            deed = self.random.choices(deeds, weights)[0]
            self.model.step(self, deed.__name__)
            try:
                await deed()
            except OSError as error:
                self.model.outcomes[f"not sent: {error.strerror}"] += 1
            await asyncio.sleep(self.random.expovariate(1 / self.model.pause))

    async def send(self, socket: Socket, datagrams: Iterable[bytes], target: Address | None = None) -> None:
        """Sends to the device's SIP port, or to a target."""
        for number, data in enumerate(datagrams, 1):
            if target is None:
                await self.model.pace()
            socket.send(data, target or self.model.device.address)
            self.model.sent(1, target is None)
            if number % BURST == 0:
                await asyncio.sleep(0)

    async def socket(self, hear: Hear | None = None, host: str | None = None) -> Socket:
        return await Socket.open(host or self.host(), hear or (lambda data, source: None))

    def request(
        self,
        method: str,
        source: Address,
        body: bytes = b"",
        more: Headers = (),
        call: str | None = None,
        branch: str | None = None,
        to: str = "<sip:echo@sip.test>",
        who: str | None = None,
        sequence: int | None = None,
    ) -> Message:
        """A request; names that are not given are new ones."""
        host, port = self.model.device.address
        who = who or f"<sip:nobody-{self.token(32)}@evil.test>;tag={self.token(32)}"
        sequence = sequence or self.random.randrange(1, 1 << 31)
        branch, call = branch or MAGIC + self.token(), call or self.token()
        return request(method, f"sip:echo@{host}:{port}", source, branch, who, to, call, sequence, more, body)

    # --- Floods ---

    async def options_flood(self) -> None:
        socket = await self.socket()
        count = self.random.choice([50, 200, 600, 1500])
        method = self.random.choice(["OPTIONS", "OPTIONS", "REGISTER", "INVITE"])
        body = offer(socket.address[0], 40000) if method == "INVITE" else b""
        await self.send(socket, (self.request(method, socket.address, body).data() for _ in range(count)))
        socket.close()

    async def crowd(self) -> None:
        """A few from each of many addresses."""
        for _ in range(self.random.choice([20, 60])):
            socket = await self.socket()
            await self.send(socket, (self.request("OPTIONS", socket.address).data() for _ in range(5)))
            socket.close()

    async def huge_headers(self) -> None:
        socket = await self.socket()
        filler = [("Via", f"SIP/2.0/UDP h{number}.{'x' * 400}.test;branch={MAGIC}{number}") for number in range(60)]
        await self.send(socket, (self.request("OPTIONS", socket.address, more=filler).data() for _ in range(self.random.choice([10, 80]))))
        socket.close()

    async def huge_bodies(self) -> None:
        socket = await self.socket()
        body = offer(socket.address[0], 40000, more=["a=" + "x" * 1000] * 55)
        await self.send(socket, (self.request("INVITE", socket.address, body).data() for _ in range(self.random.choice([5, 40]))))
        socket.close()

    async def rubbish(self) -> None:
        socket = await self.socket()
        size = self.random.choice([0, 1, 4, 20, 500, 1400, 9000, 60000])
        count = 20 if size > 2000 else self.random.choice([50, 500, 2000])
        tail = self.random.choice([b"", b" SIP/2.0\r\n", b"\r\n\r\n"])
        await self.send(socket, (self.random.randbytes(size) + tail for _ in range(count)))
        socket.close()

    async def mutants(self) -> None:
        """Messages that were cut, changed or doubled."""
        socket = await self.socket()
        for _ in range(40):
            method = self.random.choice(METHODS)
            data = bytearray(self.request(method, socket.address, offer(socket.address[0], 40000)).data())
            for _ in range(self.random.randrange(1, 5)):
                at = self.random.randrange(len(data) or 1)
                kind = self.random.randrange(5)
                if kind == 0:
                    data[at : at + 1] = self.random.randbytes(1)
                elif kind == 1:
                    del data[at : at + self.random.randrange(1, 200)]
                elif kind == 2:
                    data[at:at] = data[at : at + self.random.randrange(1, 100)]
                elif kind == 3:
                    data[at:at] = self.random.choice(
                        [b"\0", b"\r\n", b"\r\n\r\n", b"%00", b"\xff\xfe", b'"', b"<", b";" * 99, b"[::1", b","]
                    )
                else:
                    text = bytes(data)
                    number = self.random.choice([b"-1", b"0", b"4294967296", b"99999999999999999999", b"1e9", b""])
                    data = bytearray(text.replace(self.random.choice([b"70", b"40000", b" 1 ", b"8000", b"5060"]), number))
                if not data:
                    break
            await self.send(socket, [bytes(data)])
            await asyncio.sleep(0)
        socket.close()

    async def odd_requests(self) -> None:
        """Requests of every method without a call, with odd values."""
        socket = await self.socket()
        victim = f"sip:x@{VICTIM}:{self.model.victim.address[1]}"
        more = self.random.choice(
            [
                [("Refer-To", f"<{victim}>")],
                [("Replaces", f"{self.token()};to-tag=1;from-tag=2")],
                [("Route", f"<{victim};lr>")],
                [("Record-Route", f"<{victim};lr>")] * 60,
                [("Require", "100rel, timer, nonsense")],
                [("Expires", "4294967295")],
                [("Retry-After", "4294967295")],
                [("Session-Expires", "1"), ("Min-SE", "0")],
                [("Max-Forwards", "0")],
                [("Contact", f"<{victim}>")],
                [("Event", "refer"), ("Subscription-State", "active")],
                [("Content-Encoding", "gzip")],
                [("P-Asserted-Identity", "<sip:boss@sip.test>")],
                [("RSeq", "1"), ("RAck", "1 1 INVITE")],
                [("Alert-Info", f"<{victim}>")],
            ]
        )
        await self.send(socket, (self.request(method, socket.address, more=more).data() for method in self.random.sample(METHODS, 6)))
        socket.close()

    # --- Calls of its own ---

    async def invite_and_vanish(self) -> None:
        """A call without an ACK, or with an ACK and no media."""
        if self.model.takes_place():
            self.model.keep(self._call(acknowledges=self.random.random() < 0.5, speaks=False))

    async def call(self) -> None:
        """A call with media: proper, of many SSRCs, replayed or with wrong tags."""
        if self.model.takes_place():
            self.model.keep(self._call(acknowledges=True, speaks=True))

    async def _call(self, acknowledges: bool, speaks: bool) -> None:
        answers = asyncio.Queue()
        is_by_server = self.model.mode == "server" and self.random.random() < 0.7  # A caller that the server admits.
        socket = await self.socket(lambda data, source: answers.put_nowait((data, source)), SERVER if is_by_server else None)
        media = await self.socket()
        keys = self.random.randbytes(30) if self.random.random() < 0.6 else None
        try:
            invite = self.request("INVITE", socket.address, offer(*media.address, keys), who=self.caller())
            await self.send(socket, [invite.data()])
            final = await self._final(answers, invite)
            if self.model.mode == "server" and not is_by_server and final is not None:
                self.model.fault(f"{self}'s INVITE is answered with {final.status}, though only the server's calls are")
            self.model.outcomes[f"INVITE {final.status if final else 'unanswered'}"] += 1
            if final is None or final.status >= 300:
                return
            sequence, described = int(invite["CSeq"].split(" ")[0]), Description(final.body)
            if acknowledges:
                await self.send(socket, [self._inside(invite, final, socket, "ACK", sequence)])
            if speaks and described.port:
                await self._speak(media, (described.host, described.port), keys)
            await self._answer_probes(socket, answers)
            await self._end(invite, final, socket, sequence, keys)
            await asyncio.sleep(0.05)
        finally:
            socket.close()
            media.close()

    def _inside(
        self, invite: Message, final: Message, socket: Socket, method: str, sequence: int, body: bytes = b"", more: Headers = ()
    ) -> bytes:
        """A request in a call of its own."""
        call, who = invite["Call-ID"], invite["From"]
        return self.request(method, socket.address, body, more, call=call, to=final["To"], who=who, sequence=sequence).data()

    async def _end(self, invite: Message, final: Message, socket: Socket, sequence: int, keys: bytes | None) -> None:
        """Transfers the call, moves it, replaces it, does all at once, ends it, or leaves it."""

        def inside(method: str, after: int, body: bytes = b"", more: Headers = ()) -> bytes:
            return self._inside(invite, final, socket, method, sequence + after, body, more)

        deed = self.random.choice(["REFER", "INVITE", "Replaces", "all", "storm", "BYE", "BYE", "nothing"])
        if deed == "REFER":
            await self.send(socket, [inside("REFER", 1, more=[("Refer-To", f"<sip:x@{VICTIM}:{self.model.victim.address[1]}>")])])
        elif deed == "INVITE" and self.model.mode == "anybody":  # A caller that the server admits may move its call.
            self.model.names_victim()
            await self.send(socket, [inside("INVITE", 1, offer(VICTIM, self.model.victim.address[1], keys))])
        elif deed == "Replaces" and self.model.takes_place():
            replaces = f"{invite['Call-ID']};to-tag={final['To'].partition('tag=')[2]};from-tag={invite['From'].partition('tag=')[2]}"
            body = offer(socket.address[0], 40000, keys)
            again = self.request("INVITE", socket.address, body, [("Replaces", replaces)], who=self.caller())
            await self.send(socket, [again.data()] * self.random.choice([1, 2]))
        elif deed == "all":
            await self.send(socket, [inside(method, 1 + at) for at, method in enumerate(METHODS[:14])])
        elif deed == "storm":
            kinds = ["INFO", "UPDATE", "PRACK", "NOTIFY", "MESSAGE", "INVITE", "OPTIONS"]
            moved = [offer(socket.address[0], 40_000 + 2 * at, keys, [self.random.choice(WAYS)]) for at in range(20)]
            storm = ((self.random.choice(kinds), 1 + at, self.random.choice(moved)) for at in range(300))
            await self.send(socket, (inside(*each) for each in storm))
        elif deed == "BYE":
            await self.send(socket, [inside("BYE", 20)])

    async def _answer_probes(self, socket: Socket, answers: asyncio.Queue) -> None:
        """Reads what comes in the call for a while, and answers the device's requests, well or badly."""
        behaves = self.random.choice(["answers", "is silent", "refuses", "answers with rubbish", "answers twice"])
        ends = time.monotonic() + self.random.choice([0, 1, 6, 12])
        while self.model.is_running and time.monotonic() < ends:
            try:
                data, _ = await asyncio.wait_for(answers.get(), 0.5)
            except TimeoutError:
                continue
            message = Message.parse(data)
            if message and not message.status:
                self.model.outcomes[f"{message.method} from the device, peer {behaves}"] += 1
                await self._answer(socket, message, behaves)

    async def _final(self, answers: asyncio.Queue, invite: Message) -> Message | None:
        async def read() -> Message | None:
            while True:
                data, _ = await answers.get()
                message = Message.parse(data)
                if message and message.status >= 200 and message["Call-ID"] == invite["Call-ID"]:
                    return message

        try:
            return await asyncio.wait_for(read(), 4)
        except TimeoutError:
            return None

    async def _answer(self, socket: Socket, message: Message, behaves: str) -> None:
        if behaves == "answers":
            await self.send(socket, [message.answer(200).data()])
        elif behaves == "refuses":
            await self.send(socket, [message.answer(self.random.choice([404, 481, 503]), "No", [("Retry-After", "4294967295")]).data()])
        elif behaves == "answers with rubbish":
            await self.send(socket, [message.answer(200, body=self.random.randbytes(30000)).data()[: -self.random.randrange(1, 9000)]])
        elif behaves == "answers twice":
            await self.send(socket, [message.answer(code).data() for code in (100, 200, 481, 200)])

    async def _speak(self, media: Socket, target: Address, keys: bytes | None) -> None:
        """Sends media, with keys or without."""
        own = Keys(keys) if keys else None
        kind = self.random.choice(
            ["proper", "proper", "new SSRCs", "new SSRCs", "SSRCs of reports", "replays", "bad tags", "odd packets", "odd reports"]
        )
        self.model.outcomes[f"media: {kind}{' with keys' if own else ''}"] += 1
        ssrc, first = self.random.getrandbits(32), self.random.getrandbits(14)
        seconds = self.random.choice([1, 3])
        if kind == "proper":
            for number in range(seconds * 50):
                plain = packet(first + number, number * 160, ssrc, self.tone.frame)
                await self.send(media, [own.protect(plain) if own else plain], target)
                await asyncio.sleep(0.018)
            return
        data = []
        for number in range(self.random.choice([300, 1500])):
            if kind == "new SSRCs":
                plain = packet(first, 0, (ssrc + number * 977) & 0xFFFFFFFF, self.tone.frame)
                data.append(own.protect(plain) if own else plain)
            elif kind == "SSRCs of reports":
                plain = struct.pack(">BBHI", 0x80, 201, 1, (ssrc + number * 977) & 0xFFFFFFFF)
                data.append(own.protect_report(plain, number) if own else plain)
            elif kind == "odd packets":
                plain = self._odd_packet(first + number, ssrc)
                data.append(own.protect(plain) if own else plain)
            elif kind == "odd reports":
                plain = b"".join(self._odd_report(ssrc) for _ in range(self.random.randrange(1, 5)))
                data.append(own.protect_report(plain, number) if own else plain)
            elif kind == "replays":
                plain = packet(first + number % 3, 0, ssrc, self.tone.frame)
                data.append(own.protect(plain) if own else plain)
            else:
                data.append(packet(first + number, number * 160, ssrc, self.tone.frame + self.random.randbytes(10)))
            if number % BURST == 0:
                await asyncio.sleep(0)
        for at in range(0, len(data), 100):
            await self.send(media, data[at : at + 100], target)
            await asyncio.sleep(0.05)

    def _odd_packet(self, sequence: int, ssrc: int) -> bytes:
        """A packet with CSRCs, an extension or padding, which may have other lengths than it says, and up to 1,500 bytes."""
        sources, has_extension, is_padded = self.random.choice([0, 0, 1, 15]), self.random.random() < 0.4, self.random.random() < 0.4
        flags = 0x80 | is_padded << 5 | has_extension << 4 | sources
        data = struct.pack(">BBHII", flags, self.random.choice([0, 0, 8, 13, 101, 229, 127]), sequence & 0xFFFF, sequence * 160, ssrc)
        data += self.random.randbytes(4 * self.random.choice([sources, sources, 0]))
        if has_extension:
            words = self.random.choice([0, 1, 2, 65_535])
            data += struct.pack(">HH", self.random.choice([0xBEDE, 0x1000, 0]), words) + self.random.randbytes(4 * min(words, 50))
        data += self.random.randbytes(self.random.choice([0, 1, 4, 160, 160, 161, 320, 1_400]))
        return data[:-1] + bytes([self.random.choice([0, 1, 4, 255])]) if is_padded else data

    def _odd_report(self, ssrc: int) -> bytes:
        """RTCP: SR, RR, SDES, BYE, APP, feedback or XR, with a count and a length of its own."""
        kind, count = self.random.randrange(200, 208), self.random.randrange(32)
        body = self.random.randbytes(4 * self.random.choice([0, 1, 2, 5, 6, 100]))
        if kind in (205, 206):
            count, body = self.random.choice([1, 3, 4, 15, count]), struct.pack(">II", ssrc, ssrc) + body
        words = self.random.choice([len(body) // 4 + 1] * 5 + [0, 65_535])
        return struct.pack(">BBHI", 0x80 | count, kind, words, self.random.choice([ssrc, self.random.getrandbits(32)])) + body

    async def invite_and_cancel(self) -> None:
        socket = await self.socket()
        for _ in range(self.random.choice([1, 4])):
            branch, call, who = MAGIC + self.token(), self.token(), self.caller()
            if not self.model.takes_place():
                break
            same: dict[str, Any] = {"branch": branch, "call": call, "who": who, "sequence": 1}
            invite = self.request("INVITE", socket.address, offer(socket.address[0], 40000), **same)
            await self.send(socket, [invite.data()])
            await asyncio.sleep(self.random.choice([0, 0, 0.02, 0.3]))
            await self.send(socket, [self.request("CANCEL", socket.address, **same).data()] * self.random.choice([1, 3]))
        socket.close()

    async def invite_elsewhere(self) -> None:
        """A description that names a third party."""
        if not self.model.takes_place():
            return
        socket = await self.socket()
        invite = self.request("INVITE", socket.address, offer(VICTIM, self.model.victim.address[1]), who=self.caller())
        self.model.names_victim()
        await self.send(socket, [invite.data()])
        socket.close()

    async def invite_with_candidates(self) -> None:
        """A description whose ICE candidates, or whose DTLS server, are a third party."""
        if not self.model.takes_place():
            return
        socket, ports = await self.socket(), [victim.address[1] for victim in self.model.victims]
        fragment = "".join(self.random.choices("abcdef", k=self.random.choice([4, 256])))
        secure = ["a=fingerprint:sha-256 " + ":".join(["AB"] * 32), f"a=setup:{self.random.choice(['actpass', 'passive', 'active'])}"]
        ice = ["a=rtcp-mux", f"a=ice-ufrag:{fragment}", "a=ice-pwd:abcdefghijklmnopqrstuvwx"]
        ice += [f"a=candidate:{at} 1 udp {9_999 - at} {VICTIM} {port} typ host" for at, port in enumerate(ports)]
        body = offer(VICTIM, ports[0], more=secure + (ice if self.random.random() < 0.7 else [])).replace(b"RTP/AVP", b"UDP/TLS/RTP/SAVP")
        self.model.names_victim(CHECKS + len(ports) * OF_CANDIDATE)
        await self.send(socket, [self.request("INVITE", socket.address, body, who=self.caller()).data()])
        socket.close()

    # --- Control over HTTP ---

    async def control(self) -> None:
        """Requests of a stranger without the token."""
        await Intruder(self, self.random).intrude()

    # --- Calls of others ---

    def known_call(self) -> Call | None:
        """A bystander's call, of which this stranger has read each message."""
        return self.random.choice(sorted(self.model.open_calls, key=lambda call: call.id)) if self.model.open_calls else None

    async def spoofed_requests(self) -> None:
        """Ends, moves, transfers, replaces or cancels a bystander's call."""
        call = self.known_call()
        if call is None:
            return
        socket = await self.socket(host=self.random.choice([None, None, None, VICTIM]))
        victim = f"<sip:x@{VICTIM}:{self.model.victim.address[1]}>"
        of_callee: dict[str, Any] = {
            "call": call.id,
            "to": call.remote,
            "who": call.local,
            "sequence": call.sequence + self.random.choice([1, 1, 50]),
        }
        caller = self.random.choice([call.signaling.address, socket.address])  # The address in its headers.
        moved = offer(socket.address[0], socket.address[1], call.keys)
        deeds = {
            "BYE": lambda: self.request("BYE", caller, **of_callee),
            "INVITE": lambda: self.request("INVITE", caller, moved, **of_callee),
            "UPDATE": lambda: self.request("UPDATE", caller, moved, **of_callee),
            "REFER": lambda: self.request("REFER", caller, more=[("Refer-To", victim)], **of_callee),
            "INFO": lambda: self.request("INFO", caller, b"Signal=1\r\nDuration=160\r\n", **of_callee),
            "CANCEL": lambda: self.request("CANCEL", caller, branch=call.branch, call=call.id, who=call.local, sequence=call.sequence),
            "ACK": lambda: self.request("ACK", caller, **of_callee),
            "Replaces": lambda: self.request(
                "INVITE",
                socket.address,
                moved,
                more=[("Replaces", f"{call.id};to-tag={call.remote.partition('tag=')[2]};from-tag={call.tag}")],
            ),
        }
        name = self.random.choice(list(deeds))
        self.model.outcomes[f"spoofed {name}"] += 1
        self.model.spoofed(call, name)
        await self.send(socket, [deeds[name]().data()] * self.random.choice([1, 2]))
        await asyncio.sleep(0.2)
        socket.close()

    async def spoofed_responses(self) -> None:
        """Answers to the device with the names of a bystander's call."""
        call = self.known_call()
        if call is None:
            return
        socket = await self.socket()
        host, port = self.model.device.address
        for method in "OPTIONS", "BYE", "INVITE":
            fake = request(method, "sip:x@x", (host, port), MAGIC + self.token(), call.remote, call.local, call.id, 1)
            await self.send(
                socket, [fake.answer(self.random.choice([200, 302, 408, 481, 603]), "Gone", [("Contact", f"<sip:x@{VICTIM}>")]).data()]
            )
        socket.close()

    async def forged_registrar(self) -> None:
        """Answers to the device's last REGISTER, with its names."""
        last = self.model.server.last
        socket = await self.socket()
        code, headers = self.random.choice(
            [
                (403, ()),
                (503, [("Retry-After", "604800")]),
                (302, [("Contact", f"<sip:{VICTIM}>")]),
                (423, [("Min-Expires", "604800")]),
                (200, [("Contact", "<sip:x@y>;expires=604800")]),
                (401, [("WWW-Authenticate", 'Digest realm="sip.test", nonce="x"')]),
            ]
        )
        await self.send(socket, [last.answer(code, "Forged", headers, tag="forged").data()] * 3)
        self.model.forged()
        socket.close()

    # --- Media of others ---

    async def stray_rtp(self) -> None:
        """Packets to the media port of a bystander's call, with its SSRC or another."""
        call = self.known_call()
        if call is None:
            return
        heard = []
        socket = await self.socket(lambda data, source: heard.append(data), self.random.choice([call.bystander.host, *[None] * 4]))
        ssrc = self.random.choice([call.ssrc, self.random.getrandbits(32)])
        sealed = Keys(self.random.randbytes(30)) if call.keys and self.random.random() < 0.5 else None
        first = self.random.getrandbits(15)
        self.model.stray(call, socket)
        for number in range(self.random.choice([3, 60])):
            plain = packet(first + number, number * 160, ssrc, self.tone.frame, kind=self.random.choice([0, 0, 0, 101, 127]))
            await self.send(socket, [sealed.protect(plain) if sealed else plain], call.peer)
            await asyncio.sleep(0.015)
        await asyncio.sleep(0.3)
        self._hears_nothing(call, heard)
        socket.close()

    def _hears_nothing(self, call: Call, heard: list[bytes]) -> None:
        """Checks that a stranger receives no sound of a bystander, and few bytes in all."""
        leaked = sum(call.bystander.tone.share(data[12:]) > 0.5 for data in heard)
        if leaked:
            self.model.fault(f"{self} hears {leaked} packets of {call.bystander.name}'s sound")
        if sum(map(len, heard)) > 4000:
            self.model.fault(f"{self} got {sum(map(len, heard))} bytes of {call.bystander.name}'s call")

    async def many_sources_of_rtp(self) -> None:
        call = self.known_call()
        if call is None:
            return
        for _ in range(30):
            heard: list[bytes] = []
            socket = await self.socket(lambda data, source: heard.append(data))
            self.model.stray(call, socket)
            await self.send(socket, [packet(self.random.getrandbits(16), 0, self.random.getrandbits(32), self.tone.frame)] * 5, call.peer)
            await asyncio.sleep(0.02)
            self._hears_nothing(call, heard)
            socket.close()

    async def stray_reports(self) -> None:
        """RTCP: reports, BYE with the peer's SSRC, feedback, and wrong lengths."""
        call = self.known_call()
        if call is None:
            return
        socket = await self.socket()
        for _ in range(60):
            kind = self.random.choice([200, 201, 203, 203, 204, 205, 206, 207])
            size = self.random.choice([0, 1, 6, 200])
            data = struct.pack(
                ">BBHI",
                0x80 | self.random.randrange(32),
                kind,
                self.random.choice([size, 1, 65535]),
                self.random.choice([call.ssrc, self.random.getrandbits(32)]),
            ) + self.random.randbytes(size * 4)
            await self.send(socket, [data], call.peer)
        socket.close()

    async def stray_ice(self) -> None:
        """STUN, DTLS and other datagrams to the port of a call without ICE."""
        call = self.known_call()
        if call is None:
            return
        socket = await self.socket()
        for _ in range(60):
            stun = struct.pack(">HHI", self.random.choice([1, 0x101, 0x111]), self.random.choice([0, 8, 65535]), 0x2112A442)
            data = self.random.choice(
                [
                    stun + self.random.randbytes(12 + self.random.choice([0, 8, 300])),
                    b"\x16\xfe\xfd" + self.random.randbytes(300),
                    bytes([self.random.randrange(256)]) + self.random.randbytes(self.random.choice([0, 1, 11, 1400])),
                    b"",
                ]
            )
            await self.send(socket, [data], call.peer)
        socket.close()
