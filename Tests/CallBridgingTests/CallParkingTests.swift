import CallBridging
import CallParticipation
import Core
import Testing

@Suite("Calls that are parked, and what waiting calls hear")
struct CallParkingTests {
    private let ann = CallID(number: 1)
    private let bob = CallID(number: 2)

    private func feed(
        _ parking: inout CallParking, _ input: CallParking.Input, at now: Instant = .zero
    ) -> [CallParking.Output] {
        var outbox: [CallParking.Output] = []
        parking.handle(input, at: now, into: &outbox)
        return outbox
    }

    @Test("A call waits in the lowest free slot until another one picks it up")
    func pickedUp() {
        var parking = CallParking()
        #expect(
            feed(&parking, .park(ann, longest: .seconds(60), then: .back)) == [
                .hold(ann, music: nil), .report(.parked, ann, slot: 1),
            ])
        #expect(feed(&parking, .park(ann, longest: .seconds(60), then: .back)).isEmpty)
        #expect(feed(&parking, .park(bob, longest: .seconds(60), then: .back)).last == .report(.parked, bob, slot: 2))
        #expect(feed(&parking, .pickUp(slot: 1, by: ann)).isEmpty && feed(&parking, .pickUp(slot: 3, by: ann)).isEmpty)
        let cem = CallID(number: 3)
        #expect(
            feed(&parking, .pickUp(slot: 1, by: cem)) == [.join(ann, to: cem), .report(.pickedUp, ann, slot: 1)])
        #expect(feed(&parking, .pickUp(slot: 1, by: cem)).isEmpty && parking.slot(of: ann) == nil)
        #expect(feed(&parking, .park(cem, longest: .seconds(60), then: .back)).last == .report(.parked, cem, slot: 1))
        #expect(feed(&parking, .ended(cem)) == [.report(.gone, cem, slot: 1)])
    }

    @Test("RFC 3891: A call that replaces a parked one waits in its slot, with its music and for the rest of its time")
    func replaced() {
        var parking = CallParking()
        _ = feed(&parking, .park(ann, longest: .seconds(60), then: .end, music: "m"))
        #expect(feed(&parking, .replaced(ann, by: bob)).isEmpty)
        #expect(parking.slot(of: bob) == 1 && parking.slot(of: ann) == nil)
        #expect(feed(&parking, .ended(ann)).isEmpty)
        #expect(
            feed(&parking, .established(bob)) == [.hold(bob, music: "m"), .report(.parked, bob, slot: 1)])
        #expect(feed(&parking, .established(bob)).isEmpty)
        let end = Instant.zero.advanced(by: .seconds(60))
        #expect(parking.nextDeadline == end)
        #expect(feed(&parking, .timerFired, at: end) == [.hangUp(bob), .report(.expired, bob, slot: 1)])
        // One that is never established leaves its slot, and a call that waits itself keeps its own.
        _ = feed(&parking, .park(ann, longest: .seconds(60), then: .end))
        _ = feed(&parking, .replaced(ann, by: bob))
        #expect(
            feed(&parking, .ended(bob)) == [.report(.gone, bob, slot: 1)] && feed(&parking, .established(bob)).isEmpty)
        _ = feed(&parking, .park(ann, longest: .seconds(60), then: .end))
        _ = feed(&parking, .park(bob, longest: .seconds(60), then: .end))
        _ = feed(&parking, .replaced(ann, by: bob))
        #expect(parking.slot(of: ann) == 1 && parking.slot(of: bob) == 2)
    }

    @Test("A call whose time is up goes back, or is hung up")
    func expires() {
        var parking = CallParking()
        _ = feed(&parking, .park(ann, longest: .seconds(60), then: .back))
        _ = feed(&parking, .park(bob, longest: .seconds(50), then: .end))
        let early = Instant.zero.advanced(by: .seconds(50))
        #expect(parking.nextDeadline == early)
        #expect(
            feed(&parking, .timerFired, at: early) == [.hangUp(bob), .report(.expired, bob, slot: 2)])
        #expect(
            feed(&parking, .timerFired, at: early.advanced(by: .seconds(10))) == [
                .release(ann), .report(.back, ann, slot: 1),
            ])
        #expect(parking.nextDeadline == nil)
    }

    @Test("There are 99 slots, and a call beyond them is not parked")
    func full() {
        var parking = CallParking()
        for number in 1...UInt64(CallParking.slots) {
            #expect(!parking.isFull)
            _ = feed(&parking, .park(CallID(number: number), longest: .seconds(60), then: .back))
        }
        #expect(parking.isFull && parking.slot(of: CallID(number: 99)) == 99)
        #expect(feed(&parking, .park(CallID(number: 100), longest: .seconds(60), then: .back)).isEmpty)
    }

    private func feed(
        _ music: inout CallMusic, _ input: CallMusic.Input, at seconds: Int = 0
    ) -> [CallMusic.Output] {
        var outbox: [CallMusic.Output] = []
        music.handle(input, at: Instant.zero.advanced(by: .seconds(seconds)), into: &outbox)
        return outbox
    }

    @Test("Music that ends with a join is opened again for a hold behind it, also if it was just being opened")
    func untilJoined() {
        var music = CallMusic()
        #expect(
            feed(&music, .play("m", to: ann, repeats: true, isUntilJoined: true)) == [
                .play("m", to: ann, isUntilJoined: true)
            ])
        #expect(feed(&music, .play("m", to: ann, repeats: true)).isEmpty)
        #expect(feed(&music, .began("m", in: ann)) == [.play("m", to: ann)])
        #expect(feed(&music, .began("m", in: ann)).isEmpty)
        // It repeats as it was asked for.
        #expect(feed(&music, .ended("m", in: ann, isPlayed: true), at: 3) == [.play("m", to: ann)])
    }

    @Test("Music begins again at its end, until it is stopped")
    func repeats() {
        var music = CallMusic()
        #expect(feed(&music, .play("m", to: ann, repeats: true)) == [.play("m", to: ann)])
        #expect(feed(&music, .began("m", in: ann)).isEmpty)
        #expect(feed(&music, .ended("m", in: ann, isPlayed: true), at: 3) == [.play("m", to: ann)])
        #expect(feed(&music, .began("m", in: ann), at: 3).isEmpty)
        #expect(feed(&music, .stop(ann)) == [.stop(ann)] && feed(&music, .stop(ann)).isEmpty)
        #expect(feed(&music, .ended("m", in: ann, isPlayed: false), at: 4).isEmpty && !music.isHeard(in: ann))
    }

    @Test("What is wanted while a file is being opened counts, and a call that ends hears nothing more")
    func opening() {
        var music = CallMusic()
        _ = feed(&music, .play("m", to: ann, repeats: true))
        #expect(feed(&music, .stop(ann)).isEmpty)
        #expect(feed(&music, .began("m", in: ann)) == [.stop(ann)])
        _ = feed(&music, .ended("m", in: ann, isPlayed: false))
        _ = feed(&music, .play("m", to: ann, repeats: true))
        #expect(feed(&music, .play("w", to: ann, repeats: false)).isEmpty)
        #expect(feed(&music, .began("m", in: ann)) == [.play("w", to: ann)])
        #expect(feed(&music, .callEnded(ann)).isEmpty && feed(&music, .began("w", in: ann)).isEmpty)
    }

    @Test("A whisper is heard once, and its end is reported, also if it cannot be played")
    func once() {
        var music = CallMusic()
        _ = feed(&music, .play("w", to: bob, repeats: false))
        _ = feed(&music, .began("w", in: bob))
        #expect(feed(&music, .ended("x", in: bob, isPlayed: true)).isEmpty)
        #expect(feed(&music, .ended("w", in: bob, isPlayed: true), at: 2) == [.finished(bob)])
        _ = feed(&music, .play("w", to: bob, repeats: false))
        #expect(feed(&music, .failed("w", in: bob)) == [.finished(bob)])
    }

    @Test("A file that is too short, cannot be played, or makes way for a user's is not begun again")
    func endless() {
        var music = CallMusic()
        _ = feed(&music, .play("m", to: ann, repeats: true))
        _ = feed(&music, .began("m", in: ann))
        #expect(feed(&music, .ended("m", in: ann, isPlayed: true)).isEmpty)
        _ = feed(&music, .play("m", to: ann, repeats: true))
        #expect(feed(&music, .failed("m", in: ann)).isEmpty)
        _ = feed(&music, .play("m", to: ann, repeats: true))
        _ = feed(&music, .began("m", in: ann))
        #expect(feed(&music, .ended("m", in: ann, isPlayed: false), at: 9).isEmpty && !music.isHeard(in: ann))
    }

    @Test("The end of a participant waits, the first one, and nothing else does")
    func deferred() {
        var ends = DeferredEnds()
        let kept = [
            ends.keep(.done(ann, failure: nil), from: .mailbox), ends.keep(.done(ann, failure: "x"), from: .mailbox),
            ends.keep(.press(ann, keys: "1"), from: .program),
        ]
        #expect(kept == [true, true, false])
        #expect(ends.take(ann)?.event == .done(ann, failure: nil))
        #expect(ends.take(ann) == nil)
    }
}
