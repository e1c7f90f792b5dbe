@testable import ExchangeCore
@testable import ExchangeServer
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

/// As much as an invite may bear, in text that takes many times its length once it is read.
private let hostile = JSONValue.array(Array(repeating: .object([:]), count: 19_000))

private func send(_ data: JSONValue?, to: [UserID] = ["bob"], key: Int, ttl: Double = 30) -> ClientRequest {
    .inviteSend(
        InviteSend(
            to: to, data: data, ttl: ttl, idempotencyKey: IdempotencyKey(ours: "k\(key)")))
}

private func settings(total: Int = 256 << 20) -> ExchangeCore.Settings {
    var settings = ExchangeCore.Settings()
    settings.kept.total = total
    settings.messageBurst = 1_000_000
    settings.messagesPerSecond = 1_000_000
    return settings
}

/// Some users, and their tokens.
private func crowd(_ count: Int, total: Int = 256 << 20) -> ExchangeScenario {
    ExchangeScenario(
        settings: settings(total: total),
        users: ExchangeScenario.users + (0..<count).map { Account(id: UserID(ours: "user\($0)")) })
}

extension ExchangeCore {
    /// Bytes of the bodies of events, each once, and how many logs hold them.
    fileprivate var bodies: (bytes: Int, holders: Int) {
        let all = streams.bodies
        return (Set(all).reduce(0) { $0 + $1.bytes }, all.count)
    }
}

@Suite("What is kept for a user has a budget") struct BudgetTests {
    @Test("Who sends and cancels without end stays within one user's budget, and everybody else's invites arrive")
    func sendAndCancel() {
        var scenario = crowd(12)
        let mallory = scenario.device("m", of: "carol")
        let alice = scenario.device("a", of: "alice")
        _ = scenario.device("b", of: "bob")
        var most = 0
        var sent = 0
        let data = JSONValue.string(String(repeating: "x", count: 58_000))
        for step in 0..<400 {
            // To one user alone it would be no more than what is kept for a device that resumes.
            let victim = UserID(ours: "user\(step % 12)")
            if case .success(.invite(let result)) = scenario.request(send(data, to: [victim], key: step), from: mallory)
            {
                sent += 1
                _ = scenario.request(.inviteCancel(InviteCancel(invite: result.invite)), from: mallory)
            }
            most = max(most, scenario.core.quota.used(by: .account("carol")))
            if step.isMultiple(of: 40) {
                let invite = scenario.invite("bob", from: alice, key: IdempotencyKey(ours: "honest\(step)"))
                #expect(invite != "none")
                _ = scenario.request(.inviteCancel(InviteCancel(invite: invite)), from: alice)
            }
            scenario.advance(by: .milliseconds(250))
        }
        let limit = scenario.core.quota.limits.user
        #expect(most > limit / 2 && most <= limit + 8_192)
        #expect(sent > 60 && sent < 200)
        #expect(scenario.core.counters.overBudget == 400 - sent)
        #expect(scenario.core.invites.all.allSatisfy { !$0.isEnded || $0.data == nil })
    }

    @Test(
        "For any requests of users, the quota matches what is kept, no user exceeds the budget, and all of it expires"
    )
    func property() {
        for seed in 1...2 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            var scenario = crowd(6, total: 4 << 20)
            var devices = (0..<6).map { scenario.device("d", of: UserID(ours: "user\($0)")) }
            var invites: [InviteID] = []
            for step in 0..<300 {
                let index = Int.random(in: 0..<6, using: &random)
                let data = JSONValue.string(String(repeating: "x", count: Int.random(in: 0...60_000, using: &random)))
                let others = (0..<Int.random(in: 1...5, using: &random)).map { UserID(ours: "user\((index + $0) % 6)") }
                let invite = invites.randomElement(using: &random) ?? "none"
                switch Int.random(in: 0..<10, using: &random) {
                case 0...2:
                    if case .success(.invite(let result)) = scenario.request(
                        send(data, to: others, key: step), from: devices[index])
                    {
                        invites.append(result.invite)
                    }
                case 3:
                    _ = scenario.request(.inviteCancel(InviteCancel(invite: invite, data: data)), from: devices[index])
                case 4: _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: devices[index])
                case 5:
                    _ = scenario.request(.inviteModify(InviteModify(invite: invite, data: data)), from: devices[index])
                case 6: _ = scenario.request(.roomJoin(RoomJoin(room: "lobby")), from: devices[index])
                case 7:
                    let small = JSONValue.string(String(repeating: "s", count: 8_000))
                    _ = scenario.request(
                        .roomSignal(RoomSignal(room: "lobby", type: "t", data: small)), from: devices[index])
                case 8:
                    let resume = scenario.resumePoint(of: devices[index])
                    scenario.feed(.disconnected(devices[index]))
                    devices[index] = scenario.device("d", of: UserID(ours: "user\(index)"), resume: resume)
                default: scenario.advance(by: .seconds(Int.random(in: 0...8, using: &random)))
                }
                check(scenario.core)
            }
            for device in devices { scenario.feed(.disconnected(device)) }
            scenario.advance(by: .seconds(125))
            #expect(scenario.core.quota.bodies.isEmpty, "no event outlives the resume window")
            scenario.advance(by: .seconds(3_600))
            #expect(scenario.core.quota.items.keys.allSatisfy { if case .call = $0 { true } else { false } })
            #expect(scenario.core.counted.quota.total == scenario.core.quota.total)
        }
    }

    private func check(_ core: ExchangeCore) {
        let counted = core.counted.quota
        #expect(counted.total == core.quota.total)
        #expect(counted.items == core.quota.items)
        let bodies = core.bodies
        #expect(
            core.quota.bodies.values.reduce(0) { $0 + $1.bytes }
                == bodies.bytes + Weight.entry * (core.quota.bodies.count + bodies.holders))
        #expect(core.quota.total <= core.quota.limits.total)
    }

    @Test("However many attackers fill the memory, who holds nothing can still call")
    func newcomer() {
        var scenario = crowd(24, total: 8 << 20)
        let large = JSONValue.string(String(repeating: "x", count: 58_000))
        let attackers = (0..<24).map { scenario.device("d", of: UserID(ours: "user\($0)")) }
        let alice = scenario.device("a", of: "alice")
        _ = scenario.device("b", of: "bob")
        for round in 0..<8 {
            // Each invites another one: whom they do not know takes few of them.
            for (number, attacker) in attackers.enumerated() {
                let next = UserID(ours: "user\((number + 1) % attackers.count)")
                _ = scenario.request(send(large, to: [next], key: round, ttl: 0), from: attacker)
            }
        }
        // With an eighth of what is free for each, 24 come to three quarters of all.
        #expect(scenario.core.quota.total > 5 << 20 && scenario.core.quota.total <= 8 << 20)
        #expect(scenario.core.counters.overload > 0)
        let data = JSONValue.string(String(repeating: "v", count: 6_000))
        guard case .success = scenario.request(send(data, key: 1), from: alice) else {
            Issue.record("alice cannot call")
            return
        }
        guard case .failure(let refusal) = scenario.request(send(large, key: 9), from: attackers[0]) else {
            Issue.record("an attacker gets more")
            return
        }
        #expect(refusal.known == .tooManyRequests && refusal.message.contains("short of memory"))
    }

    @Test("However many guests there are, they share one budget, and users do not notice")
    func guests() {
        var scenario = ExchangeScenario(settings: settings(total: 8 << 20))
        let alice = scenario.device("a", of: "alice")
        _ = scenario.device("b", of: "bob")
        for number in 0..<60 {
            let name = UserID(ours: "g\(number)")
            scenario.feed(.tokenIssued(SecretDigest(of: "token of \(name)"), Grant(user: name, isAnonymous: true)))
            let guest = scenario.device("d", of: name, registers: false)
            let room = RoomName(ours: "room\(number / 2)")
            _ = scenario.request(.roomJoin(RoomJoin(room: room)), from: guest)
            for _ in 0..<10 {
                let data = JSONValue.string(String(repeating: "s", count: 8_000))
                _ = scenario.request(.roomSignal(RoomSignal(room: room, type: "t", data: data)), from: guest)
            }
        }
        let quota = scenario.core.quota
        #expect(quota.guests > quota.limits.guests / 2 && quota.guests <= quota.limits.guests)
        #expect(scenario.invite("bob", from: alice) != "none")
        scenario.advance(by: .seconds(120))
        #expect(scenario.core.quota.bodies.isEmpty)
    }

    @Test("SIG-1: A signal to sixty participants is kept once, and paid for by who sent it")
    func shared() {
        var scenario = crowd(60)
        let devices = (0..<60).map { scenario.device("d", of: UserID(ours: "user\($0)")) }
        for device in devices { _ = scenario.request(.roomJoin(RoomJoin(room: "lobby")), from: device) }
        scenario.advance(by: .seconds(70))
        let before = scenario.core.quota.used(by: .account("user1"))
        let text = String(repeating: "s", count: 8_000)
        let signal = RoomSignal(room: "lobby", type: "t", data: .string(text))
        _ = scenario.request(.roomSignal(signal), from: devices[0])
        #expect(scenario.core.quota.bodies.count == 1 && scenario.core.bodies.holders == 60)
        #expect(scenario.core.quota.used(by: .account("user0")) < 20_000)
        #expect(scenario.core.quota.used(by: .account("user1")) == before)
        let told = scenario.changes.suffix(60).compactMap { if case .event(let event) = $0 { event.body } else { nil } }
        #expect(told.count == 60 && Set(told.map(\.number)).count == 1)
    }

    @Test("CONN-5: Without room to keep an event connected devices get it, and a disconnected one starts afresh")
    func unkept() {
        var scenario = crowd(0, total: 64 << 10)
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let resume = scenario.resumePoint(of: bob)
        scenario.feed(.disconnected(bob))
        let payload = JSONValue.string(String(repeating: "n", count: 60_000))
        scenario.feed(.notify("alice", payload))
        scenario.feed(.notify("alice", payload))
        #expect(scenario.events(of: alice).count == 2)
        #expect(scenario.core.counters.unkeptEvents == 1)
        scenario.feed(.notify("alice", "small"))
        let late = scenario.resumePoint(of: alice)
        scenario.feed(.disconnected(alice))
        let device = DeviceDescription(id: "a", name: "a")
        func resumed(after: UInt64) -> Bool? {
            let start = SessionStart(
                token: Redacted("token of alice"), device: device,
                resume: late.map { .init(session: $0.session, after: after) })
            let connection = scenario.connect()
            defer { scenario.feed(.disconnected(connection)) }
            guard case .success(.session(let result)) = scenario.request(.sessionStart(start), from: connection) else {
                return nil
            }
            return result.resumed
        }
        #expect(resumed(after: 2) == true)
        #expect(resumed(after: 1) == false)
        _ = resume
    }

    @Test("The newest thousand ended invites of a user are remembered, and an older key is free")
    func endedInvites() {
        var settings = settings()
        settings.endedInvitesPerUser = 16
        var scenario = ExchangeScenario(settings: settings)
        let alice = scenario.device("a", of: "alice")
        var ids: [InviteID] = []
        for number in 0..<40 {
            ids.append(scenario.invite("bob", from: alice, key: IdempotencyKey(ours: "k\(number)")))
            _ = scenario.request(.inviteCancel(InviteCancel(invite: ids[number])), from: alice)
        }
        #expect(scenario.core.invites.count == 16 && scenario.core.invites.keyCount == 16)
        #expect(scenario.invite("bob", from: alice, key: "k39") == ids[39])
        #expect(scenario.refusal(of: .inviteCancel(InviteCancel(invite: ids[39])), from: alice) == .inviteEnded)
        #expect(scenario.refusal(of: .inviteCancel(InviteCancel(invite: ids[0])), from: alice) == .unknownInvite)
    }

    @Test("Deadlines that do not matter any more are never more than those that do, or a thousand")
    func deadlines() {
        var scenario = ExchangeScenario(settings: settings())
        let alice = scenario.device("a", of: "alice")
        for number in 0..<2_400 {
            let invite = scenario.invite("bob", from: alice, ttl: 86_400, key: IdempotencyKey(ours: "k\(number)"))
            _ = scenario.request(.inviteCancel(InviteCancel(invite: invite)), from: alice)
            scenario.advance(by: .milliseconds(200))
        }
        #expect(scenario.core.deadlineCount <= 2 * 1_024 + 2)
    }

    @Test("CONN-5: What a device is sent at once when it resumes fits in what may wait for it")
    func resumeFits() {
        var log = EventLog()
        for number in 1...20 as ClosedRange<UInt64> {
            let text = EventText(kept: String(repeating: "x", count: 100_000))
            _ = log.append(
                EventBody(number: number, text: text), for: .device("d"), at: .zero)
        }
        #expect(log.bodies.count == 7 && log.forgotten == 13)
        let wire = EventLog.capacityBytes + EventLog.capacity * 100
        #expect(wire < 1 << 20, "OutboundMeter.limit")
    }

    @Test("An event's text with a number is the event")
    func eventText() throws {
        let event = ExchangeEvent.inviteEnded(InviteEnded(invite: "i"))
        let text = try EventText(event)
        let message = try RPCMessage(decoding: text.message(numbered: 77))
        #expect(try message.params(NumberedEvent.self) == NumberedEvent(sequence: 77, event: event))
        #expect(EventText(kept: "!\"data\":1}").event == nil)
    }

    @Test(
        "CONN-5: A device without events for a long time resumes, regardless of the events of its user's other devices"
    )
    func quietDevice() {
        var scenario = crowd(0)
        let quiet = scenario.device("quiet", of: "alice", registers: false)
        let phone = scenario.device("phone", of: "alice", registers: false)
        _ = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: phone, ttl: 2)
        scenario.advance(by: .seconds(200))
        #expect(invite != "none" && scenario.core.streams[.account("alice")]?.sequence ?? 0 > 1)
        #expect(scenario.core.quota.bodies.isEmpty)
        let session = scenario.session(on: quiet)?.id ?? "none"
        scenario.feed(.disconnected(quiet))
        let start = SessionStart(
            token: Redacted("token of alice"), device: DeviceDescription(id: "quiet", name: "quiet"),
            resume: .init(session: session, after: 0))
        guard case .success(.session(let result)) = scenario.request(.sessionStart(start), from: scenario.connect())
        else {
            Issue.record("no session")
            return
        }
        #expect(result.resumed)
    }

    @Test("After a restart the quota says what it said before, but who caused events")
    func restart() {
        var scenario = crowd(0)
        let alice = scenario.device("a", of: "alice")
        _ = scenario.device("b", of: "bob")
        for number in 0..<5 { _ = scenario.request(send(hostile, key: number), from: alice) }
        let next = scenario.restarted()
        let before = scenario.core.quota
        let after = next.core.quota
        #expect(after.bodies.values.map(\.bytes).sorted() == before.bodies.values.map(\.bytes).sorted())
        let invites = before.items.filter { if case .invite = $0.key { true } else { false } }
        #expect(invites.count == 5 && invites.allSatisfy { after.items[$0.key] == $0.value })
        #expect(next.core.quota.total == next.core.counted.quota.total)
    }
}
