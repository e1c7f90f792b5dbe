#!/usr/bin/env python3
"""Has a device call another one, and checks the traces of both and of the exchange, read by opentelemetry-proto. Used by scripts/traces.

traces_test.py HANDSET
"""

import contextlib
import hashlib
import http.server
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

LIMIT = 30  # Seconds for anything to happen.


class Collector:
    """Takes traces, and refuses the first request with 503."""

    def __init__(self):
        self.spans = []  # With the resource's attributes.
        self.requests = []
        lock = threading.Lock()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    collector.requests.append((self.path, self.headers["Content-Type"], self.headers["Authorization"], body))
                    is_first = len(collector.requests) == 1
                    if not is_first:
                        collector.take(body)
                self.send_response(503 if is_first else 200)
                if is_first:
                    self.send_header("Retry-After", "1")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, body):
        request = trace_service_pb2.ExportTraceServiceRequest()
        request.ParseFromString(body)
        assert request.SerializeToString() == body, "the fields are in another order, or unknown"
        for process in request.resource_spans:
            resource = values(process.resource.attributes)
            for scope in process.scope_spans:
                assert scope.scope.name == "handset" and scope.scope.version == resource["service.version"]
                self.spans += [(resource, span) for span in scope.spans]

    def of(self, service):
        return [span for resource, span in list(self.spans) if resource["service.name"] == service]


def values(attributes):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}


def until(what, is_there):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found = is_there()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} is missing")


class Process:
    def __init__(self, stack, folder, name, *words):
        self.log = folder / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(words, cwd=folder, stderr=log, stdout=subprocess.DEVNULL)
        stack.callback(self.process.kill)

    def said(self, word):
        def found():
            for line in self.log.read_text().splitlines():
                if f'"{word}"' in line:
                    return line
            assert self.process.poll() is None, self.log.read_text()
            return None

        return until(word, found)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(LIMIT) == 0, self.log.read_text()


def device(folder, name, url, more):
    (folder / f"{name}.token").write_text(f"{name}-demo-token\n")
    os.chmod(folder / f"{name}.token", 0o600)
    text = f"""
account: {{ server: "http://127.0.0.1:8555", media_token_file: {name}.token }}
traces: {{ url: "{url}", service: {name}, token_file: {name}.token }}
media: {{ address: 127.0.0.1 }}
monitoring: {{ listen: "127.0.0.1:0" }}
{more}
"""
    (folder / f"{name}.yaml").write_text(text)


EXCHANGE = """
listen: 127.0.0.1:8555
traces: {{ url: "{url}", service: exchange, token_file: exchange.token }}
monitoring: {{ listen: "127.0.0.1:0" }}
database: exchange.db
apps:
  - {{ key: demo, secret_hash: {secret} }}
users:
  - {{ id: alice, public_ids: [alice@localhost], media_token_hashes: [{alice}] }}
  - {{ id: bob, public_ids: [bob@localhost], media_token_hashes: [{bob}] }}
"""


def exchange_configuration(folder, url):
    def digest(text):
        return hashlib.sha256(text.encode()).hexdigest()

    (folder / "exchange.token").write_text("exchange-demo-token\n")
    os.chmod(folder / "exchange.token", 0o600)
    text = EXCHANGE.format(url=url, secret=digest("demo"), alice=digest("alice-demo-token"), bob=digest("bob-demo-token"))
    (folder / "exchange.yaml").write_text(text)


def check_exchange(alice, exchange):
    """The exchange's spans are in the caller's trace, and the call is within the caller's."""
    assert [span.name for span in exchange] == ["exchange", "commit", "ringing", "call"], [span.name for span in exchange]
    caller = next(span for span in alice if span.name == "outgoing call")
    whole = exchange[0]
    assert {span.trace_id for span in exchange} == {caller.trace_id}
    assert whole.kind == trace_pb2.Span.SPAN_KIND_SERVER and whole.parent_span_id == caller.span_id and whole.flags == 0x301
    assert len({span.span_id for span in [*exchange, *alice]}) == len(exchange) + len(alice)
    for span in exchange[1:]:
        assert span.parent_span_id == whole.span_id and span.kind == trace_pb2.Span.SPAN_KIND_INTERNAL
        assert whole.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= whole.end_time_unix_nano
    # One machine, one clock.
    assert caller.start_time_unix_nano <= whole.start_time_unix_nano
    assert exchange[3].end_time_unix_nano - exchange[3].start_time_unix_nano > 0.9e9
    told = values(whole.attributes)
    assert told["handset.outcome"] == "accepted" and told["handset.devices"] == 1 and told["handset.invitees"] == 1, told
    assert told["handset.invite"] == values(caller.attributes)["handset.invite"]
    assert [event.name for event in whole.events] == ["delivered", "accepted"], whole.events
    assert values(exchange[3].attributes)["handset.reason"] == "completed"
    assert not any(word in str(span) for span in exchange for word in ("alice", "bob", "demo-token")), "a name"


def check_call(alice, bob):
    """Both ends of an answered call are one trace, whose spans are within each other."""
    for spans, name, others in (
        (alice, "outgoing call", {"invite", "ice", "dtls", "first sound", "talk"}),
        (bob, "incoming call", {"invite", "ice", "dtls", "first sound", "talk"}),
    ):
        assert {span.name for span in spans} == others | {name}, [span.name for span in spans]
        call = next(span for span in spans if span.name == name)
        assert len({span.span_id for span in spans}) == len(spans)
        for span in spans:
            assert len(span.trace_id) == 16 and len(span.span_id) == 8
            assert span.trace_id == alice[0].trace_id
            assert call.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= call.end_time_unix_nano
            if span is not call:
                assert span.parent_span_id == call.span_id and span.kind == trace_pb2.Span.SPAN_KIND_INTERNAL
        assert abs(call.start_time_unix_nano / 1e9 - time.time()) < 120
        talk = next(span for span in spans if span.name == "talk")
        assert talk.end_time_unix_nano - talk.start_time_unix_nano > 0.9e9
        assert call.status.code == trace_pb2.Status.STATUS_CODE_UNSET
        told = values(call.attributes)
        assert told["handset.reason"] == "completed" and told["handset.packets_received"] > 30, told
        assert not any(word in str(span) for span in spans for word in ("alice", "bob", "demo-token")), "a name"
    caller = next(span for span in alice if span.name == "outgoing call")
    callee = next(span for span in bob if span.name == "incoming call")
    assert caller.kind == trace_pb2.Span.SPAN_KIND_CLIENT and not caller.parent_span_id and caller.flags == 0x101
    assert callee.kind == trace_pb2.Span.SPAN_KIND_SERVER and callee.parent_span_id == caller.span_id and callee.flags == 0x301
    assert {event.name for event in caller.events} >= {"invite sent", "media flows both ways"}, caller.events
    assert {event.name for event in callee.events} >= {"ringing"}, callee.events


def main():
    handset = str(pathlib.Path(sys.argv[1]).resolve())
    collector = Collector()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        exchange_configuration(folder, collector.url)
        exchange = Process(stack, folder, "exchange", handset, "serve", "--config", "exchange.yaml", "--log-format", "json")
        exchange.said("Listening")
        device(folder, "alice", collector.url, "behaviour: { source: silence }\ncontrol: { socket: control.sock }")
        device(folder, "bob", collector.url, "behaviour: { source: echo }")
        bob = Process(stack, folder, "bob", handset, "run", "--config", "bob.yaml", "--log-format", "json")
        alice = Process(stack, folder, "alice", handset, "run", "--config", "alice.yaml", "--log-format", "json")
        bob.said("Ready")
        alice.said("Ready")

        def control(*words):
            subprocess.run([handset, "control", "--socket", "control.sock", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        control("call", "bob@localhost")
        time.sleep(2)
        control("hangup", "1")
        until("alice's trace", lambda: collector.of("alice"))
        until("bob's trace", lambda: collector.of("bob"))
        until("the exchange's trace", lambda: collector.of("exchange"))
        check_call(collector.of("alice"), collector.of("bob"))
        check_exchange(collector.of("alice"), collector.of("exchange"))
        paths = {(path, kind) for path, kind, _, _ in collector.requests}
        assert paths == {("/v1/traces", "application/x-protobuf")}, paths
        names = ("alice", "bob", "exchange")
        assert {token for _, _, token, _ in collector.requests} == {f"Bearer {name}-demo-token" for name in names}
        first = collector.requests[0][3]
        assert sum(body == first for _, _, _, body in collector.requests) == 2, "what was refused with 503 came again"

        def page(url):
            return urllib.request.urlopen(f"{url}/metrics", timeout=LIMIT).read().decode()

        for process in (alice, exchange):
            url = re.search(r'"url":"([^"]+)"', process.said("Showing metrics and health"))[1].replace("\\/", "/")
            until("a count", lambda url=url: "\nhandset_traces_exported_total 1\n" in page(url))
            assert '\nhandset_traces_dropped_total{reason="unreachable"} 0\n' in page(url)

        # The trace of a call that ends with its device is sent before the device ends.
        control("call", "away@localhost")
        until(
            "the end of a call to an unknown user",
            lambda: len([span for span in collector.of("alice") if span.name == "outgoing call"]) == 2,
        )
        failed = [span for span in collector.of("alice") if span.name == "outgoing call"][-1]
        assert failed.trace_id != collector.of("alice")[0].trace_id
        assert values(failed.attributes)["handset.reason"] != "completed" and "away@" not in str(failed)
        control("call", "bob@localhost")
        time.sleep(1)
        alice.end()
        assert len([span for span in collector.of("alice") if span.name == "outgoing call"]) == 3
        bob.end()
        assert len([span for span in collector.of("bob") if span.name == "incoming call"]) == 2
        exchange.end()
        assert len([span for span in collector.of("exchange") if span.name == "exchange"]) == 2
    print("Traces of both ends and of the exchange are one, as opentelemetry-proto reads them")


if __name__ == "__main__":
    main()
