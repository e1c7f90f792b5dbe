@testable import ExchangeCore
@testable import ExchangeServer
import JSON
import NIOCore
import NIOEmbedded
import NIOWebSocket
import SignalSupport
import SignalWire
import Testing
import Core
import Realtime

/// An exchange on a slow disk with a full room, half of which is absent, and a user who has no part in it.
private struct Crowd {
    static let participants = 62
    let scenario: HubScenario
    let members: [EmbeddedChannel]
    let alice: EmbeddedChannel
    /// When the absent half lost their connections.
    let closed: Duration

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
        closed = scenario.now
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
        arguments: [1, 8, 31])
    func bystandersDoNotWait(attackers: Int) throws {
        let crowd = try Crowd()
        let scenario = crowd.scenario
        let commits = scenario.disk.commits.count
        // A signal costs about 80, so that a round, which serves 192, serves three. Each writes an event for everybody, and
        // forgets an old one.
        let perRound = 3
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

    @Test(
        "What gathers for a slow disk is bounded in bytes: requests are refused and counted, and taken again afterwards"
    )
    func fullJournal() throws {
        let names = (0..<8).map { "sender\($0)" as UserID }
        let limit = 100_000
        let scenario = HubScenario(users: names + ["bob"], perChange: .milliseconds(10), limits: .init(bytes: limit))
        let senders = try names.map { try scenario.device(of: $0) }
        let data = JSONValue.string(String(repeating: "x", count: 8_000))
        func ask(_ number: Int, of sender: EmbeddedChannel) throws -> RPCID {
            let key = IdempotencyKey(ours: "k\(number)")
            return try scenario.ask(InviteSend(to: ["bob"], data: data, ttl: 30, idempotencyKey: key), on: sender)
        }
        // The first goes to the disk at once; while that is under way, the others gather.
        var asked: [RPCID] = []
        for number in 0..<2 {
            for sender in senders {
                asked.append(try ask(number, of: sender))
                #expect(scenario.hub.snapshot().journalBytes <= 2 * limit + 20_000)
            }
        }
        let refused = scenario.hub.snapshot().crowdedDisk
        #expect(scenario.hub.journal?.isFull == true)
        #expect(refused > 0 && refused < asked.count)
        scenario.settle()
        var answers: [RPCID: Bool] = [:]
        for sender in senders {
            for message in try scenario.heard(by: sender) {
                if case .result(let id) = message.kind { answers[id] = true }
                if case .failure(let id?, let error) = message.kind {
                    answers[id] = false
                    #expect(error.known == .tooManyRequests)
                }
            }
        }
        #expect(Set(asked) == Set(answers.keys), "each is answered once")
        #expect(answers.values.count { !$0 } == refused)
        #expect(scenario.hub.snapshot().journalBytes == 0)
        for sender in senders {
            for number in 0..<2 {
                let again = try ask(number, of: sender)
                _ = try scenario.wait(for: again, on: sender)
            }
        }
        #expect(scenario.hub.snapshot().crowdedDisk == refused)
        #expect(scenario.hub.snapshot().invites == asked.count, "nothing that was refused was done")
    }

    @Test("Without a database no request waits for more than one turn of the event loop")
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

    /// How many answers a client gets before the event loop turns, and in each turn after that, in which a stranger asks
    /// for something, too.
    private func answersByTurn(
        of requests: Int, taking time: Duration = .zero, dataBytes: Int? = nil
    ) throws -> (atOnce: Int, turns: [Int]) {
        let scenario = HubScenario(users: ["alice", "bob", "carol"], keeps: false)
        let alice = try scenario.device(of: "alice", taking: time)
        let carol = try scenario.device(of: "carol")
        if let dataBytes {
            let data = JSONValue.string(String(repeating: "x", count: dataBytes))
            try scenario.ask(InviteSend(to: ["bob"], data: data, ttl: 300, idempotencyKey: "k"), on: alice)
        }
        scenario.settle()
        _ = try scenario.heard(by: alice)
        for _ in 0..<requests { try scenario.ask(InviteList(), on: alice) }
        let atOnce = try scenario.heard(by: alice).count
        var turns: [Int] = []
        func look() {
            do {
                let ping = try scenario.ask(Ping(), on: carol)
                let isAnswered = try scenario.heard(by: carol).contains { $0.kind.id == ping }
                #expect(isAnswered, "a stranger is answered at once")
                turns.append(try scenario.heard(by: alice).count)
            } catch {
                Issue.record(error)
            }
            guard !scenario.hub.turns.isEmpty else { return }
            scenario.loop.assumeIsolated().scheduleTask(in: .microseconds(50), look)
        }
        scenario.loop.assumeIsolated().scheduleTask(in: .microseconds(50), look)
        scenario.settle()
        return (atOnce, turns)
    }

    @Test(
        "Long answers cost by their length: no client waits for more of them than a round has, for any number of requests"
    )
    func longAnswers() throws {
        // A list costs 1, and 14 for the data: before it is written, 17 are expected.
        let (atOnce, turns) = try answersByTurn(of: 60, dataBytes: 60_000)
        let perRound = 192 / 15 + 1
        #expect(atOnce <= 2 + perRound)
        #expect(turns.allSatisfy { $0 <= perRound })
        #expect(atOnce + turns.reduce(0, +) == 60)
    }

    @Test("Work that takes longer than its size suggests costs its time, and slow work earns no turns")
    func slowAnswers() throws {
        // 10 ms cost 200, of 192 in a round.
        let (atOnce, turns) = try answersByTurn(of: 60, taking: .milliseconds(10))
        #expect(atOnce <= 1 + 2)
        #expect(turns.allSatisfy { $0 <= 2 })
        #expect(atOnce + turns.reduce(0, +) == 60)
    }

    @Test("What it took to read a message is charged, though the message then waits for its turn")
    func readingIsCharged() throws {
        let scenario = HubScenario(users: ["alice"], keeps: false) { $0.count > 500 ? .milliseconds(5) : .zero }
        let alice = try scenario.device(of: "alice")
        // So many would be told that it has its turn with those that wait; it comes to nothing, and costs 1 to refuse.
        let strangers = (0..<20).map { UserID(ours: "nobody \($0) \(String(repeating: "x", count: 20))") }
        try scenario.ask(InviteSend(to: strangers, ttl: 30, idempotencyKey: "k"), on: alice)
        #expect(try scenario.heard(by: alice).count == 1, "nobody else asked for anything")
        // 5 ms cost 100, of which 32 were saved up and 4 are paid back; refusing alone would leave 31.
        scenario.advance(by: .milliseconds(2))
        try scenario.ask(Ping(), on: try scenario.connect())
        #expect(scenario.mustWait("alice"))
    }

    @Test(
        "A message that may take long to read is read when it has its turn, also without a session, and others at once")
    func longReadingWaits() throws {
        let crowd = try Crowd()
        let scenario = crowd.scenario
        let stranger = try scenario.connect()
        for _ in 0..<20 { try crowd.signal(from: 0) }
        let before = scenario.readings
        let lists = JSONValue.array(Array(repeating: .object([:]), count: 2_000))
        try scenario.ask(InviteSend(to: ["member0"], data: lists, ttl: 30, idempotencyKey: "k"), on: crowd.alice)
        try scenario.ask(InviteSend(to: ["member0"], data: lists, ttl: 30, idempotencyKey: "k"), on: stranger)
        #expect(scenario.readings == before, "the round has nothing left for those who ask for much")
        let text = JSONValue.string(String(repeating: "x", count: 8_000))
        try scenario.ask(InviteSend(to: ["member0"], data: text, ttl: 30, idempotencyKey: "k"), on: crowd.members[1])
        #expect(scenario.readings == before + 1)
        scenario.settle()
        #expect(scenario.readings > before + 2 && scenario.hub.turns.isEmpty)
    }

    @Test("A login with a signed token is not charged for others who have their turn when it becomes known")
    func signedLogin() throws {
        let key = try #require(SigningKey(name: "school", secret: String(repeating: "k", count: 32)))
        let now = MonotonicClock.wallTime.seconds
        let signed = SignedToken(application: "school", user: "bob", issued: now, expires: now + 600)
        let token = try SignedTokenMint.sign(signed, with: key)
        let scenario = HubScenario(users: ["alice", "bob"], apiKeys: [key]) { message in
            String(decoding: message, as: UTF8.self).contains("invite.list") ? .milliseconds(10) : .zero
        }
        let alice = try scenario.device(of: "alice")
        let bob = try scenario.connect()
        for _ in 0..<40 { try scenario.ask(InviteList(), on: alice) }
        let before = scenario.readings
        let device = DeviceDescription(id: "b", name: "b")
        // The login is written, which begins a round, and in that it is alice's turn.
        try scenario.ask(SessionStart(token: Redacted(token), device: device), on: bob)
        #expect(scenario.readings > before + 1 && !scenario.hub.turns.isEmpty)
        #expect(!scenario.mustWait("bob"), "it cost no more than it was worth")
        scenario.settle()
        #expect(scenario.hub.core.sessions.sessions(of: "bob").count == 1)
    }

    @Test("Rounds that the disk made are not paid back once more by the time that they took")
    func roundsCountOnce() throws {
        let scenario = HubScenario(users: ["alice", "bob"])
        let alice = try scenario.device(of: "alice", taking: .microseconds(5_600))
        let bob = try scenario.device(of: "bob")
        scenario.settle()
        // 5.6 ms cost 112, of which 32 were saved up: the rest takes 41 rounds.
        try scenario.ask(InviteList(), on: alice)
        let device = DeviceDescription(id: "device of bob", name: "device")
        // Each time the disk takes more than 3 ms of the 5, which is one round, and then less than 2 go by idly.
        for _ in 0..<13 {
            try scenario.ask(DeviceRegister(device: device), on: bob)
            scenario.advance(by: .milliseconds(5))
        }
        #expect(scenario.mustWait("alice"))
        scenario.settle()
        try scenario.ask(Ping(), on: bob)
        #expect(!scenario.mustWait("alice"))
    }

    @Test("A connection whose messages are refused because too many wait is read no further until they are done")
    func refusedConnectionsWait() throws {
        let scenario = HubScenario(users: [], keeps: false)
        let (first, second) = (try scenario.connect(), try scenario.connect())
        for _ in 0..<700 { try scenario.ask(Ping(), on: first) }
        #expect(scenario.hub.snapshot().crowdedTurns > 0)
        #expect(reads(second) == nil)
        try scenario.ask(Ping(), on: second)
        #expect(reads(second) == false)
        scenario.settle()
        #expect(reads(second) == true)
    }

    @Test("What falls due for others does not put off the end of a user's invite, however much that is")
    func timersOfOthers() throws {
        let crowd = try Crowd()
        let scenario = crowd.scenario
        // The absent are given up by the room one after the other, just before the invite's time is up.
        let due = crowd.closed + ExchangeCore.Settings().resumeWindow + .milliseconds(1)
        let ttl = (due - scenario.now) / Duration.seconds(1)
        let id = try scenario.ask(InviteSend(to: ["member40"], ttl: ttl, idempotencyKey: "k"), on: crowd.alice)
        _ = try scenario.wait(for: id, on: crowd.alice)
        while scenario.now < due { scenario.advance(by: .microseconds(100)) }
        _ = try scenario.heard(by: crowd.alice)
        let commits = scenario.disk.commits.count
        while try scenario.heard(by: crowd.alice).isEmpty, scenario.now < due + .seconds(10) {
            scenario.advance(by: .microseconds(100))
        }
        #expect(scenario.disk.commits.count - commits <= 2, "that which is under way, and its own")
        let before = scenario.disk.commits.count
        scenario.settle()
        #expect(scenario.disk.commits.count - before > 5, "the room has much to tell")
    }

    @Test("What falls due for a user is never refused, and leaves its requests their places")
    func timersAreNotRequests() throws {
        let limit = 8
        var queue = FairQueue<String, Int, Int>(.init(payerCount: limit))
        for number in 0..<(10 * limit) {
            let taken = queue.enqueue(number, bytes: 0, weight: 1_000, on: 1, of: "user", isOptional: false)
            #expect(taken == .taken)
        }
        let requests = (0..<(4 * limit + 1)).map { queue.enqueue($0, bytes: 0, weight: 1_000, on: 2, of: "user") }
        #expect(requests.prefix(limit - 1).allSatisfy { $0 == .taken })
        #expect(requests[(limit - 1)..<(4 * limit)].allSatisfy { $0 == .takenAndPaused })
        #expect(requests.last == .refused)
    }

    @Test("What timers change is bounded as well: invites are forgotten, and tokens cleared away, in pieces")
    func silentTimersTakeTurns() {
        var settings = ExchangeCore.Settings()
        settings.messageBurst = 10_000
        settings.messagesPerSecond = 100
        var scenario = ExchangeScenario(settings: settings)
        let alice = scenario.device("a", of: "alice")
        for number in 0..<600 {
            let invite = scenario.invite("bob", from: alice, key: IdempotencyKey(ours: "\(number)"))
            scenario.request(.inviteCancel(InviteCancel(invite: invite)), from: alice)
        }
        for number in 0..<1_000 {
            scenario.feed(
                .tokenIssued(SecretDigest(of: "\(number)"), Grant(user: "crowd", isAnonymous: true)))
        }
        var core = scenario.core
        #expect(core.invites.count == 600)
        var now = Instant.zero.advanced(by: .seconds(5_000))
        var pieces = 0
        while let next = core.nextDeadline, next <= now, pieces < 100 {
            var outbox: [ExchangeCore.Output] = []
            core.handle(.timer, at: now, into: &outbox)
            // A token that goes and its login are two.
            #expect(outbox.count <= 3 * ExchangeCore.timersAtOnce)
            now = now.advanced(by: .milliseconds(1))
            pieces += 1
        }
        #expect(core.invites.count == 0 && core.accounts.tokenCount == 0)
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
