"""A client of docs/protocol.md, written from that page alone: REST, the connection, and one device on it.

It checks every message against the page, whichever test runs: what breaks a rule is added to `violations`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import http.client
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self

import websockets

if TYPE_CHECKING:
    from exchange import Exchange

PATIENCE = 15  # Seconds that anything may take on a busy machine before it counts as hanging.

# The table of the page's chapter on errors.
ERRORS = {
    -32700: "parseError",
    -32600: "invalidRequest",
    -32601: "unknownMethod",
    -32602: "invalidParams",
    -32603: "internalError",
    4001: "notAuthenticated",
    4002: "tokenExpired",
    4003: "tokenRejected",
    4004: "tokenWrongSignature",
    4005: "tokenForAnotherSession",
    4006: "tokenRevoked",
    4030: "notAllowed",
    4031: "notRegistered",
    4040: "unknownUser",
    4041: "unknownInvite",
    4042: "unknownRoom",
    4043: "unknownCall",
    4044: "unknownGroup",
    4090: "alreadyHandled",
    4091: "inviteEnded",
    4092: "inviteTimedOut",
    4093: "inviteCancelled",
    4094: "notYours",
    4095: "groupExists",
    4130: "tooLarge",
    4290: "tooManyRequests",
    4800: "noDeviceOnline",
}

violations = []  # Broken rules of the page, as texts.
known_secrets = set()  # Every token and password that was used: none may be in a log or an error.
open_connections = set()  # Keeps those open that have no other reference.
complaints = []  # Every error message that was answered.


class Refused(Exception):
    """A request was answered with an error."""

    def __init__(self, method: str, error: dict) -> None:
        self.code, self.name = error["code"], error["data"]["name"]
        self.limit, self.message = error["data"].get("limit"), error["message"]
        super().__init__(f"{method}: {self.code} {self.name}: {self.message}")


class RESTRefused(Exception):
    """A REST call was answered with another status than 200."""

    def __init__(self, path: str, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        self.status, self.headers = status, headers
        error = json.loads(body).get("error", {}) if body else {}
        self.code, self.message = error.get("code"), error.get("message", "")
        complaints.append(self.message)
        super().__init__(f"{path}: {status} {self.code}: {self.message}")


class Lost(Exception):
    """The connection ended before the answer came."""


def remember(*values: str) -> str:
    """Notes secrets, to be looked for in logs and errors."""
    known_secrets.update(values)
    return values[0]


# --- REST ---------------------------------------------------------------------------------------------------------


def basic(key: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{key}:{secret}".encode()).decode()


def _rest(port: int, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection.request(
            method, path, body, {"Content-Type": "application/json; charset=utf-8", "User-Agent": "conformance/1 python"} | headers
        )
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


async def rest(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[Any, str]:
    """One REST call: the answer's JSON and its Trace-Id, or RESTRefused."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    status, answered, text = await asyncio.to_thread(_rest, port, method, path, body, headers)
    trace = answered.get("Trace-Id", "")
    if len(trace) != 16 or set(trace) - set("0123456789abcdef"):
        violations.append(f"{method} {path} was answered without a Trace-Id of 16 hexadecimal digits: {trace!r}")
    if status != 200:
        raise RESTRefused(path, status, answered, text)
    return json.loads(text), trace


def signed(key: str, secret: str, user: str, seconds: float = 600, algorithm: str = "HS256", **claims: Any) -> str:
    """A signed token (RFC 7519). A claim of None is left out."""

    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    now = int(time.time())
    claims = {"iss": key, "sub": user, "iat": now, "exp": now + seconds, "jti": secrets.token_hex(8)} | claims
    claims = {name: value for name, value in claims.items() if value is not None}
    text = ".".join(part(json.dumps(value).encode()) for value in ({"alg": algorithm, "typ": "JWT"}, claims))
    signature = part(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()) if algorithm == "HS256" else ""
    if signature:
        remember(signature)
    return f"{text}.{signature}"


LARGEST = 262144  # Bytes of a message that a client must take.

# --- The connection -----------------------------------------------------------------------------------------------


class Connection:
    """One WebSocket: requests with answers, and events in the order in which they came."""

    def __init__(self, socket: websockets.ClientConnection, hear: Callable[[dict], None]) -> None:
        self.socket, self.hear, self.waiting, self.last = socket, hear, {}, 0
        self.order = []  # Answers by their ids and events by their types, as they came.
        self.reading = asyncio.create_task(self._read())
        open_connections.add(self)
        self.reading.add_done_callback(lambda _: open_connections.discard(self))

    @classmethod
    async def open(cls, url: str, hear: Callable[[dict], None] = lambda event: None, **options: Any) -> Self:
        return cls(
            await websockets.connect(
                url, compression=None, ping_interval=None, open_timeout=PATIENCE, close_timeout=PATIENCE, max_size=None, **options
            ),
            hear,
        )

    async def _read(self) -> None:
        try:
            async for text in self.socket:
                self._take(text)
        except websockets.ConnectionClosed:
            pass
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Lost(f"closed with {self.socket.close_code} {self.socket.close_reason}"))
                future.exception()

    def _take(self, text: str) -> None:
        message = json.loads(text)
        if len(text.encode()) > LARGEST:
            violations.append(f"longer than a client must take: {len(text.encode())} bytes, {text[:200]}")
        if not isinstance(text, str) or message.get("jsonrpc") != "2.0":
            violations.append(f"not a JSON-RPC 2.0 message in text: {text!r}")
        if message.get("method") == "event":
            self.order.append(message["params"]["type"])
            self.hear(message["params"])
            return
        self.order.append(message["id"])
        if ("result" in message) == ("error" in message):
            violations.append(f"an answer has a result or an error: {text}")
        if "error" in message:
            error = message["error"]
            complaints.append(error["message"])
            if ERRORS.get(error["code"]) != error["data"]["name"]:
                violations.append(f"an error that the page does not list: {text}")
        elif message["result"] is None or not isinstance(message["result"], dict):
            violations.append(f"a result is an object: {text}")
        future = self.waiting.pop(message["id"], None)
        if future is None:
            violations.append(f"an answer without a request, or a second one: {text}")
        elif not future.done():
            future.set_result(message)

    def begin(self, method: str, _id: int | str | None = None, **parameters: Any) -> asyncio.Future[dict]:
        """Starts to send a request at once; awaiting what is returned gives the result, or raises Refused or Lost."""
        self.last += 1
        number = _id or self.last
        answer = self.waiting[number] = asyncio.get_running_loop().create_future()
        text = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters})

        async def finish() -> dict:
            try:
                await self.socket.send(text)
            except websockets.ConnectionClosed as error:
                raise Lost(str(error)) from error
            message = await asyncio.wait_for(answer, PATIENCE)
            if "error" in message:
                raise Refused(method, message["error"])
            return message["result"]

        asking = asyncio.ensure_future(finish())
        asking.add_done_callback(lambda done: done.cancelled() or done.exception())  # Some are never awaited.
        return asking

    async def ask(self, method: str, **parameters: Any) -> dict:
        return await self.begin(method, **parameters)

    async def raw(self, message: str | bytes) -> None:
        """Sends any text or bytes as one message."""
        await self.socket.send(message)

    async def answer_to(self, number: int | str) -> dict:
        """The whole answer with this id, for requests that were sent raw."""
        answer = self.waiting[number] = asyncio.get_running_loop().create_future()
        return await asyncio.wait_for(answer, PATIENCE)

    async def closing(self) -> int | None:
        """Waits for the exchange to close; its close code, 1006 if there was no close frame."""
        await asyncio.wait_for(self.socket.wait_closed(), PATIENCE)
        return self.socket.close_code

    def drop(self) -> None:
        """Loses the connection, as a cut cable does: without a close frame."""
        self.socket.transport.abort()

    async def close(self, code: int = 1000) -> None:
        await self.socket.close(code)
        await asyncio.wait_for(self.reading, PATIENCE)


class Device:
    """One device of a user: its session and its events, over as many connections as it takes."""

    def __init__(self, exchange: Exchange, user: str, token: str, name: str | None = None, **start: Any) -> None:
        self.exchange, self.user, self.token, self.start_with = exchange, user, token, start
        self.id = name or f"device-{secrets.token_hex(4)}"
        self.events, self.sequence = [], 0
        self.session: str | None = None
        self.line: Connection | None = None
        self.connection: str | None = None
        self.refresh_token = ""
        self.news = asyncio.Event()
        self.resuming = False

    @property
    def description(self) -> dict:
        return {"id": self.id, "name": "Conformance", "capabilities": ["audio"]}

    async def connect(self, url: str | None = None) -> Self:
        """A WebSocket without a session."""
        if url is None:
            url = f"ws://127.0.0.1:{self.exchange.port}/v1/rtc"
        line = None

        def hear(event: dict) -> None:
            if line is self.line:
                self._hear(event)

        line = await Connection.open(url, hear)
        self.line = line
        return self

    async def start(self, resume: bool = False, after: int | None = None, url: str | None = None, **parameters: Any) -> Self:
        """Connects and starts a session; with `resume`, continues the one that was lost."""
        await self.connect(url)
        if resume:
            parameters["resume"] = {"session": self.session, "after": self.sequence if after is None else after}
        answer = await self.line.ask("session.start", token=self.token, device=self.description, **(self.start_with | parameters))
        if not answer["resumed"]:
            self.sequence = answer["sequence"]
        self.session, self.connection, self.answer = answer["session"], answer["connection"], answer
        return self

    async def register(self, **parameters: Any) -> Self:
        await self.ask("device.register", device=self.description, **parameters)
        return self

    def _hear(self, event: dict) -> None:
        if self.sequence and event["sequence"] <= self.sequence:
            violations.append(f"{self.user}: event {event['sequence']} after {self.sequence}: {event}")
        self.sequence = event["sequence"]
        self.events.append(
            {"type": event["type"], "data": event["data"], "sequence": event["sequence"], "at": time.monotonic(), "taken": False}
        )
        self.news.set()

    def heard(self, kind: str | None = None, **members: Any) -> list[dict]:
        """Everything of this kind so far, with these members in its data, oldest first."""
        return [event["data"] for event in self.events if _fits(event, kind, members)]

    def kinds(self, **members: Any) -> list[str]:
        """The types of all events with these members, in order."""
        return [event["type"] for event in self.events if _fits(event, None, members)]

    async def hear(self, kind: str, _within: float = PATIENCE, /, **members: Any) -> dict:
        """The next event of this kind, with these members in its data, that was not returned before."""
        deadline = time.monotonic() + _within
        while True:
            for event in self.events:
                if not event["taken"] and _fits(event, kind, members):
                    event["taken"] = True
                    return event["data"]
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), deadline - time.monotonic())
            except TimeoutError:
                last = [event["type"] for event in self.events][-12:]
                raise AssertionError(f"{self.user} did not hear {kind} {members}, but {last}") from None

    def when(self, kind: str, **members: Any) -> float:
        """When the first such event came, on time.monotonic()."""
        return next(event["at"] for event in self.events if _fits(event, kind, members))

    async def ask(self, method: str, **parameters: Any) -> dict:
        return await self.line.ask(method, **parameters)

    def begin(self, method: str, **parameters: Any) -> asyncio.Future[dict]:
        return self.line.begin(method, **parameters)

    async def lose(self) -> None:
        """Its connection is cut, and the exchange may have noticed."""
        self.line.drop()
        await asyncio.wait_for(self.line.reading, PATIENCE)

    async def resume(self, after: int | None = None) -> Self:
        return await self.start(resume=True, after=after)

    async def leave(self) -> None:
        await self.ask("session.end")
        await self.line.close()


def _fits(event: dict, kind: str | None, members: dict) -> bool:
    return (kind is None or event["type"] == kind) and all(event["data"].get(name) == value for name, value in members.items())


async def settle(*devices: Device) -> None:
    """Returns once each device has all that was decided before: an answer comes after every event before it."""
    await asyncio.gather(*(device.ask("ping") for device in devices))


async def refusal(request: Awaitable, *names: str) -> Any:
    """Awaits a request that must be refused with one of these names; the refusal."""
    try:
        answer = await request
    except (Refused, RESTRefused) as error:
        name = error.name if isinstance(error, Refused) else error.code
        assert name in names, f"refused with {error}, expected {names}"
        return error
    raise AssertionError(f"answered with {answer}, expected {names}")
