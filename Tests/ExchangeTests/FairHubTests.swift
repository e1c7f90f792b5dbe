import JSON
import NIOCore
import NIOEmbedded
import NIOWebSocket
import SignalSupport
import SignalWire
import Testing
import Timekeeping

@testable import Exchange

/// An exchange on a slow disk with a full room, half of which is absent, and a user who has no part in it.
private struct Crowd {
    static let participants = 62
    let scenario: HubScenario
    let members: [EmbeddedChannel]
    let alice: EmbeddedChannel

    init(keeps: Bool = true) throws {
        let names = (0..<Self.participants).map { "member\($0)" as UserID }
        scenario = HubScenario(users: names + ["alice"], keeps: keeps)
        var members: [EmbeddedChannel] = []
        for name in names {
            let channel = try scenario.device(of: name)
            try scenario.ask(RoomJoin(room: "lobby"), on: channel)
            members.append(channel)
        }
        scenario.settle()
        for member in members[(Self.participants / 2)...] { try member.close().wait() }
        self.members = Array(members[..<(Self.participants / 2)])
        alice = try scenario.device(of: "alice")
        for member in self.members { _ = try scenario.heard(by: member) }
    }

    func signal(from member: Int) throws {
        let data = JSONValue.string(String(repeating: "x", count: 8_000))
        try scenario.ask(RoomSignal(room: "lobby", type: "t", data: data), on: members[member])
    }

    /// Sends an invite, each to somebody else, since a pair has few open; answers with how long the answer took.
    func invite(_ number: Int) throws -> Duration {
        let absent = Self.participants / 2
        let params = InviteSend(to: ["member\(absent + number % absent)"], ttl: 30, idempotencyKey: "key\(number)")
        return try scenario.wait(for: try scenario.ask(params, on: alice), on: alice)
    }
}

/// Whether a channel was told to read or not to, last.
private func reads(_ channel: EmbeddedChannel) -> Bool? {
    channel.options.last { $0.option is ChannelOptions.Types.AutoReadOption }?.value as? Bool
}

@Suite struct FairHubTests {
    @Test(
        "However many accounts send room signals as fast as they may, an invite waits for two commits, and for few of them",
        arguments: [1, 8])
    func bystandersDoNotWait(attackers: Int) throws {
        let crowd = try Crowd()
        let scenario = crowd.scenario
        let commits = scenario.disk.commits.count
        // A signal costs 187, so that a round, which serves 256, serves two. Each writes an event for everybody, and
        // forgets an old one.
        let perRound = 2
        let changes = perRound * 2 * Crowd.participants + 20
        let twoCommits = Duration.microseconds(2 * (3_000 + 100 * changes))
        for _ in 0..<200 { for member in 0..<attackers { try crowd.signal(from: member) } }
        for number in 0..<20 {
            for member in 0..<attackers { try crowd.signal(from: member) }
            scenario.advance(by: .microseconds(Int64(number) * 137 % 10_000))
            let before = scenario.hub.snapshot().requests
            let taken = try crowd.invite(number)
            // Those that go into the invite's commit, those of the next while that one is under way, and those that are
            // begun in the moment of the answer.
            #expect(scenario.hub.snapshot().requests - before - 1 <= 3 * perRound)
            // The commit that is under way, and its own.
            #expect(taken <= twoCommits)
        }
        #expect(scenario.disk.commits[commits...].max() ?? 0 <= changes)
        #expect(scenario.hub.snapshot().events > 20 * Crowd.participants / 2, "the attackers are served as well")
    }

    @Test("Without a database nobody waits for more than one turn of the event loop")
    func withoutDisk() throws {
        let crowd = try Crowd(keeps: false)
        for _ in 0..<400 { try crowd.signal(from: 0) }
        #expect(try crowd.invite(1) <= .microseconds(100))
        crowd.scenario.settle()
        #expect(crowd.scenario.hub.turns.isEmpty)
    }

    @Test("With nothing else to do, what is asked for is done at once")
    func idleExchange() throws {
        let crowd = try Crowd(keeps: false)
        let before = crowd.scenario.hub.snapshot().requests
        let id = try crowd.scenario.ask(Ping(), on: crowd.alice)
        #expect(try crowd.scenario.heard(by: crowd.alice).contains { $0.kind.id == id }, "no turn of the loop")
        #expect(crowd.scenario.hub.snapshot().requests == before + 1)
    }

    @Test("Who sends more than its turns allow for is read no further, and what waits stays within its bound")
    func backpressure() throws {
        let crowd = try Crowd()
        for _ in 0..<400 { try crowd.signal(from: 0) }
        let limits = crowd.scenario.hub.turns.limits
        #expect(crowd.scenario.hub.turns.bytes <= 4 * limits.payerBytes)
        #expect(reads(crowd.members[0]) == false)
        #expect(reads(crowd.alice) == nil, "nobody ever stopped it")
        crowd.scenario.settle()
        crowd.scenario.settle()
        #expect(reads(crowd.members[0]) == true)
        let answers = try crowd.scenario.heard(by: crowd.members[0]).compactMap(\.kind.id)
        #expect(answers.count == 400, "each is answered, if only with a refusal")
        #expect(crowd.scenario.hub.snapshot().crowdedTurns > 0)
    }

    @Test("What a client asked for before it hung up is done, in order, and then it is gone")
    func orderBeforeHangUp() throws {
        let crowd = try Crowd()
        for _ in 0..<20 { try crowd.signal(from: 0) }
        try crowd.members[0].close().wait()
        #expect(!crowd.scenario.hub.turns.isEmpty)
        crowd.scenario.settle()
        var types: [String] = []
        while let frame = try crowd.members[1].readOutbound(as: WebSocketFrame.self) {
            let text = String(decoding: frame.data.readableBytesView, as: UTF8.self)
            if text.contains("roomSignal") { types.append("signal") }
            if text.contains("streamDropped") { types.append("dropped") }
        }
        #expect(types == Array(repeating: "signal", count: 20) + ["dropped"])
    }

    @Test("A crowd of timers is met in pieces, so that a request need not wait for all of them")
    func timersTakeTurns() {
        var core = ExchangeCore(accounts: [], run: 1)
        var outbox: [ExchangeCore.Output] = []
        let strangers = 1_000
        for number in 0..<strangers {
            core.handle(.connected(ConnectionID(number: UInt64(number))), at: .zero, into: &outbox)
        }
        let due = Instant.zero.advanced(by: .seconds(10))
        var closed = 0
        var pieces = 0
        while let next = core.nextDeadline, next <= due, pieces < 100 {
            outbox.removeAll()
            core.handle(.timer, at: due, into: &outbox)
            #expect(outbox.count <= 257)
            closed += outbox.count { if case .close = $0 { true } else { false } }
            pieces += 1
        }
        #expect(closed == strangers)
    }
}
