import CallBridging
import CallControl
import CallFlow
import CallParticipation
import Core
import Testing

@Suite("Calls that are placed to be joined to a caller")
struct CallDialsTests {
    private let caller = CallID(number: 1)
    private let bob = CallID(number: 2)
    private let cem = CallID(number: 3)

    /// Dials at a time of their own.
    private struct Desk {
        var dials = CallDials()
        var now = Instant.zero

        mutating func feed(_ input: CallDials.Input) -> [CallDials.Output] {
            var outbox: [CallDials.Output] = []
            dials.handle(input, at: now, into: &outbox)
            return outbox
        }
    }

    private func ringing(asks: Bool = false) -> Desk {
        var desk = Desk()
        #expect(desk.feed(.begin(caller, callees: 2, asksCallees: asks)).isEmpty)
        #expect(desk.feed(.placed(bob, for: caller)).isEmpty && desk.feed(.placed(cem, for: caller)).isEmpty)
        return desk
    }

    @Test("Devices whose flows dial two others each place fewer calls for one caller than a device's flows may have")
    func circle() {
        var (calls, placed) = ([CallHops()], 0)
        while !calls.isEmpty {
            calls = calls.flatMap { call in [call.next, call.next].compactMap(\.self) }
            placed += calls.count
        }
        #expect(placed == 62 && placed < CallDials.mostCalls)
    }

    @Test(
        "The first that answers gets the caller, the others stop ringing, and the end has the time for which they were joined"
    )
    func first() {
        var desk = ringing()
        #expect(desk.feed(.answered(cem)) == [.hangUp(bob), .won(cem, caller: caller)])
        #expect(desk.feed(.answered(bob)).isEmpty && desk.feed(.ended(bob, .canceled)).isEmpty)
        #expect(desk.feed(.join(caller)) == [.join(cem, caller: caller)])
        desk.now = desk.now.advanced(by: .seconds(70))
        #expect(
            desk.feed(.ended(cem, .noAnswer)) == [.ended(caller: caller, .completed, duration: .seconds(70))])
        #expect(!desk.dials.isDialling(for: caller) && desk.dials.callCount == 0)
    }

    @Test(
        "With several callees the best result counts, once the last has ended; one that rang counts more than one that did not"
    )
    func results() {
        var desk = ringing()
        #expect(desk.feed(.ended(bob, .busy)).isEmpty)
        #expect(desk.feed(.ended(cem, .failed)) == [.ended(caller: caller, .busy, duration: .zero)])
        desk = ringing()
        _ = desk.feed(.ended(bob, .busy))
        #expect(desk.feed(.ended(cem, .noAnswer)) == [.ended(caller: caller, .noAnswer, duration: .zero)])
        desk = Desk()
        _ = desk.feed(.begin(caller, callees: 2, asksCallees: false))
        #expect(desk.feed(.notPlaced(for: caller)).isEmpty)
        #expect(desk.feed(.notPlaced(for: caller)) == [.ended(caller: caller, .failed, duration: .zero)])
    }

    @Test("At the end of the ringing time no callee has answered; a caller who gives up cancels what rings")
    func stops() {
        var desk = ringing()
        #expect(
            desk.feed(.stop(caller, isTimeout: true)) == [
                .hangUp(bob), .hangUp(cem), .ended(caller: caller, .noAnswer, duration: .zero),
            ])
        desk = ringing()
        #expect(
            desk.feed(.ended(caller, .noAnswer)) == [
                .hangUp(bob), .hangUp(cem), .ended(caller: caller, .canceled, duration: .zero),
            ])
        #expect(desk.feed(.answered(bob)).isEmpty)
        // A call that was placed too late is hung up.
        #expect(desk.feed(.placed(bob, for: caller)) == [.hangUp(bob)])
    }

    @Test("Callees that are asked get the caller when one accepts, and ring or listen until then")
    func asks() {
        var desk = ringing(asks: true)
        #expect(desk.feed(.answered(bob)) == [.asks(caller: caller)])
        #expect(desk.feed(.answered(cem)) == [.asks(caller: caller)])
        // Bob declines by hanging up.
        #expect(desk.feed(.ended(bob, .noAnswer)).isEmpty)
        #expect(desk.feed(.accepted(cem)) == [.won(cem, caller: caller)])
        #expect(desk.feed(.accepted(cem)).isEmpty)
    }

    @Test("A callee that is gone before the caller was joined to it counts as failed")
    func lost() {
        var desk = ringing()
        _ = desk.feed(.answered(bob))
        #expect(desk.feed(.ended(bob, .noAnswer)) == [.ended(caller: caller, .failed, duration: .zero)])
        #expect(desk.feed(.join(caller)).isEmpty)
    }

    @Test("A caller in a room leaves it when it ends or is stopped")
    func room() {
        var desk = Desk()
        _ = desk.feed(.begin(caller, callees: 1, asksCallees: false))
        #expect(desk.feed(.entered(caller)).isEmpty && desk.feed(.join(caller)).isEmpty)
        desk.now = desk.now.advanced(by: .seconds(9))
        #expect(
            desk.feed(.stop(caller, isTimeout: false)) == [
                .leaveRoom(caller: caller), .ended(caller: caller, .completed, duration: .seconds(9)),
            ])
    }

    @Test("A call that dials again gives up what it has dialled before")
    func again() {
        var desk = ringing()
        #expect(
            desk.feed(.begin(caller, callees: 1, asksCallees: false)) == [
                .hangUp(bob), .hangUp(cem), .ended(caller: caller, .canceled, duration: .zero),
            ])
        #expect(desk.dials.isDialling(for: caller))
    }

    @Test("A call that replaces the callee counts as the callee")
    func replaced() {
        var desk = ringing()
        _ = desk.feed(.answered(bob))
        _ = desk.feed(.join(caller))
        let dan = CallID(number: 4)
        #expect(desk.feed(.replaced(bob, by: dan)).isEmpty && desk.feed(.ended(bob, .noAnswer)).isEmpty)
        desk.now = desk.now.advanced(by: .seconds(5))
        #expect(desk.feed(.ended(dan, .noAnswer)) == [.ended(caller: caller, .completed, duration: .seconds(5))])
    }

    @Test("A caller that is joined is replaced by another call: the callee is not hung up with the former one")
    func callerReplaced() {
        var desk = ringing()
        _ = desk.feed(.answered(bob))
        _ = desk.feed(.join(caller))
        let dan = CallID(number: 4)
        #expect(desk.feed(.replaced(caller, by: dan)).isEmpty)
        #expect(desk.feed(.ended(caller, .noAnswer)).isEmpty)
        #expect(desk.feed(.ended(dan, .noAnswer)).contains(.hangUp(bob)))
    }
}
