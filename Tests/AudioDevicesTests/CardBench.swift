@testable import AudioDevices
import Realtime
import TestSupport
import Core

/// A worker, a device's loop and a simulated card on one timeline.
final class CardBench {
    let world = SimulatedWorld()
    private(set) var events: [CardEvent] = []
    /// The figures of the last report, which `handset control status` prints.
    private(set) var reported: CardStatistics?
    private var loop: CardLoop<SimulatedCard>
    private var line: SoundLine
    private var eventRing: SPSCRing<CardEvent>.Consumer
    private var generator: SeededGenerator
    private let frameSamples: Int
    private var nextFrame: Instant
    /// The card's thread next looks at the card, a little after its interrupt.
    private var nextWake: Instant?
    /// How late threads come at the most.
    var workerJitterNanoseconds: Int64 = 0
    var cardJitterNanoseconds: Int64 = 0
    /// The worker does nothing until then.
    var workerStallsUntil: Instant?
    /// Whether the worker keeps its frames to the card's beats.
    var followsPeriods = false
    private var follower: PeriodTracker
    private var frames = 0
    private var skipping = 0
    /// Whether the worker plays and captures.
    var isWorking = true
    /// When the worker played impulses: one at the beginning of each second.
    private(set) var playedAt: [Instant] = []
    /// When the worker, counting samples, got the impulses that were in the air at the middle of each second.
    private(set) var capturedAt: [Instant] = []
    /// Times that the card's thread woke up while the worker did nothing.
    private(set) var idleWakes = 0
    private var now: Instant { world.now }

    init(frameMilliseconds: Int = 20, seed: UInt64 = 1) {
        let pair = LinePair()
        let ring = SPSCRing<CardEvent>(capacity: 4_096)
        line = pair.worker
        loop = CardLoop(SimulatedCard(world: world), pair.device, events: ring.producer, eventSignal: nil)
        eventRing = ring.consumer
        generator = SeededGenerator(seed: seed)
        frameSamples = frameMilliseconds * 48
        follower = PeriodTracker(frameNanoseconds: Int64(frameMilliseconds) * 1_000_000)
        nextFrame = world.now.advanced(byNanoseconds: 3_700_000)
    }

    var statistics: CardStatistics { loop.statistics }
    var isStopped: Bool { loop.isStopped }
    var worker: SoundLine.Counters { line.counters }

    func start() {
        loop.start(at: now)
        collect()
    }

    func stop() {
        loop.stop(at: now)
        collect()
    }

    /// Lets time pass, in milliseconds.
    func run(milliseconds: Int) { run(until: now.advanced(byNanoseconds: Int64(milliseconds) * 1_000_000)) }

    func run(seconds: Int) { run(milliseconds: seconds * 1_000) }

    /// Pauses the worker, as between calls.
    func pause() {
        isWorking = false
        line.pause(at: now)
    }

    /// Has the worker go on after a pause.
    func goOn() {
        isWorking = true
        frameDueAt = now
        nextFrame = now
    }

    func forget() {
        idleWakes = 0
        playedAt = []
        capturedAt = []
        world.heardAt = []
        events = []
    }

    /// Has the worker's frames come earlier by so much from now on, and leave out as much of what they play.
    func advanceFrames(milliseconds: Int) {
        nextFrame = nextFrame.advanced(byNanoseconds: Int64(-milliseconds) * 1_000_000)
        frameDueAt = nextFrame
        skipping = milliseconds * 48
    }

    private func run(until end: Instant) {
        while true {
            let interrupt = [
                world.playback.nextInterrupt(after: now), world.capture.nextInterrupt(after: now),
            ].compactMap(\.self).min()
            let wake = nextWake ?? interrupt.map { late($0, by: cardJitterNanoseconds) }
            nextWake = wake
            let due = [wake, loop.nextDeadline, dueFrame].compactMap(\.self).min() ?? end
            guard due <= end else { break }
            world.now = max(now, due)
            let isFrame = dueFrame <= now
            if isFrame { runFrame() }
            let isWake = [wake, loop.nextDeadline].contains { $0.map { $0 <= now } ?? false }
            if let wake, wake <= now { nextWake = nil }
            guard isWake || isFrame && isWorking else { continue }
            if !isWorking { idleWakes += 1 }
            loop.step(at: now)
            collect()
        }
        world.now = end
    }

    private var dueFrame: Instant { max(nextFrame, workerStallsUntil ?? nextFrame) }

    private func late(_ time: Instant, by nanoseconds: Int64) -> Instant {
        nanoseconds == 0 ? time : time.advanced(byNanoseconds: Int64.random(in: 0...nanoseconds, using: &generator))
    }

    private var frameDueAt: Instant?

    /// One frame of the worker's: an impulse at each second's beginning goes out, and those of the air come in.
    private func runFrame() {
        let due = frameDueAt ?? nextFrame
        var following = due.advanced(byNanoseconds: Int64(frameSamples) * 1_000_000_000 / 48_000)
        defer {
            frameDueAt = following
            nextFrame = late(following, by: workerJitterNanoseconds)
        }
        guard isWorking else { return }
        let missed = line.counters.captureUnderrun
        var frame = [Int16](repeating: 0, count: frameSamples)
        for index in 0..<frameSamples {
            let time = due.advanced(byNanoseconds: Int64(index) * 1_000_000 / 48)
            let intoSecond = time.nanoseconds % 1_000_000_000
            if intoSecond < 1_000_000 / 48 {
                frame[index] = 20_000
                playedAt.append(time)
            }
        }
        line.play(frame.span, at: now, skipping: skipping)
        skipping = 0
        var space = frame.mutableSpan
        if followsPeriods {
            line.capture(into: &space, at: due, afterBoundary: follower.wait)
            let lacked = line.counters.captureUnderrun > missed
            let shift = follower.follow(due, line.lastBoundary, lacked: lacked, mayJump: frames < 50)
            frames += 1
            if abs(shift) > 1_000_000 { line.pause(at: due) }
            following = following.advanced(byNanoseconds: shift)
        } else {
            line.capture(into: &space, at: now)
        }
        guard let peak = frame.indices.max(by: { frame[$0] < frame[$1] }), frame[peak] > 3_000 else { return }
        capturedAt.append(due.advanced(byNanoseconds: Int64(peak - frameSamples) * 1_000_000 / 48))
    }

    private func collect() {
        while let event = eventRing.pop() {
            if case .report(let statistics) = event {
                reported = statistics
                continue
            }
            events.append(event)
        }
    }

    /// Delays of playback as heard, in ms, oldest first.
    var playbackDelays: [Double] {
        playedAt.compactMap { played in
            world.heardAt.first { $0 >= played }.map { Double(played.nanoseconds(to: $0)) * 1e-6 }
        }.filter { $0 < 400 }
    }

    /// Delays of capture as heard, in ms, oldest first.
    var captureDelays: [Double] {
        capturedAt.map { captured in
            let air = SimulatedWorld.impulse(near: captured)
            return Double(air.nanoseconds(to: captured)) * 1e-6
        }
    }
}
