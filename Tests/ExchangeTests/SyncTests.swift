@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import Testing
import Core

private func register(_ id: DeviceID, push: [DeviceRegister.PushTarget]? = nil) -> ClientRequest {
    .deviceRegister(DeviceRegister(device: DeviceDescription(id: id, name: id.text), push: push))
}

@Suite struct SyncTests {
    @Test(
        "INV-14: A device that comes online gets each invite to its user that has not ended, with the ttl that remains")
    func pendingInvites() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let first = scenario.invite("bob", from: alice, ttl: 60, key: "1")
        let over = scenario.invite("bob", from: alice, ttl: 10, key: "2")
        let cancelled = scenario.invite("bob", from: alice, ttl: 60, key: "3")
        let endless = scenario.invite("bob", from: alice, ttl: 0, key: "4")
        _ = scenario.request(.inviteCancel(InviteCancel(invite: cancelled)), from: alice)
        scenario.advance(by: .seconds(25))
        let bob = scenario.device("b", of: "bob", registers: false)
        #expect(scenario.events(of: bob).isEmpty)
        _ = scenario.request(register("b"), from: bob)
        guard case .response? = scenario.inboxes[bob]?.first else { return #expect(Bool(false), "no answer first") }
        let told = scenario.events(of: bob).compactMap {
            if case .inviteReceived(let received) = $0 { received } else { nil }
        }
        #expect(told.map(\.invite) == [first, endless] && told.map(\.ttlRemaining) == [35, 0])
        #expect(scenario.refusal(of: .inviteAccept(InviteAccept(invite: over)), from: bob) == .inviteTimedOut)
        #expect(scenario.refusal(of: .inviteAccept(InviteAccept(invite: first)), from: bob) == nil)
        let late = scenario.device("b2", of: "bob", registers: false)
        _ = scenario.request(register("b2"), from: late)
        #expect(scenario.events(of: late).count == 1, "what the user has answered is not told again")
    }

    @Test("INV-14: What a device misses because it drops while it registers, it gets as it resumes")
    func lostSync() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.invite("bob", from: alice)
        let bob = scenario.device("b", of: "bob", registers: false)
        let resume = scenario.resumePoint(of: bob)
        _ = scenario.request(register("b"), from: bob)
        scenario.feed(.disconnected(bob))
        let back = scenario.connect()
        let start = SessionStart(
            token: Redacted("token of bob"), device: DeviceDescription(id: "b", name: "b"), resume: resume)
        _ = scenario.request(.sessionStart(start), from: back)
        #expect(scenario.events(of: back).count == 1)
    }

    @Test("INV-14: The first report is bounded, oldest first, and invite.list returns the rest, page by page")
    func bounds() {
        let users = ExchangeScenario.users + (1..<5).map { Account(id: "caller-\($0)") }
        var scenario = ExchangeScenario(users: users)
        let alice = scenario.device("a", of: "alice")
        let callers = [alice] + (1..<5).map { scenario.device("c", of: "caller-\($0)") }
        let data = JSONValue.string(String(repeating: "x", count: 30_000))
        let invites = (0..<40).map {
            scenario.invite("bob", from: callers[$0 % 5], data: data, ttl: 300, key: "\($0)")
        }
        let bob = scenario.device("b", of: "bob", registers: false)
        _ = scenario.request(register("b"), from: bob)
        let told = scenario.events(of: bob).compactMap {
            if case .inviteReceived(let received) = $0 { received.invite } else { nil }
        }
        #expect(told == Array(invites.prefix(17)), "half a mebibyte")
        for (device, expected) in [(bob, invites), (alice, (0..<8).map { invites[5 * $0] })] {
            var listed: [InviteList.Entry] = []
            var after: UInt64?
            var pages = 0
            repeat {
                let list = ClientRequest.inviteList(InviteList(after: after))
                guard case .success(.invites(let text)) = scenario.request(list, from: device), let page = text.list
                else { break }
                listed += page.invites
                after = page.next
                pages += 1
            } while after != nil && pages < 100
            #expect(listed.map(\.invite) == expected && pages == expected.count / 2)
            #expect(listed.allSatisfy { $0.pending == ["bob"] && $0.data == data })
        }
    }

    @Test("DEV-2: Unregistering stops pushes at once; a clean goodbye and a lost connection do not")
    func pushTokens() {
        var scenario = ExchangeScenario()
        let target = DeviceRegister.PushTarget(kind: "apns", token: Redacted("t"))
        var bob = scenario.device("b", of: "bob", registers: false)
        func entries() -> [PushBoard.Entry] { scenario.core.pushes.entries(of: "bob") }
        _ = scenario.request(register("b", push: [target]), from: bob)
        let kept = [PushBoard.Entry(device: "b", targets: [target])]
        #expect(entries() == kept)
        _ = scenario.request(register("b"), from: bob)
        #expect(entries() == kept, "without push it stays as it was")
        _ = scenario.request(.sessionEnd(SessionEnd()), from: bob)
        scenario.feed(.disconnected(bob))
        scenario.advance(by: .seconds(600))
        #expect(entries() == kept)
        bob = scenario.device("b", of: "bob")
        #expect(entries() == kept)
        _ = scenario.request(.deviceUnregister(DeviceUnregister()), from: bob)
        #expect(entries().isEmpty)
        _ = scenario.request(register("b", push: [target]), from: bob)
        _ = scenario.request(register("b", push: []), from: bob)
        #expect(entries().isEmpty)
        let many = Array(repeating: target, count: 9)
        #expect(scenario.refusal(of: register("b", push: many), from: bob) == .tooLarge)
        let long = [DeviceRegister.PushTarget(kind: "k", token: Redacted(String(repeating: "t", count: 4_097)))]
        #expect(scenario.refusal(of: register("b", push: long), from: bob) == .tooLarge)
    }

    @Test("DEV-2: A user's devices with push tokens are bounded, and the one that registered longest ago goes")
    func pushBound() {
        var board = PushBoard()
        let target = DeviceRegister.PushTarget(kind: "fcm", token: Redacted("t"))
        for number in 0..<66 { board.set([target], for: Endpoint(user: "u", device: "\(number)")) }
        #expect(board.entries(of: "u").map(\.device) == (2..<66).map { "\($0)" })
        board.set([target], for: Endpoint(user: "u", device: "2"))
        #expect(board.entries(of: "u").last?.device == "2" && board.entries(of: "u").count == 64)
    }
}
