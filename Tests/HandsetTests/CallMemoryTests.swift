@testable import CallAgent
import TestSupport
import Testing
import Core

@testable import handset

@Suite("Memory of a device between calls")
struct CallMemoryTests {
    private let one = CallID(number: 1)
    private let other = CallID(number: 2)

    @Test("Memory is locked from the first call on, and let go of 30 s after the last one")
    func overlapping() {
        var timeline = Timeline(CallMemory())
        #expect(timeline.feed(.began(one)) == [.lock])
        timeline.advance(by: .seconds(10), firing: .timerFired)
        for input in [CallMemory.Input.began(one), .began(other), .ended(one)] { #expect(timeline.feed(input).isEmpty) }
        timeline.advance(by: .seconds(1_000), firing: .timerFired)
        #expect(timeline.outputs == [.lock])
        timeline.feed(.ended(other))
        timeline.advance(by: .milliseconds(29_999), firing: .timerFired)
        #expect(timeline.outputs == [.lock])
        timeline.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(timeline.outputs == [.lock, .release])
        timeline.advance(by: .seconds(1_000), firing: .timerFired)
        #expect(timeline.feed(.began(other)) == [.lock])
    }

    @Test("A call within 30 s of the one before finds memory locked, and keeps it so")
    func soonAgain() {
        var timeline = Timeline(CallMemory())
        timeline.feed(.began(one))
        timeline.feed(.ended(one))
        timeline.advance(by: .seconds(29), firing: .timerFired)
        #expect(timeline.feed(.began(other)).isEmpty)
        timeline.advance(by: .seconds(1_000), firing: .timerFired)
        #expect(timeline.feed(.timerFired).isEmpty)
        #expect(timeline.outputs == [.lock])
    }

    @Test("What only the start of the program needed is let go of a second after it, once")
    func start() {
        var timeline = Timeline(CallMemory())
        timeline.feed(.ready)
        timeline.advance(by: .milliseconds(999), firing: .timerFired)
        #expect(timeline.outputs.isEmpty)
        timeline.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(timeline.outputs == [.release])
        timeline.advance(by: .seconds(1_000), firing: .timerFired)
        #expect(timeline.outputs == [.release])
    }

    @Test("A call that begins while the program starts keeps its memory")
    func callAtStart() {
        var timeline = Timeline(CallMemory())
        timeline.feed(.began(one))
        timeline.feed(.ready)
        timeline.advance(by: .seconds(1_000), firing: .timerFired)
        #expect(timeline.outputs == [.lock])
    }

    @Test("What a call brought in that was never answered is let go of, too")
    func unanswered() {
        var timeline = Timeline(CallMemory())
        timeline.feed(.ended(one))
        timeline.advance(by: .seconds(30), firing: .timerFired)
        #expect(timeline.outputs == [.release])
    }
}
