import CallControl
import NIOHTTP1
import Synchronization
import Testing

@testable import SignalingClient

@Suite("TURN servers whose credentials end, over real sockets", .timeLimit(.minutes(5)))
struct ServerRenewalTests {
    @Test("Names and passwords for TURN servers that end are replaced when half of their time has passed")
    func renewal() async throws {
        let exchange = ScriptedExchange()
        let asked = Counter()
        exchange.answer(path: "/v1/connection") { request in
            ScriptedAnswer(
                body: #"{"websocket_url":"ws://\#(request.headers["Host"][0])/v1/rtc","#
                    + #""ice_servers":[{"urls":["turn:t"],"username":"\#(asked.next())","credential":"c"}],"#
                    + #""ice_servers_seconds":2,"keepalive_seconds":25,"resume_window_seconds":60}"#)
        }
        try await exchange.start(on: Fixtures.group)
        let service = try Fixtures.service(port: exchange.port)
        var events = service.events.makeAsyncIterator()
        try await service.connect()
        #expect(await service.iceServers.map(\.username) == ["1"])
        for number in 2...3 {
            while let event = await events.next(), event != .iceServersChanged {}
            #expect(await service.iceServers.map(\.username) == ["\(number)"])
        }
        #expect(exchange.methods == ["session.start", "device.register"], "the connection stays")
        await service.disconnect()
        await exchange.stop()
    }
}

/// Counts, on any thread.
private final class Counter: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}
