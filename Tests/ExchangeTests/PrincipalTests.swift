@testable import ExchangeCore
import ExchangeServer
import Foundation
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

/// Guests who all took the name `sam` and whose devices all have the id `d`, and one who comes with a token for a room.
private struct Strangers {
    var exchange = ExchangeScenario()

    init() {
        for token in ["first sam", "second sam"] {
            exchange.feed(.tokenIssued(SecretDigest(of: token), Grant(user: "sam", isAnonymous: true)))
        }
        let room = Grant.RoomGrant(room: "lobby", role: .publisher)
        exchange.feed(
            .tokenPresented(
                SecretDigest(of: "alice in the lobby"), Grant(user: "alice", isAnonymous: false, room: room),
                expires: Instant.zero.advanced(by: .seconds(600))))
    }

    /// Starts a session; answers with the connection and the result.
    mutating func start(
        _ token: String, device: DeviceID = "d", resume: SessionStart.Resume? = nil
    ) throws -> (connection: ConnectionID, result: SessionStart.Result) {
        let connection = exchange.connect()
        let start = SessionStart(
            token: Redacted(token), device: DeviceDescription(id: device, name: ""), resume: resume)
        guard case .success(.session(let result)) = exchange.request(.sessionStart(start), from: connection) else {
            throw Missing()
        }
        return (connection, result)
    }

    mutating func join(_ connection: ConnectionID) -> RPCErrorCode? {
        exchange.refusal(of: .roomJoin(RoomJoin(room: "lobby")), from: connection)
    }

    struct Missing: Error {}
}

@Suite struct PrincipalTests {
    @Test("AUTH-3: Guests of one name with devices of one id are two, and neither has anything of the other's session")
    func guests() throws {
        var strangers = Strangers()
        let (first, session) = try strangers.start("first sam")
        #expect(strangers.join(first) == nil)
        let (second, other) = try strangers.start("second sam")
        #expect(strangers.exchange.closed[first] == nil && session.session != other.session)
        #expect(strangers.join(second) == nil)
        let join = ConnectionCreated(room: "lobby", connection: other.connection, user: "sam")
        #expect(strangers.exchange.events(of: first) == [.connectionCreated(join)])

        strangers.exchange.feed(.disconnected(first))
        _ = strangers.exchange.events(of: second)
        let resume = SessionStart.Resume(session: session.session, after: 0)
        let (thief, result) = try strangers.start("second sam", resume: resume)
        #expect(!result.resumed && result.session != session.session)
        #expect(strangers.exchange.events(of: thief).isEmpty, "what the first missed is the first's")
        let (_, again) = try strangers.start("first sam", resume: resume)
        #expect(again.resumed && again.session == session.session)
    }

    @Test("AUTH-3: A guest's login and session survive any number of logins by the same name")
    func manyOfOneName() throws {
        var strangers = Strangers()
        let (first, _) = try strangers.start("first sam")
        for number in 0..<200 {
            let grant = Grant(user: "sam", isAnonymous: true)
            strangers.exchange.feed(.tokenIssued(SecretDigest(of: "sam \(number)"), grant))
        }
        #expect(strangers.exchange.closed[first] == nil)
        strangers.exchange.feed(.disconnected(first))
        _ = try strangers.start("first sam")
        strangers.exchange.feed(.accountsChanged(ExchangeScenario.users + [Account(id: "sam")]))
        #expect(throws: Strangers.Missing.self, "the name is a user's now") { try strangers.start("sam 7") }
        #expect(strangers.exchange.core.sessions.principals(called: "sam").isEmpty)
    }

    @Test("AUTH-4: A guest continues with a later login, which alone then ends the session")
    func renewedGuest() throws {
        var strangers = Strangers()
        let (first, session) = try strangers.start("first sam")
        let (second, _) = try strangers.start("second sam")
        let theirs = ClientRequest.sessionRenew(SessionRenew(token: Redacted("second sam")))
        #expect(strangers.exchange.refusal(of: theirs, from: first) == .tokenRejected)

        strangers.exchange.feed(.tokenIssued(SecretDigest(of: "third sam"), Grant(user: "sam", isAnonymous: true)))
        let renew = ClientRequest.sessionRenew(SessionRenew(token: Redacted("third sam")))
        #expect(strangers.exchange.refusal(of: renew, from: first) == nil)
        #expect(strangers.exchange.refusal(of: renew, from: second) == .tokenRejected)
        strangers.exchange.feed(.disconnected(first))
        let resume = SessionStart.Resume(session: session.session, after: session.sequence)
        let (back, result) = try strangers.start("third sam", resume: resume)
        #expect(result.resumed)
        strangers.exchange.feed(.tokenRevoked(SecretDigest(of: "third sam")))
        #expect(strangers.exchange.closed[back] == .loggedOut)
        #expect(strangers.exchange.closed[second] == nil)
    }

    @Test(
        "AUTH-4: A login that a guest continued with is another guest again when no session of that guest depends on it"
    )
    func loginThatNoSessionStandsOn() throws {
        for isLost in [true, false] {
            var strangers = Strangers()
            let (first, _) = try strangers.start("first sam", device: "a")
            let (other, _) = try strangers.start("first sam", device: "b")
            let renew = ClientRequest.sessionRenew(SessionRenew(token: Redacted("second sam")))
            #expect(strangers.exchange.refusal(of: renew, from: other) == nil)
            let guest = strangers.exchange.session(on: first)?.endpoint.principal
            let (again, _) = try strangers.start("second sam")
            #expect(strangers.exchange.session(on: again)?.endpoint.principal == guest)
            for connection in strangers.exchange.core.sessions.all.map(\.connection) where connection != first {
                if isLost {
                    strangers.exchange.feed(.disconnected(connection))
                } else {
                    _ = strangers.exchange.request(.sessionEnd(SessionEnd()), from: connection)
                }
            }
            if isLost { strangers.exchange.advance(by: .seconds(60)) }
            let (later, _) = try strangers.start("second sam", device: "c")
            #expect(strangers.exchange.session(on: later)?.endpoint.principal != guest)
            #expect(strangers.exchange.session(on: first) != nil)
        }
    }

    @Test("AUTH-5: Who comes to a room with a token in a user's name has none of the user's devices, and counts apart")
    func visitor() throws {
        var strangers = Strangers()
        let alice = strangers.exchange.device("d", of: "alice")
        let (visitor, result) = try strangers.start("alice in the lobby")
        #expect(strangers.exchange.closed[alice] == nil && result.user == "alice" && result.sequence == 0)
        let bob = strangers.exchange.device("b", of: "bob")
        _ = strangers.exchange.invite("alice", from: bob)
        #expect(strangers.exchange.events(of: alice).count == 1)
        #expect(strangers.exchange.events(of: visitor).isEmpty)
        #expect(strangers.exchange.core.sessions.sessions(of: "alice").count == 1)
    }

    @Test("INV-16: Sessions of room tokens and of guests resume after a restart from the disk, with what they missed")
    func restart() throws {
        var strangers = Strangers()
        let (visitor, visit) = try strangers.start("alice in the lobby")
        let (guest, stay) = try strangers.start("first sam")
        let (other, _) = try strangers.start("second sam")
        for connection in [visitor, guest, other] { #expect(strangers.join(connection) == nil) }
        strangers.exchange.feed(.disconnected(visitor))
        strangers.exchange.feed(.disconnected(guest))
        let signal = RoomSignal(room: "lobby", type: "t", data: 1)
        #expect(strangers.exchange.refusal(of: .roomSignal(signal), from: other) == nil)

        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("exchange-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let now = strangers.exchange.timeline.now
        let clock = StoreClock(
            instant: { now }, timeOfDay: { WallClock(unixMilliseconds: 1_700_000_000_000) }, boot: "b")
        let store = try ExchangeStore.open(path: folder.path + "/exchange.sqlite", clock: clock)
        try store.write(strangers.exchange.changes)
        strangers.exchange = ExchangeScenario(restoring: try store.read(), at: now)
        store.close()

        for (token, session) in [("alice in the lobby", visit), ("first sam", stay)] {
            let resume = SessionStart.Resume(session: session.session, after: session.sequence)
            let (connection, result) = try strangers.start(token, resume: resume)
            #expect(result.resumed && result.session == session.session, "\(token)")
            let missed = strangers.exchange.events(of: connection)
            let isHeard = missed.contains { if case .roomSignal(let heard) = $0 { heard.data == 1 } else { false } }
            #expect(isHeard, "\(token) heard \(missed)")
        }
        #expect(strangers.exchange.core.rooms.occupants(of: "lobby").count == 3)
    }

    @Test("Of guests whose logins ended while the exchange was down nothing is left, on disk or in memory")
    func goneGuests() throws {
        var strangers = Strangers()
        let (guest, _) = try strangers.start("first sam")
        let (other, _) = try strangers.start("second sam")
        for connection in [guest, other] { #expect(strangers.join(connection) == nil) }
        let signal = RoomSignal(room: "lobby", type: "t", data: 1)
        #expect(strangers.exchange.refusal(of: .roomSignal(signal), from: other) == nil)
        var saved = strangers.exchange.saved
        saved.tokens.removeAll { $0.digest == SecretDigest(of: "first sam").hex }
        var next = ExchangeScenario(restoring: saved, at: strangers.exchange.timeline.now)
        let first = Principal(user: "sam", kind: .guest(login: SecretDigest(of: "first sam").hex))
        let second = Principal(user: "sam", kind: .guest(login: SecretDigest(of: "second sam").hex))
        #expect(next.core.streams[first] == nil && next.core.streams[second] != nil)
        next.feed(.timer)
        #expect(next.changes.contains(.streamForgotten(first)) && !next.changes.contains(.streamForgotten(second)))
        let forgotten = next.changes.filter { if case .sessionForgotten = $0 { true } else { false } }
        #expect(forgotten.count == 1)
    }
}

@Suite struct IDSourceTests {
    private func names(_ run: UInt64, count: Int) -> [SessionID] {
        var generator = SeededGenerator(seed: run)
        var source = IDSource(RunSeed(using: &generator))
        return (0..<count).map { _ in source.next("session") }
    }

    @Test("Names that the exchange gives have 128 unpredictable bits, for a reader of any number of others")
    func unguessable() throws {
        let own = names(1, count: 2_000)
        #expect(own == names(1, count: 2_000), "a run is the same again with the same seed")
        #expect(Set(own).count == 2_000 && Set(own).isDisjoint(with: names(2, count: 2_000)))
        let bits = try own.map { name in
            let hex = name.text.dropFirst("session-".count)
            #expect(hex.utf8.count == 32)
            return try (#require(UInt64(hex.prefix(16), radix: 16)), #require(UInt64(hex.suffix(16), radix: 16)))
        }
        // Of 128 random bits 64 differ, and next to never fewer than 30.
        let distances = zip(bits, bits.dropFirst()).map {
            ($0.0 ^ $1.0).nonzeroBitCount + ($0.1 ^ $1.1).nonzeroBitCount
        }
        #expect((distances.min() ?? 0) > 25)
        let mean = Double(distances.reduce(0, +)) / Double(distances.count)
        #expect(abs(mean - 64) < 1)
    }

    @Test("Sessions, connections, invites and groups have such names")
    func everyKind() throws {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.device("b", of: "bob")
        let session = try #require(scenario.session(on: alice))
        let invite = scenario.invite("bob", from: alice)
        guard case .success(.group(let group)) = scenario.request(.groupCreate(GroupCreate()), from: alice) else {
            return #expect(Bool(false), "no group")
        }
        for name in [session.id.text, session.name.text, invite.text, group.group.text] {
            let parts = name.split(separator: "-")
            #expect(parts.count == 2 && parts.last?.utf8.count == 32, "\(name)")
        }
    }
}
