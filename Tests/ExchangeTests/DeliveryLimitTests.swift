@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

/// Plays somebody who sends the most that is accepted, in the text that grows the most, and holds all that anybody is told to
/// what a client must take.
@Suite("The exchange accepts only what fits into every client's events")
struct DeliveryLimitTests {
    /// A name of 256 bytes, of which JSON makes twice as many.
    private static func longName<Kind>(_ number: Int) -> Identifier<Kind> {
        let tail = "\(number)"
        return Identifier(ours: String(repeating: "\"", count: SignalLimits.nameBytes - tail.count) + tail)
    }

    /// Users with the longest names that there can be, and as many ids.
    private static func users(_ count: Int) -> [Account] {
        (0..<count).map { user in
            let ids: [UserID] = (0..<SignalLimits.publicIDs).map { longName(1_000_000 * ($0 + 1) + user) }
            return Account(id: longName(user), publicIDs: ids)
        }
    }

    /// No limit on how fast messages come.
    private static var settings: ExchangeCore.Settings {
        var settings = ExchangeCore.Settings()
        settings.messageBurst = 1_000_000_000
        settings.messagesPerSecond = 1_000_000_000
        return settings
    }

    /// Holds everything that was sent to what clients must take, and reads the fifty largest messages as clients do.
    private static func check(_ scenario: ExchangeScenario, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let messages = scenario.messages.sorted { $0.count > $1.count }
        #expect((messages.first?.count ?? 0) <= SignalLimits.deliveredBytes, sourceLocation: sourceLocation)
        for bytes in messages.prefix(50) {
            let message = try RPCMessage(decoding: bytes, within: .delivery)
            if case .notification = message.kind { _ = try message.params(NumberedEvent.self) }
        }
    }

    /// Values of exactly so many bytes as JSON text, or one or two less, that are short on their way in or nested deeply.
    private static func values(bytes: Int) -> [JSONValue] {
        let digits = 20  // With its comma.
        let numbers = JSONValue.array(Array(repeating: 1_000_000_000_000_000_000, count: (bytes - 1) / digits))
        let quotes = JSONValue.string(String(repeating: "\"", count: (bytes - 2) / 2))
        let controls = JSONValue.string(String(repeating: "\u{1}", count: (bytes - 2) / 6))
        let keys = JSONValue.object([String(repeating: "\\", count: (bytes - 6) / 2): 1])
        var deep = JSONValue.string(String(repeating: "x", count: bytes - 2 - 2 * 60))
        for _ in 0..<60 { deep = .array([deep]) }
        return [numbers, quotes, controls, keys, deep]
    }

    @Test("INV-1: The largest invite, answer, change and cancellation are delivered to all; larger ones are refused")
    func invites() throws {
        let limit = SignalLimits.inviteDataBytes
        for data in Self.values(bytes: limit) {
            var scenario = ExchangeScenario(settings: Self.settings, users: Self.users(33))
            let inviter = scenario.device("a", of: Self.longName(0))
            let invitees = (1...32).map { scenario.device("b", of: Self.longName($0)) }
            let invite = InviteSend(
                to: (1...32).map { Self.longName($0) }, data: data, ttl: 30, idempotencyKey: Self.longName(1))
            let sent = scenario.request(.inviteSend(invite), from: inviter)
            guard case .success(.invite(let result)) = sent else {
                Issue.record("\(data.textBytes) bytes are refused: \(sent)")
                continue
            }
            let id = result.invite
            #expect(scenario.refusal(of: .inviteModify(InviteModify(invite: id, data: data)), from: inviter) == nil)
            #expect(scenario.refusal(of: .inviteAccept(InviteAccept(invite: id, data: data)), from: invitees[0]) == nil)
            #expect(scenario.refusal(of: .inviteReject(InviteReject(invite: id, data: data)), from: invitees[1]) == nil)
            #expect(scenario.refusal(of: .inviteList(InviteList()), from: inviter) == nil)
            #expect(scenario.refusal(of: .inviteCancel(InviteCancel(invite: id, data: data)), from: inviter) == nil)
            for invitee in invitees { #expect(!scenario.events(of: invitee).isEmpty) }
            try Self.check(scenario)

            let pad = JSONValue.string(String(repeating: "x", count: limit - data.textBytes))
            let larger = JSONValue.array([data, pad])
            for request in [
                .inviteSend(InviteSend(to: invite.to, data: larger, ttl: 30, idempotencyKey: "data")),
                .inviteSend(InviteSend(to: invite.to, data: pad, ttl: 30, payload: data, idempotencyKey: "payload")),
                .inviteSend(
                    InviteSend(to: invite.to, ttl: 30, payload: pad, timeoutPayload: data, idempotencyKey: "missed")),
                .inviteModify(InviteModify(invite: id, data: larger)),
                .inviteCancel(InviteCancel(invite: id, data: larger)),
            ] as [ClientRequest] {
                #expect(scenario.refusal(of: request, from: inviter) == .tooLarge)
            }
            #expect(
                scenario.refusal(of: .inviteAccept(InviteAccept(invite: id, data: larger)), from: invitees[2])
                    == .tooLarge)
        }
    }

    @Test(
        "INV-1: Random data that is accepted can be delivered, and is refused as too large otherwise", arguments: 0..<8)
    func randomData(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var scenario = ExchangeScenario(settings: Self.settings, users: Self.users(2))
        let inviter = scenario.device("a", of: Self.longName(0))
        let invitee = scenario.device("b", of: Self.longName(1))
        for round in 0..<10 {
            let bytes = Int.random(
                in: SignalLimits.inviteDataBytes - 200...SignalLimits.inviteDataBytes + 200, using: &generator)
            var parts: [JSONValue] = []
            var size = 2
            while size < bytes - 6_000 {
                let values = Self.values(bytes: Int.random(in: 200...1_000, using: &generator))
                for value in values.shuffled(using: &generator).prefix(2) {
                    parts.append(value)
                    size += value.textBytes + 1
                }
            }
            let rest = bytes - size - 2
            parts.append(.string(String(repeating: "y", count: max(0, rest))))
            let data = JSONValue.array(parts)
            let request = ClientRequest.inviteSend(
                InviteSend(to: [Self.longName(1)], data: data, ttl: 0, idempotencyKey: "\(round)"))
            let isSmall = data.textBytes <= SignalLimits.inviteDataBytes
            #expect(scenario.refusal(of: request, from: inviter) == (isSmall ? nil : .tooLarge))
            let heard = scenario.events(of: invitee)
            #expect(heard.count == (isSmall ? 1 : 0))
            guard case .inviteReceived(let event)? = heard.first else { continue }
            _ = scenario.request(.inviteReject(InviteReject(invite: event.invite)), from: invitee)
        }
        try Self.check(scenario)
    }

    @Test("CONN-7: A full room with the longest connection data is sent in pages, each participant once")
    func room() throws {
        let count = Rooms.participants
        var scenario = ExchangeScenario(settings: Self.settings, users: Self.users(count))
        let data = String(repeating: "\u{1}", count: SignalLimits.connectionDataBytes)
        let devices = (0..<count).map { scenario.device("d", of: Self.longName($0), registers: false) }
        for device in devices {
            _ = scenario.request(.roomJoin(RoomJoin(room: Self.longName(7), data: data)), from: device)
        }
        let last = devices[count - 1]
        var names: [ConnectionName] = []
        var after: UInt64?
        var pages = 0
        repeat {
            let answer = scenario.request(.roomJoin(RoomJoin(room: Self.longName(7), after: after)), from: last)
            guard case .success(.room(let page)) = answer else { throw Unanswered(answer: "\(answer)") }
            names += page.participants.map(\.connection)
            after = page.next
            pages += 1
        } while after != nil && pages < 100
        #expect(names == devices.dropLast().compactMap { scenario.session(on: $0)?.name })
        #expect(pages > 5)
        try Self.check(scenario)
    }

    @Test("GRP-1: The largest groups, and the most of them, are sent in pages, each once")
    func groups() throws {
        let count = SignalLimits.groupMembers
        var scenario = ExchangeScenario(settings: Self.settings, users: Self.users(count))
        let members = (1..<count).map { Self.longName($0) as UserID }
        let device = scenario.device("d", of: Self.longName(1))
        for owner in 0..<SignalLimits.groupsJoined / SignalLimits.groupsOwned {
            let other = scenario.device("o", of: Self.longName(owner == 1 ? 199 : owner), registers: false)
            // Strangers could not add it to so many.
            _ = scenario.invite(Self.longName(owner == 1 ? 199 : owner), from: device, key: "\(owner)")
            for number in 0..<SignalLimits.groupsOwned {
                let create = GroupCreate(
                    group: Self.longName(owner * 1_000 + number), name: (Self.longName(number) as GroupID).text,
                    members: number == 0 ? members : [Self.longName(1)])
                #expect(scenario.refusal(of: .groupCreate(create), from: other) == nil)
            }
        }
        var ids: [GroupID] = []
        var after: GroupID?
        repeat {
            let answer = scenario.request(.groupList(GroupList(after: after)), from: device)
            guard case .success(.groups(let page)) = answer else { throw Unanswered(answer: "\(answer)") }
            ids += page.groups.map(\.group)
            after = page.next
        } while after != nil && ids.count < 1_000
        #expect(ids == ids.sorted() && Set(ids).count == SignalLimits.groupsJoined)
        #expect(
            scenario.refusal(of: .groupMembers(GroupMembers(group: Self.longName(0))), from: device) == nil)
        try Self.check(scenario)
    }

    @Test("The list of present users fits into one message, for any names")
    func presence() throws {
        var scenario = ExchangeScenario(settings: Self.settings, users: Self.users(SignalLimits.presenceUsers + 1))
        let device = scenario.device("d", of: Self.longName(0))
        let answer = scenario.request(.presenceSubscribe(PresenceSubscribe()), from: device)
        guard case .success(.presence(let list)) = answer else { throw Unanswered(answer: "\(answer)") }
        #expect(!list.users.isEmpty)
        try Self.check(scenario)
    }
}

/// A request had another answer than it should.
private struct Unanswered: Error {
    let answer: String
}
