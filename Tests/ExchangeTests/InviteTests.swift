@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import Testing
import Core

private func accept(_ invite: InviteID, _ data: JSONValue? = nil) -> ClientRequest {
    .inviteAccept(InviteAccept(invite: invite, data: data))
}

private func reject(_ invite: InviteID, _ data: JSONValue? = nil) -> ClientRequest {
    .inviteReject(InviteReject(invite: invite, data: data))
}

@Suite struct InviteTests {
    @Test("INV-1: Each invite has an id of its own, and a retry with the same idempotency key gives the same invite")
    func idempotency() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let carol = scenario.device("c", of: "carol")
        let bob = scenario.device("b", of: "bob")
        let first = scenario.invite("bob", from: alice, key: "k")
        #expect(scenario.invite("bob", from: alice, key: "k") == first)
        let second = scenario.invite("bob", from: alice, key: "l")
        let carols = scenario.invite("bob", from: carol, key: "k")
        #expect(Set([first, second, carols]).count == 3)
        #expect(scenario.events(of: bob).count == 3)

        scenario.advance(by: .seconds(400))  // Over, but remembered for a while, then forgotten.
        #expect(scenario.invite("bob", from: alice, key: "k") != first)
    }

    @Test("INV-2, DEV-3: All registered devices of the invitee hear the invite with everything that belongs to it")
    func received() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob")]
        let data: JSONValue = ["offer": ["type": "offer", "sdp": "v=0"]]
        let invite = scenario.invite("+15550100", from: alice, data: data, ttl: 12)
        for bob in bobs {
            let expected = InviteReceived(
                invite: invite, inviter: "alice", invitees: ["bob"], data: data, ttlRemaining: 12)
            #expect(scenario.events(of: bob) == [.inviteReceived(expected)])
        }
        #expect(scenario.events(of: alice).isEmpty)
    }

    @Test("DEV-1: Only registered devices receive invites and may answer them")
    func registration() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let quiet = scenario.device("b1", of: "bob", registers: false)
        let invite = scenario.invite("bob", from: alice)
        #expect(scenario.events(of: quiet).isEmpty)
        #expect(scenario.refusal(of: accept(invite), from: quiet) == .notRegistered)

        let device = DeviceDescription(id: "b1", name: "b1")
        #expect(scenario.refusal(of: .deviceRegister(DeviceRegister(device: device)), from: quiet) == nil)
        #expect(scenario.events(of: quiet).count == 1, "the one that waits")
        _ = scenario.invite("bob", from: alice, key: "second")
        #expect(scenario.events(of: quiet).count == 1)
        #expect(scenario.refusal(of: .deviceUnregister(DeviceUnregister()), from: quiet) == nil)
        _ = scenario.invite("bob", from: alice, key: "third")
        #expect(scenario.events(of: quiet).isEmpty)
    }

    @Test("INV-3: The inviter hears who accepted or rejected, with which data, and that the invite ended")
    func answers() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let accepted = scenario.invite("bob", from: alice, key: "1")
        _ = scenario.request(accept(accepted, ["answer": "x"]), from: bob)
        #expect(
            scenario.events(of: alice) == [
                .inviteAccepted(InviteAnswered(invite: accepted, invitee: "bob", device: "b", data: ["answer": "x"])),
                .inviteEnded(InviteEnded(invite: accepted)),
            ])
        let rejected = scenario.invite("bob", from: alice, key: "2")
        _ = scenario.request(reject(rejected, ["reason": "declined"]), from: bob)
        #expect(
            scenario.events(of: alice) == [
                .inviteRejected(
                    InviteAnswered(invite: rejected, invitee: "bob", device: "b", data: ["reason": "declined"])),
                .inviteEnded(InviteEnded(invite: rejected)),
            ])
    }

    @Test("INV-4: The invitee's other devices hear which device answered and what, and the one that did does not")
    func handled() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bobs = ["b1", "b2", "b3"].map { scenario.device($0, of: "bob") }
        for (key, action) in [("1", InviteHandled.Action.accepted), ("2", .rejected)] {
            let invite = scenario.invite("bob", from: alice, key: "\(key)")
            for bob in bobs { _ = scenario.events(of: bob) }
            _ = scenario.request(action == .accepted ? accept(invite) : reject(invite), from: bobs[1])
            let event = ExchangeEvent.inviteHandled(InviteHandled(invite: invite, device: "b2", action: action))
            #expect(scenario.events(of: bobs[0]) == [event])
            #expect(scenario.events(of: bobs[1]).isEmpty)
            #expect(scenario.events(of: bobs[2]) == [event])
        }
    }

    @Test("INV-5: Two devices accept at the same instant, and exactly one wins")
    func race() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let first = scenario.device("b1", of: "bob")
        let second = scenario.device("b2", of: "bob")
        let invite = scenario.invite("bob", from: alice)
        #expect(scenario.refusal(of: accept(invite), from: first) == nil)
        #expect(scenario.refusal(of: accept(invite), from: second) == .alreadyHandled)
        #expect(scenario.refusal(of: accept(invite), from: first) == nil, "a retry of the winner is no second answer")
        #expect(scenario.events(of: alice).count == 2)
        #expect(scenario.core.invites.calls.count == 1)
        let signal = CallSignal(invite: invite, type: "t")
        #expect(scenario.refusal(of: .callSignal(signal), from: second) == .notYours)
    }

    @Test(
        "INV-6: On cancel pending invitees hear it and get the timeout payload; cancelling an ended invite is an error")
    func cancel() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: alice, timeoutPayload: ["missed": "call"])
        _ = scenario.events(of: bob)
        let cancel = ClientRequest.inviteCancel(InviteCancel(invite: invite, data: ["why": "changed my mind"]))
        #expect(scenario.refusal(of: cancel, from: bob) == .notYours)
        #expect(scenario.refusal(of: cancel, from: alice) == nil)
        #expect(
            scenario.events(of: bob) == [
                .inviteCancelled(InviteCancelled(invite: invite, data: ["why": "changed my mind"])),
                .inviteMissed(InviteMissed(invite: invite, payload: ["missed": "call"])),
            ])
        #expect(scenario.events(of: alice) == [.inviteEnded(InviteEnded(invite: invite))])
        #expect(scenario.refusal(of: cancel, from: alice) == .inviteEnded)

        let accepted = scenario.invite("bob", from: alice, key: "second")
        _ = scenario.request(accept(accepted), from: bob)
        let late = ClientRequest.inviteCancel(InviteCancel(invite: accepted))
        #expect(scenario.refusal(of: late, from: alice) == .inviteEnded)
        let nothing = ClientRequest.inviteCancel(InviteCancel(invite: "invite-9"))
        #expect(scenario.refusal(of: nothing, from: alice) == .unknownInvite)
    }

    @Test("INV-7: At the ttl both sides hear it, not a moment earlier, and pending invitees get the timeout payload")
    func timeOut() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: alice, ttl: 20, timeoutPayload: "missed")
        _ = scenario.events(of: bob)
        scenario.advance(by: .milliseconds(19_999))
        #expect(scenario.events(of: bob).isEmpty)
        scenario.advance(by: .milliseconds(1))
        let event = ExchangeEvent.inviteTimedOut(InviteTimedOut(invite: invite, invitees: ["bob"]))
        #expect(
            scenario.events(of: bob) == [event, .inviteMissed(InviteMissed(invite: invite, payload: "missed"))])
        #expect(scenario.events(of: alice) == [event, .inviteEnded(InviteEnded(invite: invite))])
    }

    @Test("INV-7: The ttl fires though the inviter is gone")
    func timeOutWithoutInviter() {
        for isClean in [true, false] {
            var scenario = ExchangeScenario()
            let alice = scenario.device("a", of: "alice")
            let bob = scenario.device("b", of: "bob")
            let invite = scenario.invite("bob", from: alice, ttl: 20)
            if isClean { _ = scenario.request(.sessionEnd(SessionEnd()), from: alice) }
            scenario.feed(.disconnected(alice))
            _ = scenario.events(of: bob)
            scenario.advance(by: .seconds(20))
            #expect(
                scenario.events(of: bob) == [
                    .inviteTimedOut(InviteTimedOut(invite: invite, invitees: ["bob"]))
                ])
        }
    }

    @Test("INV-9: An invite with a ttl of 0 rings until it is answered")
    func noTimeOut() {
        var settings = ExchangeCore.Settings()
        settings.tokenLifetime = .seconds(2_000_000)
        var scenario = ExchangeScenario(settings: settings)
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: alice, ttl: 0)
        guard case .inviteReceived(let received)? = scenario.events(of: bob).first else {
            Issue.record("no invite")
            return
        }
        #expect(received.ttlRemaining == 0)
        scenario.advance(by: .seconds(1_000_000))
        #expect(scenario.events(of: bob).isEmpty)
        #expect(scenario.refusal(of: accept(invite), from: bob) == nil)
    }

    @Test("INV-10: An answer after time-out, cancel or another device's answer is an error and starts no call")
    func lateAnswers() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let first = scenario.device("b1", of: "bob")
        let second = scenario.device("b2", of: "bob")
        let timedOut = scenario.invite("bob", from: alice, ttl: 5, key: "1")
        scenario.advance(by: .seconds(5))
        let cancelled = scenario.invite("bob", from: alice, key: "2")
        _ = scenario.request(.inviteCancel(InviteCancel(invite: cancelled)), from: alice)
        let handled = scenario.invite("bob", from: alice, key: "3")
        _ = scenario.request(reject(handled), from: first)
        for (invite, code) in [
            (timedOut, RPCErrorCode.inviteTimedOut), (cancelled, .inviteCancelled), (handled, .alreadyHandled),
            ("invite-0", .unknownInvite),
        ] {
            #expect(scenario.refusal(of: accept(invite), from: second) == code)
            #expect(scenario.refusal(of: reject(invite), from: second) == code)
        }
        #expect(scenario.core.invites.calls.count == 0)
    }

    @Test("INV-11: A busy device's reject reaches the inviter with data that distinguishes it from a declined one")
    func busy() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        for reason in ["busy", "declined"] {
            let invite = scenario.invite("bob", from: alice, key: "\(reason)")
            _ = scenario.request(reject(invite, ["reason": .string(reason)]), from: bob)
            guard case .inviteRejected(let answer)? = scenario.events(of: alice).first else {
                Issue.record("no answer")
                return
            }
            #expect(answer.data?["reason"]?.string == reason)
        }
    }

    @Test("INV-12: A user sends and receives many invites at once, and each is answered for itself")
    func many() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let carol = scenario.device("c", of: "carol")
        let invites = (0..<16).map {
            scenario.invite($0.isMultiple(of: 2) ? "bob" : "carol", from: alice, key: "\($0)")
        }
        let back = (0..<8).map { scenario.invite("alice", from: bob, key: "\($0)") }
        for (index, invite) in invites.enumerated() where index.isMultiple(of: 3) {
            #expect(scenario.refusal(of: accept(invite), from: index.isMultiple(of: 2) ? bob : carol) == nil)
        }
        for invite in back { #expect(scenario.refusal(of: reject(invite), from: alice) == nil) }
        #expect(scenario.core.invites.calls.count == 6)
        scenario.advance(by: .seconds(30))
        let timedOut = scenario.events(of: alice).filter { if case .inviteTimedOut = $0 { true } else { false } }
        #expect(timedOut.count == 10)
    }

    @Test(
        "An invite without users, with offline ones only, with a wrong ttl, or with one user too many, is refused with the reason"
    )
    func refusals() {
        var settings = ExchangeCore.Settings()
        settings.invites.open = 2
        var scenario = ExchangeScenario(settings: settings)
        let alice = scenario.device("a", of: "alice")
        func send(_ to: UserID, ttl: Double = 5, online: Bool? = nil, key: IdempotencyKey = "x") -> ClientRequest {
            .inviteSend(InviteSend(to: to, ttl: ttl, onlineOnly: online, idempotencyKey: key))
        }
        #expect(scenario.refusal(of: send("nobody"), from: alice) == .unknownUser)
        #expect(scenario.refusal(of: send("bob", online: true), from: alice) == .noDeviceOnline)
        #expect(scenario.refusal(of: send("bob", ttl: -1), from: alice) == .invalidParams)
        #expect(scenario.refusal(of: send("bob", ttl: .infinity), from: alice) == .invalidParams)
        #expect(scenario.refusal(of: send("bob", ttl: .nan), from: alice) == .invalidParams)
        #expect(scenario.refusal(of: send("bob", key: "1"), from: alice) == nil)
        #expect(scenario.refusal(of: send("bob", key: "2"), from: alice) == nil)
        #expect(scenario.refusal(of: send("bob", key: "3"), from: alice) == .tooManyRequests)
        scenario.advance(by: .seconds(5))
        #expect(scenario.refusal(of: send("bob", key: "3"), from: alice) == nil)
    }

    @Test("INV-2: The device that sent an invite to its own user does not answer it, and is in no call with itself")
    func ownInvite() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a1", of: "alice")
        let tablet = scenario.device("a2", of: "alice")
        let invite = scenario.invite("alice", from: alice)
        #expect(scenario.refusal(of: accept(invite), from: alice) == .notYours)
        #expect(scenario.refusal(of: reject(invite), from: alice) == .notYours)
        #expect(scenario.core.invites.calls.count == 0)
        #expect(scenario.events(of: alice).isEmpty)
        #expect(scenario.refusal(of: accept(invite), from: tablet) == nil)
        #expect(scenario.core.invites.calls.count == 1)
    }
}
