@testable import AudioDevices
import Core
import Realtime
import Testing

@Suite("A card that is measured frame by frame")
struct DuplexLoopTests {
    /// Steps every 0.5 ms of the card's time.
    ///
    /// - Returns: The notes.
    private static func run(
        _ loop: inout DuplexLoop<SimulatedCard>, _ notes: inout SPSCRing<DuplexNote>.Consumer, _ world: SimulatedWorld,
        milliseconds: Int
    ) -> [DuplexNote] {
        var noted: [DuplexNote] = []
        let end = world.now.advanced(byNanoseconds: Int64(milliseconds) * 1_000_000)
        while world.now < end {
            loop.step(at: world.now)
            while let note = notes.pop() { noted.append(note) }
            world.now = world.now.advanced(byNanoseconds: 500_000)
        }
        return noted
    }

    @Test("An xrun that writing meets is noted behind the hold-up that made it, and the time of both is accounted for")
    func metXrun() throws {
        let world = SimulatedWorld()
        world.isOpen = true
        let signal = AudioRing(capacity: 1 << 17)
        let heard = AudioRing(capacity: 1 << 17)
        let ring = SPSCRing<DuplexNote>(capacity: 4_096)
        var notes = ring.consumer
        let ends = DuplexEnds(signal: signal.consumer, captured: heard.producer, notes: ring.producer)
        guard var loop = DuplexLoop(SimulatedCard(world: world), ends, bufferMilliseconds: 40, at: world.now) else {
            Issue.record("the card has both directions")
            return
        }
        var noted = Self.run(&loop, &notes, world, milliseconds: 1_000)
        let before = try #require(noted.last { if case .exchanged = $0.event { true } else { false } })
        // Notes of a late program do not count: the test plays no signal and takes no frames.
        world.stallBeforeWriteNanoseconds = 60_000_000
        noted = Self.run(&loop, &notes, world, milliseconds: 500)
        let trouble = noted.filter { note in
            switch note.event {
            case .heldUp, .xrun: true
            case .exchanged, .suspended, .lost, .returned, .priorityRefused, .late: false
            }
        }
        #expect(trouble.count == 2, "\(trouble)")
        guard case .heldUp(let nanoseconds) = trouble.first?.event else {
            Issue.record("\(trouble)")
            return
        }
        #expect(nanoseconds >= 60_000_000 && nanoseconds < 62_000_000)
        #expect(trouble.last?.event == .xrun(.playback) && trouble.last?.at == trouble.first?.at)
        let (isDue, isMeasuring) = (loop.isDue, loop.isMeasuring)
        #expect(!isDue && isMeasuring)
        let after = try #require(noted.last { if case .exchanged = $0.event { true } else { false } })
        let elapsed = Double(before.at.nanoseconds(to: after.at)) * 48e-6
        #expect(abs(Double(after.captured - before.captured) - elapsed) <= 480, "\(after) \(before)")
        #expect(abs(Double(after.played - before.played) - elapsed) <= 960, "\(after) \(before)")
    }
}
