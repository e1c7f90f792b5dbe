import CallControl
import HTTPTransport
import JSON
import SignalWire
import Testing
import Core

@testable import SignalingClient

@Suite("Small parts of the signaling client")
struct SmallPartsTests {
    @Test("CALL-5: The device ends calls for the reasons that the wire knows, and for no others")
    func reasons() {
        #expect(Set(CallEndReason.allCases.map(\.rawValue)) == CallEnd.reasons)
    }

    @Test("Addresses are taken apart, and what is none is refused with what is wrong")
    func endpoints() throws {
        let plain = try HTTPEndpoint.of("ws://127.1.2.3:8080/v1/rtc?x=1")
        #expect(!plain.isSecure && plain.host == "127.1.2.3" && plain.port == 8080 && plain.path == "/v1/rtc?x=1")
        let secure = try HTTPEndpoint.of("HTTPS://exchange.example")
        #expect(secure.isSecure && secure.port == 443 && secure.authority == "exchange.example" && secure.path.isEmpty)
        let six = try HTTPEndpoint.of("wss://[2001:db8::1]:9/x")
        #expect(six.host == "2001:db8::1" && six.port == 9 && six.authority == "[2001:db8::1]:9" && six.isAddress)
        for bad in [
            "", "exchange.example", "ftp://x", "http://", "http://x:", "http://x:0", "http://x:99999", "http://[::1",
            "http://user:secret@x", "http://[::1]x",
        ] {
            #expect(throws: SignalingError.self, "\(bad)") { try HTTPEndpoint.of(bad) }
        }
    }

    @Test(
        "Plain text goes to this machine only, unless it is allowed by name",
        arguments: [
            ("http://localhost:1", true), ("ws://127.0.0.1", true), ("http://[::1]:8080", true),
            ("http://192.168.1.4", false), ("ws://exchange.example/v1/rtc", false), ("http://127.0.0.1.evil", false),
            ("https://exchange.example", true),
        ])
    func plainText(address: String, isFine: Bool) throws {
        let endpoint = try HTTPEndpoint.of(address)
        try endpoint.check(.allowed, for: "test")
        if isFine {
            try endpoint.check(.loopbackOnly, for: "test")
        } else {
            let error = #expect(throws: SignalingError.self) { try endpoint.check(.loopbackOnly, for: "test") }
            #expect(error?.code == .plainTextRefused)
        }
    }

    @Test("AUTH-11: Retry-After is read as seconds or as a date, and bounded")
    func retryAfter() {
        let now = WallClock(unixMilliseconds: 784_111_777_000)  // Sun, 06 Nov 1994 08:49:37 GMT
        #expect(RetryAfter.parse("120", now: now) == .seconds(120))
        #expect(RetryAfter.parse("99999999", now: now) == .seconds(3_600))
        #expect(RetryAfter.date("Sun, 06 Nov 1994 08:49:37 GMT") == now)
        #expect(RetryAfter.parse("Sun, 06 Nov 1994 08:50:07 GMT", now: now) == .seconds(30))
        #expect(RetryAfter.parse("Sun, 06 Nov 1994 08:00:00 GMT", now: now) == .zero)
        #expect(RetryAfter.date("Thu, 29 Feb 2024 00:00:00 GMT")?.unixMilliseconds == 1_709_164_800_000)
        for bad in ["", "-1", "soon", "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            #expect(RetryAfter.parse(bad, now: now) == nil, "\(bad)")
        }
    }

    @Test("A request is completed once: by its answer, by its time-out, or by the loss of the connection")
    func requestTable() {
        var table = RequestTable(timeout: .seconds(10))
        var told: [String] = []
        func completion(_ name: String) -> RequestTable.Completion {
            { result in
                if case .failure(let error) = result { told.append("\(name) \(error.code)") } else { told.append(name) }
            }
        }
        let link = WebSocket(WebSocket.Settings(.client, messageBytes: 1)) { _ in }
        let other = WebSocket(WebSocket.Settings(.client, messageBytes: 1)) { _ in }
        let first = table.add(on: link, doing: "first", at: .zero, completion("first"))
        let second = table.add(on: link, doing: "second", at: Instant(nanoseconds: 1_000_000_000), completion("second"))
        _ = table.add(on: link, doing: "third", at: Instant(nanoseconds: 2_000_000_000), completion("third"))
        #expect(first != second)
        #expect(table.take(.string("1")) == nil)
        #expect(table.take(.number(99)) == nil)
        #expect(table.take(.number(first))?.activity == "first")
        #expect(table.take(.number(first)) == nil)
        #expect(table.nextDeadline == Instant(nanoseconds: 11_000_000_000))
        for fail in table.takeExpired(at: Instant(nanoseconds: 11_500_000_000)) { fail() }
        let fourth = table.add(
            on: other, doing: "fourth", at: Instant(nanoseconds: 3_000_000_000), completion("fourth"))
        for fail in table.takeAll(on: link) { fail() }
        #expect(told == ["second timedOut", "third disconnected"])
        #expect(table.nextDeadline == Instant(nanoseconds: 13_000_000_000))
        #expect(table.take(.number(fourth))?.activity == "fourth")
        #expect(table.nextDeadline == nil)
    }

    @Test("CONN-10: The first listener hears what was said before it came; the second hears from then on")
    func eventHub() async {
        let hub = EventHub<SignalingEvent>(capacity: 2)
        for name in ["one", "two", "three"] { hub.publish(.notification(.string(name))) }
        #expect(hub.lostCount == 1)
        var first = hub.listen().makeAsyncIterator()
        var second = hub.listen().makeAsyncIterator()
        #expect(await first.next() == .notification("two"))
        #expect(await first.next() == .notification("three"))
        hub.publish(.connected)
        #expect(await first.next() == .connected)
        #expect(await second.next() == .connected)
        hub.finish()
        #expect(await second.next() == nil)
    }
}

extension RequestTable {
    fileprivate mutating func take(_ id: RPCID) -> (activity: String, complete: Completion)? { take(Optional(id)) }
}
