@testable import ExchangeCore
import JSON
import SignalWire
import Testing
import Core

/// Alice has called Bob, and Bob has accepted.
private struct CallScenario {
    var exchange = ExchangeScenario()
    let alice: ConnectionID
    let bob: ConnectionID
    let invite: InviteID

    init() {
        alice = exchange.device("a", of: "alice")
        bob = exchange.device("b", of: "bob")
        invite = exchange.invite("bob", from: alice)
        _ = exchange.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
        _ = exchange.events(of: alice)
        _ = exchange.events(of: bob)
    }

    var hangUp: ClientRequest {
        .callEnd(CallEnd(invite: invite, reason: "completed", durationMilliseconds: 4_321))
    }
}

@Suite struct CallTests {
    @Test("CALL-3: Either side hangs up, and the other hears it with the reason and the duration")
    func hangUp() {
        for callerHangsUp in [true, false] {
            var call = CallScenario()
            let (by, other) = callerHangsUp ? (call.alice, call.bob) : (call.bob, call.alice)
            #expect(call.exchange.refusal(of: call.hangUp, from: by) == nil)
            let from: UserID = callerHangsUp ? "alice" : "bob"
            #expect(
                call.exchange.events(of: other) == [
                    .callEnded(
                        CallEnded(invite: call.invite, reason: "completed", durationMilliseconds: 4_321, from: from))
                ])
            #expect(call.exchange.events(of: by).isEmpty)
            #expect(call.exchange.refusal(of: call.hangUp, from: other) == .unknownCall)
            #expect(call.exchange.core.invites.calls.count == 0)
        }
    }

    @Test("CALL-5: A call ends for one of twelve reasons, and a hang-up for any other is refused and ends nothing")
    func reasons() {
        #expect(CallEnd.reasons.count == 12)
        for reason in CallEnd.reasons {
            var call = CallScenario()
            let end = CallEnd(invite: call.invite, reason: reason, durationMilliseconds: 1)
            #expect(call.exchange.refusal(of: .callEnd(end), from: call.bob) == nil)
        }
        var call = CallScenario()
        for reason in ["bored", "", "Completed"] {
            let end = CallEnd(invite: call.invite, reason: reason, durationMilliseconds: 1)
            #expect(call.exchange.refusal(of: .callEnd(end), from: call.bob) == .invalidParams)
        }
        #expect(call.exchange.events(of: call.alice).isEmpty)
        #expect(call.exchange.refusal(of: call.hangUp, from: call.bob) == nil)
    }

    @Test("CALL-5: The cause beside the reason reaches the peer; a sentence in its place is refused and ends nothing")
    func cause() {
        var call = CallScenario()
        func end(_ cause: String) -> ClientRequest {
            .callEnd(CallEnd(invite: call.invite, reason: "dialFailed", cause: cause, durationMilliseconds: 0))
        }
        for text in ["", "no codec", "/root", "10.0.0.1", String(repeating: "x", count: 65)] {
            #expect(call.exchange.refusal(of: end(text), from: call.alice) == .invalidParams)
        }
        #expect(call.exchange.refusal(of: end("noCommonCodec"), from: call.alice) == nil)
        let ended = CallEnded(
            invite: call.invite, reason: "dialFailed", cause: "noCommonCodec", durationMilliseconds: 0, from: "alice")
        #expect(call.exchange.events(of: call.bob) == [.callEnded(ended)])
    }

    @Test("CONN-9: A clean goodbye ends the device's calls, and the peer hears disconnected")
    func goodbye() {
        var call = CallScenario()
        call.exchange.advance(by: .seconds(3))
        _ = call.exchange.request(.sessionEnd(SessionEnd()), from: call.bob)
        #expect(
            call.exchange.events(of: call.alice) == [
                .callEnded(
                    CallEnded(invite: call.invite, reason: "disconnected", durationMilliseconds: 3_000, from: "bob"))
            ])
    }

    @Test("CALL-6: A connection that drops leaves its call alone, and the device that comes back continues with it")
    func drop() {
        var call = CallScenario()
        call.exchange.feed(.disconnected(call.bob))
        call.exchange.advance(by: .seconds(30))
        #expect(call.exchange.core.invites.calls.count == 1)
        let back = call.exchange.device("b", of: "bob")
        _ = call.exchange.events(of: call.alice)
        let signal = CallSignal(invite: call.invite, type: "renegotiate", data: ["x": 1])
        #expect(call.exchange.refusal(of: .callSignal(signal), from: call.alice) == nil)
        #expect(call.exchange.events(of: back).count == 1)
        #expect(call.exchange.refusal(of: call.hangUp, from: back) == nil)
        #expect(call.exchange.events(of: call.alice).count == 1)
    }

    @Test(
        "CALL-4: A probe says whether the peer is connected, or can still come back, and is for the two of a call alone"
    )
    func probe() {
        var call = CallScenario()
        let carol = call.exchange.device("c", of: "carol")
        let probe = ClientRequest.callProbe(CallProbe(invite: call.invite))
        func present(_ connection: ConnectionID) -> Bool? {
            guard case .success(.probe(let result)) = call.exchange.request(probe, from: connection) else { return nil }
            return result.present
        }
        #expect(present(call.alice) == true)
        #expect(present(call.bob) == true)
        #expect(call.exchange.refusal(of: probe, from: carol) == .notYours)
        #expect(call.exchange.events(of: call.bob).isEmpty, "the peer learns nothing of it")
        call.exchange.feed(.disconnected(call.bob))
        #expect(present(call.alice) == true)
        call.exchange.advance(by: .milliseconds(59_999))
        #expect(present(call.alice) == true)
        call.exchange.advance(by: .milliseconds(1))
        #expect(present(call.alice) == false)
        let other = call.exchange.device("b2", of: "bob")
        #expect(present(call.alice) == false, "another device of the user is not the peer")
        _ = other
        let back = call.exchange.device("b", of: "bob")
        #expect(present(call.alice) == true)
        #expect(call.exchange.refusal(of: call.hangUp, from: back) == nil)
        #expect(call.exchange.refusal(of: probe, from: call.alice) == .unknownCall)
    }

    @Test("A call whose two devices are both gone for good is not kept")
    func orphan() {
        var call = CallScenario()
        call.exchange.feed(.disconnected(call.bob))
        call.exchange.advance(by: .seconds(70))
        #expect(call.exchange.core.invites.calls.count == 1)
        call.exchange.feed(.disconnected(call.alice))
        call.exchange.advance(by: .seconds(70))
        #expect(call.exchange.core.invites.calls.count == 0)
    }

    @Test("A call waits for the device that went last for the whole resume window, and that device can hang up")
    func orphanWaits() {
        var call = CallScenario()
        call.exchange.feed(.disconnected(call.bob))
        call.exchange.advance(by: .seconds(50))
        call.exchange.feed(.disconnected(call.alice))
        call.exchange.advance(by: .milliseconds(59_999))
        #expect(call.exchange.core.invites.calls.count == 1)
        var later = call
        later.exchange.advance(by: .milliseconds(1))
        #expect(later.exchange.core.invites.calls.count == 0)
        let back = call.exchange.device("a", of: "alice")
        #expect(call.exchange.refusal(of: call.hangUp, from: back) == nil)
        #expect(call.exchange.core.invites.calls.count == 0)
    }

    @Test("CALL-1: Signals reach the peer's device of that call only, in both directions, in order and unchanged")
    func signals() {
        var call = CallScenario()
        let otherBob = call.exchange.device("b2", of: "bob")
        for (by, to, from) in [
            (call.alice, call.bob, "alice"), (call.bob, call.alice, "bob"),
        ] as [(ConnectionID, ConnectionID, UserID)] {
            for number in 0..<3 {
                let signal = CallSignal(invite: call.invite, type: "candidate", data: ["n": .integer(Int64(number))])
                #expect(call.exchange.refusal(of: .callSignal(signal), from: by) == nil)
            }
            let expected = (0..<3).map { number in
                ExchangeEvent.callSignal(
                    CallSignalled(
                        invite: call.invite, type: "candidate", data: ["n": .integer(Int64(number))], from: from))
            }
            #expect(call.exchange.events(of: to) == expected)
        }
        #expect(call.exchange.events(of: otherBob).isEmpty)
    }

    @Test("CALL-1: Candidates trickle while the invite still rings, and strangers have no part in it")
    func earlySignals() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob")]
        let carol = scenario.device("c", of: "carol")
        let invite = scenario.invite("bob", from: alice)
        for bob in bobs { _ = scenario.events(of: bob) }
        let signal = ClientRequest.callSignal(CallSignal(invite: invite, type: "candidate"))
        #expect(scenario.refusal(of: signal, from: alice) == nil)
        for bob in bobs { #expect(scenario.events(of: bob).count == 1) }
        #expect(scenario.refusal(of: signal, from: bobs[1]) == nil)
        #expect(scenario.events(of: alice).count == 1)
        #expect(scenario.refusal(of: signal, from: carol) == .notYours)
        let hangUp = CallEnd(invite: invite, reason: "completed", durationMilliseconds: 0)
        #expect(scenario.refusal(of: .callEnd(hangUp), from: alice) == .unknownCall)
        scenario.advance(by: .seconds(30))
        #expect(scenario.refusal(of: signal, from: alice) == .unknownCall)
    }

    @Test("A signal larger than the limits is refused with the limit")
    func largeSignal() {
        var call = CallScenario()
        func limit(_ signal: CallSignal) -> Int? {
            guard case .failure(let error) = call.exchange.request(.callSignal(signal), from: call.alice) else {
                return nil
            }
            return error.data?.limit
        }
        let fits = JSONValue.string(String(repeating: "x", count: 8_190))
        let tooLarge = JSONValue.string(String(repeating: "x", count: 8_191))
        #expect(limit(CallSignal(invite: call.invite, type: "t", data: fits)) == nil)
        #expect(limit(CallSignal(invite: call.invite, type: "t", data: tooLarge)) == 8_192)
        #expect(limit(CallSignal(invite: call.invite, type: String(repeating: "t", count: 129))) == 128)
    }
}
