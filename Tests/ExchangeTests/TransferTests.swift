@testable import ExchangeCore
import JSON
import SignalWire
import Testing
import Core

/// Alice and Bob are in a call, and Bob wants Alice to call Carol in his place.
private struct TransferScenario {
    var exchange = ExchangeScenario()
    let alice: ConnectionID
    let bob: ConnectionID
    let carol: ConnectionID
    let invite: InviteID

    init() {
        alice = exchange.device("a", of: "alice")
        bob = exchange.device("b", of: "bob")
        carol = exchange.device("c", of: "carol")
        invite = exchange.invite("bob", from: alice)
        _ = exchange.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
        for connection in [alice, bob] { _ = exchange.events(of: connection) }
    }

    mutating func ask(_ data: JSONValue?, in call: InviteID? = nil, from connection: ConnectionID? = nil)
        -> RPCErrorCode?
    {
        exchange.refusal(
            of: .callSignal(CallSignal(invite: call ?? invite, type: "transfer", data: data)), from: connection ?? bob)
    }

    static func invite(
        _ to: UserID, insteadOf old: InviteID, key: IdempotencyKey = "transfer", _ more: [String: JSONValue] = [:]
    ) -> ClientRequest {
        var origin = more
        origin["invite"] = .string(old.text)
        return .inviteSend(
            InviteSend(to: [to], data: ["offer": "o", "transfer": .object(origin)], ttl: 30, idempotencyKey: key))
    }
}

@Suite struct TransferTests {
    @Test(
        "CALL-8: The new invite names the requester and its number in the row, regardless of what its inviter claims")
    func vouches() {
        var run = TransferScenario()
        #expect(run.ask(["to": "carol"]) == nil)
        guard case .callSignal(let asked)? = run.exchange.events(of: run.alice).last else {
            return #expect(Bool(false), "Alice is not asked")
        }
        #expect(asked.type == "transfer" && asked.from == "bob" && asked.data == ["to": "carol"])
        let request = TransferScenario.invite("carol", insteadOf: run.invite, ["by": "mallory", "count": 0, "x": 1])
        #expect(run.exchange.refusal(of: request, from: run.alice) == nil)
        guard case .inviteReceived(let received)? = run.exchange.events(of: run.carol).last else {
            return #expect(Bool(false), "Carol is not invited")
        }
        #expect(received.inviter == "alice")
        #expect(
            received.data?["transfer"]
                == ["invite": .string(run.invite.text), "by": "bob", "count": 1])
        #expect(received.data?["offer"] == "o")
    }

    @Test("CALL-8: Only what the other party of the call has asked for is a transfer")
    func strangers() {
        var run = TransferScenario()
        // Nobody has asked.
        #expect(
            run.exchange.refusal(of: TransferScenario.invite("carol", insteadOf: run.invite), from: run.alice)
                == .notYours)
        // Who is in no call asks nobody, and follows nobody's wish.
        #expect(run.ask(["to": "dave"], from: run.carol) == .notYours)
        #expect(run.ask(["to": "carol"]) == nil)
        #expect(
            run.exchange.refusal(of: TransferScenario.invite("alice", insteadOf: run.invite), from: run.carol)
                == .notYours)
        // Alice is to call Carol and nobody else, and Bob has not been asked for anything.
        #expect(
            run.exchange.refusal(of: TransferScenario.invite("bob", insteadOf: run.invite), from: run.alice)
                == .notYours)
        #expect(
            run.exchange.refusal(of: TransferScenario.invite("carol", insteadOf: run.invite), from: run.bob)
                == .notYours)
        #expect(
            run.exchange.refusal(of: TransferScenario.invite("carol", insteadOf: "none"), from: run.alice)
                == .unknownCall)
        for data: JSONValue in [[:], ["to": 1], ["to": "carol", "replaces": 1]] {
            #expect(run.ask(data) == .invalidParams)
        }
        // A call that is over has no wishes.
        let end = ClientRequest.callEnd(CallEnd(invite: run.invite, reason: "completed", durationMilliseconds: 1))
        #expect(run.exchange.refusal(of: end, from: run.bob) == nil)
        #expect(
            run.exchange.refusal(of: TransferScenario.invite("carol", insteadOf: run.invite), from: run.alice)
                == .unknownCall)
    }

    @Test("CALL-8: What was asked for is good for one invite, which may be sent again, and for no other")
    func once() {
        var run = TransferScenario()
        #expect(run.ask(["to": "carol"]) == nil)
        let first = TransferScenario.invite("carol", insteadOf: run.invite)
        #expect(run.exchange.refusal(of: first, from: run.alice) == nil)
        #expect(run.exchange.refusal(of: first, from: run.alice) == nil)
        let second = TransferScenario.invite("carol", insteadOf: run.invite, key: "again")
        #expect(run.exchange.refusal(of: second, from: run.alice) == .notYours)
        #expect(run.ask(["to": "carol"]) == nil)
        #expect(run.exchange.refusal(of: second, from: run.alice) == nil)
    }

    @Test("CALL-8: A call of the target's is replaced only if it is one with the requester")
    func replaces() {
        var run = TransferScenario()
        let consulted = run.exchange.invite("carol", from: run.bob, key: "consult")
        #expect(run.ask(["to": "carol", "replaces": .string(consulted.text)]) == nil)
        let request = TransferScenario.invite("carol", insteadOf: run.invite)
        #expect(run.exchange.refusal(of: request, from: run.alice) == .unknownCall)
        _ = run.exchange.request(.inviteAccept(InviteAccept(invite: consulted)), from: run.carol)
        #expect(run.exchange.refusal(of: request, from: run.alice) == nil)
        guard case .inviteReceived(let received)? = run.exchange.events(of: run.carol).last else {
            return #expect(Bool(false), "Carol is not invited")
        }
        #expect(received.data?["transfer"]?["replaces"] == .string(consulted.text))
        // Alice's own call with Bob is none that Carol could lose.
        #expect(run.ask(["to": "carol", "replaces": .string(run.invite.text)]) == nil)
        let other = TransferScenario.invite("carol", insteadOf: run.invite, key: "other")
        #expect(run.exchange.refusal(of: other, from: run.alice) == .unknownCall)
    }

    @Test("CALL-8: A chain of transfers ends after five")
    func chain() {
        var run = TransferScenario()
        var old = run.invite
        // Bob and Carol send Alice to each other.
        for count in 1...6 {
            let (asks, target): (ConnectionID, UserID) =
                count.isMultiple(of: 2) ? (run.carol, "bob") : (run.bob, "carol")
            #expect(run.ask(["to": .string(target.text)], in: old, from: asks) == nil)
            let request = TransferScenario.invite(
                target, insteadOf: old, key: IdempotencyKey(ours: "key \(count)"))
            guard case .success(.invite(let result)) = run.exchange.request(request, from: run.alice) else {
                #expect(count == 6)
                #expect(run.exchange.refusal(of: request, from: run.alice) == .notAllowed)
                return
            }
            let takes = count.isMultiple(of: 2) ? run.bob : run.carol
            _ = run.exchange.request(.inviteAccept(InviteAccept(invite: result.invite)), from: takes)
            let end = CallEnd(invite: old, reason: "completed", durationMilliseconds: 1)
            #expect(run.exchange.refusal(of: .callEnd(end), from: asks) == nil)
            old = result.invite
        }
        #expect(Bool(false), "the sixth is taken")
    }

    @Test("CALL-8: An invite that was sent does not become a transfer")
    func modified() {
        var run = TransferScenario()
        let invite = run.exchange.invite("carol", from: run.alice, data: ["offer": "o"], key: "plain")
        let change = InviteModify(invite: invite, data: ["transfer": ["replaces": "x"]])
        #expect(run.exchange.refusal(of: .inviteModify(change), from: run.alice) == .invalidParams)
    }
}
