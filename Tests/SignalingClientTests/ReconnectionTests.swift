import CallControl
import Foundation
import JSON
import Logging
import NIOCore
import SignalWire
import Synchronization
import TestSupport
import Testing

@testable import SignalingClient

@Suite("HandsetService while it reconnects", .timeLimit(.minutes(5)))
struct ReconnectionTests {
    /// Lets the exchange answer a session's start again, or not.
    private final class Gate: Sendable {
        let isOpen = ManagedFlag(true)
    }

    private func withService(
        _ change: (inout HandsetServiceConfiguration) -> Void = { _ in },
        _ work: (HandsetService, ScriptedExchange, inout AsyncStream<SignalingEvent>.Iterator) async throws -> Void
    ) async throws {
        let exchange = ScriptedExchange()
        try await exchange.start(on: Fixtures.group)
        let service = try Fixtures.service(port: exchange.port, change)
        var events = service.events.makeAsyncIterator()
        do {
            try await service.connect()
            try await work(service, exchange, &events)
        } catch {
            Issue.record(error)
        }
        await service.disconnect()
        await exchange.stop()
    }

    private func wait(
        for wanted: SignalingEvent, in events: inout AsyncStream<SignalingEvent>.Iterator
    ) async throws {
        while let event = await events.next() {
            if event == wanted { return }
        }
        throw CancellationError()
    }

    /// An exchange that is silent about sessions until the gate opens, so that a service stays reconnecting.
    private func hold(_ exchange: ScriptedExchange, _ gate: Gate) {
        gate.isOpen.set(false)
        exchange.answer("session.start") { _ in
            gate.isOpen.value
                ? #"{"session":"s1","connection":"c1","user":"u1","public_ids":[],"resumed":true,"sequence":0,"#
                    + #""keepalive_seconds":25,"anonymous":false}"# : #"!{"code":-32603,"message":"Not now."}"#
        }
    }

    @Test("CONN-4: An outage is warned of once, although the exchange is tried again several times")
    func oneWarning() async throws {
        let exchange = ScriptedExchange()
        try await exchange.start(on: Fixtures.group)
        let lines = KeptLines.Lines()
        let service = try HandsetService(
            Fixtures.configuration("http://localhost:\(exchange.port)"), group: Fixtures.group,
            logger: Logger(label: "test") { _ in KeptLines(lines: lines) })
        try await service.connect()
        await exchange.stop()
        let retry = "No connection; trying again"
        try await until { lines.count(retry, .debug) >= 4 }
        #expect(lines.count(retry, .warning) == 1)
        await service.disconnect()
    }

    @Test("CONN-6: Signals sent while reconnecting go out in order once the connection is back, before anything newer")
    func queued() async throws {
        try await withService { service, exchange, events in
            let gate = Gate()
            hold(exchange, gate)
            exchange.dropConnections()
            try await wait(for: .reconnecting, in: &events)
            let sending = (1...5).map { number in
                Task { try await service.send(CallControl.CallSignal(invite: "i1", type: "s\(number)", data: [:])) }
            }
            await #expect(throws: SignalingError.self) {
                try await service.send(
                    CallControl.CallSignal(invite: "i1", type: "now", data: [:]), retryAfterReconnect: false)
            }
            gate.isOpen.set(true)
            for task in sending { try await task.value }
            let types = exchange.calls.filter { $0.method == "call.signal" }.compactMap { $0.params["type"]?.string }
            #expect(Set(types) == ["s1", "s2", "s3", "s4", "s5"] && types.count == 5)
            #expect(await service.connectionState == .connected)
        }
    }

    @Test("CONN-6: Signals queued one after the other keep their order")
    func order() async throws {
        try await withService { service, exchange, events in
            let gate = Gate()
            hold(exchange, gate)
            exchange.dropConnections()
            try await wait(for: .reconnecting, in: &events)
            // All are given to the loop from one task, without waiting for the answers.
            let answers = service.sendInOrder(
                (1...50).map { CallControl.CallSignal(invite: "i1", type: "\($0)", data: [:]) })
            gate.isOpen.set(true)
            for answer in answers { _ = try await answer.get() }
            let types = exchange.calls.filter { $0.method == "call.signal" }.compactMap { $0.params["type"]?.string }
            #expect(types == (1...50).map(String.init))
        }
    }

    @Test("CONN-6: A queued signal fails when the device disconnects instead of coming back")
    func givenUp() async throws {
        try await withService { service, exchange, events in
            let gate = Gate()
            hold(exchange, gate)
            exchange.dropConnections()
            try await wait(for: .reconnecting, in: &events)
            let answers = service.sendInOrder([CallControl.CallSignal(invite: "i1", type: "s", data: [:])])
            await service.disconnect()
            let error = try await failure { _ = try await answers[0].get() }
            #expect((error as? SignalingError)?.code == .disconnected)
        }
    }

    @Test("CALL-3: A hang-up whose answer was lost with the connection is said again")
    func hangUpSaidAgain() async throws {
        try await withService { service, exchange, events in
            exchange.answer("call.end") { _ in "" }
            let hangingUp = Task {
                try await service.hangUp(CallHangUp(invite: "i1", reason: .completed, duration: .seconds(1)))
            }
            try await until { exchange.methods.contains("call.end") }
            exchange.answer("call.end") { _ in "{}" }
            exchange.dropConnections()
            try await hangingUp.value
            #expect(exchange.methods.count { $0 == "call.end" } == 2)
        }
    }

    @Test("INV-17: The handled that this device's own answer caused is not reported; another device's is")
    func ownHandled() async throws {
        try await withService { _, exchange, events in
            exchange.tell("inviteHandled", #"{"invite":"i1","device":"d1","action":"accepted"}"#)
            exchange.tell("inviteHandled", #"{"invite":"i2","device":"d2","action":"rejected"}"#)
            while let event = await events.next() {
                guard case .inviteHandled(let handling) = event else { continue }
                #expect(handling == InviteHandling(invite: "i2", device: "d2", action: .rejected))
                return
            }
        }
    }

    private static let resumed =
        #"{"session":"s1","connection":"c1","user":"u1","public_ids":[],"resumed":true,"sequence":2,"#
        + #""keepalive_seconds":25,"anonymous":false}"#

    private func wait(for method: String, times: Int, at exchange: ScriptedExchange) async throws {
        try await until { exchange.methods.count { $0 == method } >= times }
    }

    @Test(
        "CONN-12, CONN-5: Asked to move, the device resumes on a second connection, and hears each event once and no drop"
    )
    func move() async throws {
        try await withService { service, exchange, events in
            exchange.answer("session.start") { _ in Self.resumed }
            exchange.tell("notification", #"{"payload":1}"#)
            exchange.tell("moveRequested", #"{"within_seconds":10}"#)
            try await wait(for: "device.register", times: 2, at: exchange)
            let starts = exchange.calls.filter { $0.method == "session.start" }
            #expect(starts.count == 2 && starts.last?.params["resume"] == ["session": "s1", "after": 2])
            // What the old connection had told already comes again, for it may not have arrived.
            exchange.sendRaw(
                #"{"jsonrpc":"2.0","method":"event","params":{"sequence":2,"type":"notification","data":{"payload":9}}}"#
            )
            exchange.tell("notification", #"{"payload":2}"#)
            var told: [SignalingEvent] = []
            while told.last != .notification(2), let event = await events.next() { told.append(event) }
            let move = SignalingEvent.moveRequested(within: .seconds(10), webSocketURL: nil)
            #expect(told == [.connected, .notification(1), move, .notification(2)])
        }
    }

    @Test(
        "CONN-12, CONN-6: What is sent while the session goes over to another connection waits, and nothing fails for it"
    )
    func sentOnTheMove() async throws {
        try await withService { service, exchange, events in
            exchange.answer("session.start") { _ in "" }
            exchange.tell("moveRequested", #"{"within_seconds":10}"#)
            try await wait(for: "session.start", times: 2, at: exchange)
            let start = exchange.methods.count
            #expect(await service.connectionState == .connected)
            let sending = service.sendInOrder(
                (1...5).map { CallControl.CallSignal(invite: "i1", type: "\($0)", data: [:]) }, .atOnce)
            exchange.sendRaw(#"{"jsonrpc":"2.0","id":\#(start),"result":\#(Self.resumed)}"#)
            for answer in sending { _ = try await answer.get() }
            let types = exchange.calls.filter { $0.method == "call.signal" }.compactMap { $0.params["type"]?.string }
            #expect(types == ["1", "2", "3", "4", "5"])
            #expect(exchange.methods.suffix(6).first == "device.register", "no signal goes out on the old connection")
        }
    }

    @Test("CONN-12: A device that is sent to an address without a listener stays where it is, and continues there")
    func nowhereToMove() async throws {
        try await withService { service, exchange, events in
            exchange.answer(path: "/v1/connection") { _ in ScriptedAnswer(status: 503, body: "no") }
            let addresses = [#""ws://localhost:1/v1/rtc""#, #""nonsense""#, "null"]
            for (number, address) in addresses.enumerated() {
                let asked = exchange.requests.count
                exchange.tell("moveRequested", #"{"within_seconds":10,"websocket_url":\#(address)}"#)
                try await until { address != "null" || exchange.requests.count > asked }
                for _ in 1...20 {
                    try await service.send(CallControl.CallSignal(invite: "i1", type: "t", data: [:]))
                }
                exchange.tell("notification", #"{"payload":\#(number)}"#)
                while let event = await events.next(), event != .notification(.integer(Int64(number))) {
                    #expect(event != .reconnecting)
                }
            }
            #expect(await service.connectionState == .connected)
            #expect(exchange.methods.count { $0 == "session.start" } == 1)
        }
    }

    @Test("DEV-2: Push targets go with each registration, and none are named unless they are configured")
    func pushTargets() async throws {
        try await withService { _, exchange, _ in
            #expect(exchange.calls.first { $0.method == "device.register" }?.params["push"] == nil)
        }
        let targets = [HandsetServiceConfiguration.PushTarget(kind: "apns", token: "push-secret")]
        #expect(!"\(targets)".contains("push-secret"))
        try await withService({ $0.device.push = targets }) { service, exchange, events in
            let registered = exchange.calls.first { $0.method == "device.register" }
            #expect(registered?.params["push"] == [["kind": "apns", "token": "push-secret"]])
            try await service.unregister()
            #expect(exchange.methods.last == "device.unregister")
        }
    }

    @Test("CONN-12: A device waits for the answers that are under way before it moves, and loses none")
    func moveAfterAnswers() async throws {
        try await withService { service, exchange, events in
            exchange.answer("invite.send") { _ in "" }
            let inviting = Task { try await service.invite(InviteOptions(to: "bob", idempotencyKey: "k")) }
            try await until { exchange.methods.contains("invite.send") }
            exchange.tell("moveRequested", #"{"within_seconds":60}"#)
            try await wait(for: .moveRequested(within: .seconds(60), webSocketURL: nil), in: &events)
            #expect(await service.connectionState == .connected)
            let number = exchange.methods.count
            exchange.sendRaw(#"{"jsonrpc":"2.0","id":\#(number),"result":{"invite":"i1","invitees":["bob"]}}"#)
            #expect(try await inviting.value.id == "i1")
            try await wait(for: .reconnected, in: &events)
        }
    }

    @Test("INV-14: After a connection lost for long the device starts warm, and cold only when its program starts")
    func warmStart() async throws {
        try await withService { service, exchange, events in
            exchange.dropConnections()
            try await wait(for: .reconnected, in: &events)
            let starts = exchange.calls.filter { $0.method == "device.register" }.map { $0.params["start"]?.string }
            #expect(starts == ["cold", "warm"])
        }
    }

    @Test("CONN-5, CONN-7: After a fresh start rooms are joined again, and only what changed there is reported")
    func rejoin() async throws {
        try await withService { service, exchange, events in
            exchange.answer("room.join") { _ in
                #"{"participants":[{"connection":"c7","user":"ann"},{"connection":"c8","user":"ben"}]}"#
            }
            _ = try await service.join(room: "lobby", data: nil)
            exchange.tell("connectionCreated", #"{"room":"lobby","connection":"c8","user":"ben"}"#)
            exchange.answer("room.join") { _ in
                #"{"participants":[{"connection":"c8","user":"ben"},{"connection":"c9","user":"cy"}]}"#
            }
            exchange.dropConnections()
            var told: [SignalingEvent] = []
            while told.count < 4, let event = await events.next() {
                switch event {
                case .connectionCreated, .connectionDestroyed: told.append(event)
                default: break
                }
            }
            #expect(
                told == [
                    .connectionCreated(room: "lobby", RoomParticipant(connection: "c7", user: "ann")),
                    .connectionCreated(room: "lobby", RoomParticipant(connection: "c8", user: "ben")),
                    .connectionDestroyed(room: "lobby", connection: "c7", reason: "connectionLost"),
                    .connectionCreated(room: "lobby", RoomParticipant(connection: "c9", user: "cy")),
                ])
        }
    }
}

extension HandsetService {
    /// Sends signals from one place, so that their order is known.
    fileprivate func sendInOrder(
        _ signals: [CallControl.CallSignal], _ policy: SendPolicy = .queued
    ) -> [EventLoopFuture<Empty>] {
        signals.map { signal in
            begin { driver, promise in
                let message = SignalWire.CallSignal(
                    invite: signal.invite, type: signal.type, data: signal.data)
                driver.request(message, policy, doing: "send a signal", promise)
            }
        }
    }
}

/// Keeps what is logged, with its level.
private struct KeptLines: LogHandler {
    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    final class Lines: Sendable {
        private let lines = Mutex<[(Logger.Level, String)]>([])
        func add(_ level: Logger.Level, _ text: String) { lines.withLock { $0.append((level, text)) } }
        func count(_ text: String, _ level: Logger.Level) -> Int {
            lines.withLock { $0.count { $0.0 == level && $0.1 == text } }
        }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.add(event.level, "\(event.message)") }
}
