@testable import ExchangeCore
import Foundation
import JSON
import SignalWire
import Testing
import Core

/// Alice may call telephone numbers, by the account "desk"; Bob and Carol may not.
private struct TrunkScenario {
    var exchange: ExchangeScenario
    let alice: ConnectionID
    let bob: ConnectionID
    let desk: ConnectionID
    private var keys = 0

    init(_ change: (inout Trunk) -> Void = { _ in }) {
        var settings = ExchangeCore.Settings()
        var trunk = Trunk(user: "desk", numbers: ["2??", "+49*", "00*"].compactMap { NumberPattern($0) })
        trunk.callers = ["alice"]
        change(&trunk)
        settings.trunks = [trunk]
        settings.tokenLifetime = .seconds(86_400)
        exchange = ExchangeScenario(settings: settings, users: ExchangeScenario.users + [Account(id: "desk")])
        alice = exchange.device("a", of: "alice")
        bob = exchange.device("b", of: "bob")
        desk = exchange.device("d", of: "desk")
    }

    mutating func call(
        _ to: [UserID], from connection: ConnectionID, _ more: [String: JSONValue] = [:], group: GroupID? = nil
    ) -> Result<ClientResponse, RPCError> {
        keys += 1
        var data = more
        data["offer"] = "o"
        return exchange.request(
            .inviteSend(
                InviteSend(
                    to: to, group: group, data: .object(data), ttl: 30,
                    idempotencyKey: IdempotencyKey(ours: "key \(keys)"))), from: connection)
    }

    mutating func refusal(
        _ to: [UserID], from connection: ConnectionID, _ more: [String: JSONValue] = [:]
    ) -> RPCErrorCode? {
        guard case .failure(let error) = call(to, from: connection, more) else { return nil }
        return error.known
    }

    /// The invite that a call has become.
    mutating func invite(_ to: UserID, from connection: ConnectionID) throws -> InviteID {
        guard case .success(.invite(let sent)) = call([to], from: connection) else {
            throw RPCError(.internalError, "refused")
        }
        return sent.invite
    }

    mutating func invitation(of connection: ConnectionID) throws -> InviteReceived {
        let received = received(by: connection)
        return try #require(received)
    }

    mutating func received(by connection: ConnectionID) -> InviteReceived? {
        exchange.events(of: connection).lazy.compactMap {
            if case .inviteReceived(let invite) = $0 { invite } else { nil }
        }.last
    }
}

@Suite("Trunks of the exchange") struct TrunkTests {
    @Test("A number that a user may call rings at the trunk's account, which gets the dialled number")
    func goesOut() throws {
        var run = TrunkScenario()
        #expect(run.refusal(["+49301234"], from: run.alice) == nil)
        let invite = try run.invitation(of: run.desk)
        #expect(invite.inviter == "alice" && invite.invitees == ["desk"])
        #expect(invite.data == ["offer": "o", "trunk": ["dialled": "+49301234"]])
    }

    @Test("Only listed users may call out: no other users, no guests, and by default none")
    func closed() {
        var run = TrunkScenario()
        #expect(run.refusal(["201"], from: run.bob) == .notAllowed)
        #expect(run.received(by: run.desk) == nil)
        var unlisted = TrunkScenario { $0 = Trunk(user: "desk", numbers: $0.numbers) }
        #expect(unlisted.refusal(["201"], from: unlisted.alice) == .notAllowed)
        let guest = run.exchange.device("g", of: "guest", registers: false)
        #expect(run.refusal(["201"], from: guest) != nil)
        // A guest with a listed user's name is another.
        #expect(run.received(by: run.desk) == nil)
    }

    @Test(
        "A name that only looks like a listed number leads nowhere",
        arguments: [
            "20", "2011", "2a1", "+48123", "+49", "+49 301", "+49301;x=1", "*21*201#", "tel:201", "201@desk", "٢٠١",
            "0049301234567890123456789012345678",
        ])
    func strangeNumbers(name: String) {
        var run = TrunkScenario()
        #expect(run.refusal([UserID(ours: name)], from: run.alice) == .unknownUser)
        #expect(run.received(by: run.desk) == nil)
    }

    @Test("A user's own id or public id counts before a trunk's numbers")
    func usersFirst() throws {
        var run = TrunkScenario { $0.numbers.append(contentsOf: [NumberPattern("+1*")].compactMap { $0 }) }
        #expect(run.refusal(["+15550100"], from: run.alice) == nil)
        #expect(run.received(by: run.desk) == nil)
        let invite = try run.invitation(of: run.bob)
        #expect(invite.data == ["offer": "o"])
    }

    @Test("A trunk's account is not called by its name, and a number not together with others")
    func notByName() {
        var run = TrunkScenario()
        #expect(run.refusal(["desk"], from: run.alice) == .notAllowed)
        #expect(run.refusal(["201", "202"], from: run.alice) == .notAllowed)
        #expect(run.refusal(["bob", "201"], from: run.alice) == .notAllowed)
        #expect(run.received(by: run.desk) == nil)
        #expect(run.received(by: run.bob) == nil)
    }

    @Test("A user has no more calls at once than it may, whether they ring or are answered")
    func callsAtOnce() throws {
        var run = TrunkScenario { $0.callsAtOnce = 2 }
        let first = try run.invite("201", from: run.alice)
        let second = try run.invite("202", from: run.alice)
        #expect(run.refusal(["203"], from: run.alice) == .tooManyRequests)
        #expect(run.exchange.refusal(of: .inviteAccept(InviteAccept(invite: first)), from: run.desk) == nil)
        #expect(run.refusal(["203"], from: run.alice) == .tooManyRequests)
        #expect(run.exchange.refusal(of: .inviteCancel(InviteCancel(invite: second)), from: run.alice) == nil)
        let third = try run.invite("203", from: run.alice)
        #expect(run.refusal(["204"], from: run.alice) == .tooManyRequests)
        let end = CallEnd(invite: first, reason: "completed", durationMilliseconds: 1)
        #expect(run.exchange.refusal(of: .callEnd(end), from: run.alice) == nil)
        #expect(run.refusal(["204"], from: run.alice) == nil)
        #expect(third != first)
    }

    @Test("A user begins no more calls within any hour than it may; what was refused does not count")
    func callsPerHour() throws {
        var run = TrunkScenario { ($0.callsPerHour, $0.callsAtOnce) = (3, 1) }
        for minute in 0..<3 {
            let invite = try run.invite("201", from: run.alice)
            #expect(run.refusal(["202"], from: run.alice) == .tooManyRequests)
            #expect(run.exchange.refusal(of: .inviteCancel(InviteCancel(invite: invite)), from: run.alice) == nil)
            if minute < 2 { run.exchange.advance(by: .seconds(60)) }
        }
        for _ in 0..<10 { #expect(run.refusal(["201"], from: run.alice) == .tooManyRequests) }
        run.exchange.advance(by: .seconds(3_479))
        #expect(run.refusal(["201"], from: run.alice) == .tooManyRequests)
        run.exchange.advance(by: .seconds(1))
        let invite = try run.invite("201", from: run.alice)
        #expect(run.exchange.refusal(of: .inviteCancel(InviteCancel(invite: invite)), from: run.alice) == nil)
        // The second of the first hour is 60 s younger.
        #expect(run.refusal(["201"], from: run.alice) == .tooManyRequests)
    }

    @Test("A retry with the same idempotency key is the same call, and counts once")
    func retry() {
        var run = TrunkScenario { $0.callsPerHour = 1 }
        let request = ClientRequest.inviteSend(
            InviteSend(to: ["201"], data: ["offer": "o"], ttl: 30, idempotencyKey: "same"))
        #expect(run.exchange.refusal(of: request, from: run.alice) == nil)
        #expect(run.exchange.refusal(of: request, from: run.alice) == nil)
        #expect(run.received(by: run.desk) != nil)
    }

    @Test("A call from a trunk shows the trunk's account, and who calls as a stranger's claim")
    func comesIn() throws {
        var run = TrunkScenario()
        #expect(
            run.refusal(["bob"], from: run.desk, ["trunk": ["caller": "+4940", "name": "Bob's boss", "x": 1]]) == nil)
        var invite = try run.invitation(of: run.bob)
        #expect(invite.inviter == "desk")
        #expect(invite.data == ["offer": "o", "trunk": ["caller": "+4940", "name": "Bob's boss"]])
        #expect(run.refusal(["bob"], from: run.desk) == nil)
        invite = try run.invitation(of: run.bob)
        #expect(invite.data == ["offer": "o", "trunk": [:]])
    }

    @Test(
        "A caller from outside never has a local user's name",
        arguments: ["alice", "alice@localhost", "+15550100", "desk"])
    func forged(caller: String) throws {
        var run = TrunkScenario()
        #expect(run.refusal(["bob"], from: run.desk, ["trunk": ["caller": .string(caller)]]) == nil)
        let invite = try run.invitation(of: run.bob)
        #expect(invite.data == ["offer": "o", "trunk": [:]])
    }

    @Test(
        "A caller from outside does not get a local user's name in any capitals either",
        arguments: ["alice", "ALICE", "Alice@LocalHost", "Bob", "Desk"])
    func forgedName(name: String) throws {
        var run = TrunkScenario()
        #expect(
            run.refusal(["bob"], from: run.desk, ["trunk": ["caller": .string(name), "name": .string(name)]]) == nil)
        let invite = try run.invitation(of: run.bob)
        #expect(invite.data == ["offer": "o", "trunk": [:]])
    }

    @Test("Hostile names of callers are refused", arguments: ["a\u{202E}b", "a\nb", "", "\u{200B}"])
    func hostile(name: String) {
        var run = TrunkScenario()
        #expect(run.refusal(["bob"], from: run.desk, ["trunk": ["name": .string(name)]]) == .invalidParams)
        let long = String(repeating: "x", count: 129)
        #expect(run.refusal(["bob"], from: run.desk, ["trunk": ["caller": .string(long)]]) == .invalidParams)
        #expect(run.received(by: run.bob) == nil)
    }

    @Test("Only a trunk marks a call as one from outside, and no user changes the mark")
    func claims() throws {
        var run = TrunkScenario()
        #expect(run.refusal(["alice"], from: run.bob, ["trunk": ["caller": "112"]]) == .invalidParams)
        #expect(run.refusal(["201"], from: run.alice, ["trunk": ["dialled": "00900"]]) == .invalidParams)
        let out = try run.invite("201", from: run.alice)
        let plain = try run.invite("bob", from: run.alice)
        let incoming = try run.invite("bob", from: run.desk)
        for (invite, connection) in [(out, run.alice), (incoming, run.desk)] {
            #expect(
                run.exchange.refusal(
                    of: .inviteModify(InviteModify(invite: invite, data: ["offer": "p"])), from: connection)
                    == .notAllowed)
        }
        let forged = InviteModify(invite: plain, data: ["offer": "p", "trunk": ["caller": "112"]])
        #expect(run.exchange.refusal(of: .inviteModify(forged), from: run.alice) == .notAllowed)
        let honest = InviteModify(invite: plain, data: ["offer": "p"])
        #expect(run.exchange.refusal(of: .inviteModify(honest), from: run.alice) == nil)
    }

    @Test("A call that came by a trunk does not go out by one")
    func loops() {
        var run = TrunkScenario { $0.callers = ["alice", "desk"] }
        for name in ["201", "+49301", "desk"] {
            #expect(run.refusal([UserID(ours: name)], from: run.desk) == .notAllowed)
        }
        #expect(run.received(by: run.desk) == nil)
    }

    @Test("CALL-8: No user makes another user call a number")
    func transfers() throws {
        var run = TrunkScenario()
        let invite = try run.invite("bob", from: run.alice)
        #expect(run.exchange.refusal(of: .inviteAccept(InviteAccept(invite: invite)), from: run.bob) == nil)
        for target in ["201", "desk"] {
            let wish = CallSignal(invite: invite, type: "transfer", data: ["to": .string(target)])
            #expect(run.exchange.refusal(of: .callSignal(wish), from: run.bob) == .notAllowed)
        }
        let wish = CallSignal(invite: invite, type: "transfer", data: ["to": "carol"])
        #expect(run.exchange.refusal(of: .callSignal(wish), from: run.bob) == nil)
    }

    @Test("Other rules hold from the next call on, and what was begun counts on")
    func adopted() throws {
        var run = TrunkScenario { ($0.callsPerHour, $0.callsAtOnce) = (2, 9) }
        _ = try run.invite("201", from: run.alice)
        var settings = ExchangeCore.Settings()
        var trunk = Trunk(user: "desk", numbers: [NumberPattern("3*")].compactMap { $0 })
        trunk.callers = ["alice", "bob"]
        trunk.callsPerHour = 2
        settings.trunks = [trunk]
        run.exchange.adopt(settings)
        #expect(run.refusal(["201"], from: run.alice) == .unknownUser)
        #expect(run.refusal(["301"], from: run.alice) == nil)
        #expect(run.refusal(["301"], from: run.alice) == .tooManyRequests)
        #expect(run.refusal(["301"], from: run.bob) == nil)
        run.exchange.adopt(ExchangeCore.Settings())
        #expect(run.refusal(["301"], from: run.bob) == .unknownUser)
    }

    /// The trunk of ``TrunkScenario``, with or without its caller.
    private func settings(_ callers: Set<UserID>, _ change: (inout Trunk) -> Void = { _ in }) -> ExchangeCore.Settings {
        var settings = ExchangeCore.Settings()
        var trunk = Trunk(user: "desk", numbers: [NumberPattern("2??")].compactMap { $0 })
        trunk.callers = callers
        change(&trunk)
        settings.trunks = [trunk]
        settings.tokenLifetime = .seconds(86_400)
        return settings
    }

    @Test("The page's recipe bars a number and all that begin with it, and no other")
    func barring() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "docs/trunk.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let recipe = try #require(text.firstMatch(of: #/To bar numbers[^`]*`numbers: \[([^\]]*)\]`/#)).1
        let patterns = recipe.split(separator: ",").compactMap { NumberPattern($0.filter { !" \"".contains($0) }) }
        #expect(patterns.count == 2)
        var run = TrunkScenario { ($0.callsPerHour, $0.callsAtOnce) = (9, 9) }
        var settings = settings(["alice"]) {
            $0.numbers = [NumberPattern("+49*")].compactMap { $0 }
            ($0.callsPerHour, $0.callsAtOnce) = (9, 9)
        }
        settings.trunks.append(Trunk(user: "carol", numbers: patterns))
        run.exchange.adopt(settings)
        for barred in ["+49900", "+499001", "+4990012345"] {
            #expect(run.refusal([UserID(ours: barred)], from: run.alice) == .notAllowed, "\(barred)")
        }
        for open in ["+4990", "+49901", "+491"] {
            #expect(run.refusal([UserID(ours: open)], from: run.alice) == nil, "\(open)")
        }
    }

    @Test("A caller or a trunk that is not listed for a moment has its calls counted on")
    func listedAgain() throws {
        for between in [settings(["bob"]), ExchangeCore.Settings()] {
            var run = TrunkScenario { ($0.callsPerHour, $0.callsAtOnce) = (2, 1) }
            let first = try run.invite("201", from: run.alice)
            run.exchange.adopt(between)
            run.exchange.adopt(settings(["alice"]) { ($0.callsPerHour, $0.callsAtOnce) = (2, 1) })
            #expect(run.refusal(["201"], from: run.alice) == .tooManyRequests)
            #expect(run.exchange.refusal(of: .inviteCancel(InviteCancel(invite: first)), from: run.alice) == nil)
            let second = try run.invite("201", from: run.alice)
            #expect(run.exchange.refusal(of: .inviteCancel(InviteCancel(invite: second)), from: run.alice) == nil)
            run.exchange.adopt(between)
            run.exchange.adopt(settings(["alice"]) { ($0.callsPerHour, $0.callsAtOnce) = (2, 1) })
            #expect(run.refusal(["201"], from: run.alice) == .tooManyRequests)
            run.exchange.advance(by: .seconds(3_600))
            #expect(run.refusal(["201"], from: run.alice) == nil)
        }
    }

    /// Connects the trunk's device again, as a program that has just started or was there all the time.
    private func restart(_ run: inout TrunkScenario, _ start: DeviceRegister.Start) {
        let device = DeviceDescription(id: "d", name: "d")
        let connection = run.exchange.connect()
        let session = SessionStart(token: Redacted("token of desk"), device: device)
        #expect(run.exchange.refusal(of: .sessionStart(session), from: connection) == nil)
        let register = DeviceRegister(device: device, start: start)
        #expect(run.exchange.refusal(of: .deviceRegister(register), from: connection) == nil)
    }

    @Test("A trunk that was started again has no calls; one that only lost its connection keeps them")
    func trunkRestarts() throws {
        var run = TrunkScenario { $0.callsAtOnce = 1 }
        let invite = try run.invite("201", from: run.alice)
        #expect(run.exchange.refusal(of: .inviteAccept(InviteAccept(invite: invite)), from: run.desk) == nil)
        restart(&run, .warm)
        #expect(run.refusal(["202"], from: run.alice) == .tooManyRequests)
        restart(&run, .cold)
        #expect(run.refusal(["202"], from: run.alice) == nil)
        let ended = run.exchange.events(of: run.alice).contains {
            if case .callEnded(let end) = $0 { end.invite == invite } else { false }
        }
        #expect(ended)
    }
}
