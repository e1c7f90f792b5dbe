@testable import AudioDevices
import Glibc
import Realtime
import Core

/// A sound card in virtual time: its clocks, its buffers, the air around it, and what goes wrong with it.
final class SimulatedWorld {
    var now = Instant(nanoseconds: 1_000_000_000)
    var playback = Side(rate: 48_000)
    var capture = Side(rate: 48_000)
    /// What `open` fails with, and everything else while the card is open; 0 if it is there.
    var absence: Int32 = 0
    /// Until then `resume` says EAGAIN.
    var sleepsUntil: Instant?
    var isSuspended = false
    var resumeErrno: Int32 = 0
    /// Delay of the thread right before its next write.
    var stallBeforeWriteNanoseconds: Int64 = 0
    /// The most frames that one call moves.
    var mostAtOnce = Int.max
    /// When impulses were heard at the loudspeaker.
    var heardAt: [Instant] = []
    private var peak: (value: Int16, at: Instant)?
    var opens = 0
    var isOpen = false
    /// Whether it has no loudspeaker, or no microphone.
    var lacksPlayback = false
    var lacksCapture = false
    /// Takes and gives whatever it is asked for, like ALSA's `null`.
    var hasNoClock = false

    /// One direction.
    struct Side {
        var rate: Int
        var ppm = 0.0
        var periodFrames: Int
        var bufferFrames: Int
        var startedAt: Instant?
        /// Frames written, or read, since the start.
        var moved = 0
        var isXrun = false
        var isStuck = false
        var xrunsRecovered = 0
        /// Frames behind the buffer that the driver tells of.
        var behindFrames = 0

        init(rate: Int, periodMilliseconds: Int = 10) {
            self.rate = rate
            periodFrames = rate * periodMilliseconds / 1_000
            bufferFrames = periodFrames * 8
        }

        var trueRate: Double { Double(rate) * (1 + ppm * 1e-6) }

        func time(ofFrame frame: Int) -> Instant {
            (startedAt ?? .zero).advanced(byNanoseconds: Int64((Double(frame) / trueRate * 1e9).rounded()))
        }

        /// Frames the converter has passed, known at interrupts only.
        func position(at now: Instant) -> Int {
            guard let startedAt else { return 0 }
            let frames = Int(Double(startedAt.nanoseconds(to: now)) * 1e-9 * trueRate + 1e-3)
            return frames / periodFrames * periodFrames
        }

        func nextInterrupt(after now: Instant) -> Instant? {
            guard startedAt != nil, !isXrun, !isStuck else { return nil }
            var frame = position(at: now) + periodFrames
            while time(ofFrame: frame) <= now { frame += periodFrames }
            return time(ofFrame: frame)
        }

        var grant: CardGrant {
            CardGrant(
                rate: rate, channels: 1, format: .s16LE, periodFrames: periodFrames, bufferFrames: bufferFrames,
                isMemoryMapped: false)
        }
    }

    /// In the air an impulse sounds at the middle of each second.
    static func impulse(near time: Instant) -> Instant {
        Instant(nanoseconds: time.nanoseconds / 1_000_000_000 * 1_000_000_000 + 500_000_000)
    }

    func captured(frame: Int) -> Int16 {
        let time = capture.time(ofFrame: frame)
        let distance = Double(Self.impulse(near: time).nanoseconds(to: time)) * 1e-9 * capture.trueRate
        return abs(distance) <= 0.5 ? 20_000 : 0
    }

    func hear(_ sample: Int16, at time: Instant) {
        if sample > 1_500 {
            if sample > (peak?.value ?? 0) { peak = (sample, time) }
        } else if let found = peak {
            heardAt.append(found.at)
            peak = nil
        }
    }
}

struct SimulatedCard: SoundCard, ~Copyable {
    let world: SimulatedWorld

    mutating func open() -> CardFailure? {
        world.opens += 1
        if world.absence != 0 { return CardFailure(direction: .playback, errno: world.absence) }
        world.isOpen = true
        return nil
    }

    mutating func close() {
        world.isOpen = false
        world.playback.startedAt = nil
        world.capture.startedAt = nil
    }

    func grant(_ direction: SoundDirection) -> CardGrant? {
        guard world.isOpen else { return nil }
        if direction == .playback ? world.lacksPlayback : world.lacksCapture { return nil }
        return direction == .playback ? world.playback.grant : world.capture.grant
    }

    mutating func setOutputs(_ outputs: CardOutputs) {}

    mutating func readPairs(into samples: inout SampleBuffer, count: Int) {}

    private func change(_ direction: SoundDirection, _ body: (inout SimulatedWorld.Side) -> Void) -> Int32 {
        if world.absence != 0 { return -world.absence }
        if world.isSuspended { return -ESTRPIPE }
        if direction == .playback { body(&world.playback) } else { body(&world.capture) }
        return 0
    }

    mutating func prepare(_ direction: SoundDirection) -> Int32 {
        change(direction) { side in
            if side.isXrun { side.xrunsRecovered += 1 }
            side.isXrun = false
            side.startedAt = nil
            side.moved = 0
        }
    }

    mutating func start(_ direction: SoundDirection) -> Int32 {
        let now = world.now
        return change(direction) { $0.startedAt = now }
    }

    mutating func resume(_ direction: SoundDirection) -> Int32 {
        if world.absence != 0 { return -world.absence }
        if let until = world.sleepsUntil, world.now < until { return -EAGAIN }
        world.isSuspended = false
        return -world.resumeErrno
    }

    mutating func condition(_ direction: SoundDirection) -> LineCondition {
        if world.absence != 0 { return LineCondition(errno: world.absence) }
        if world.isSuspended { return LineCondition(errno: ESTRPIPE) }
        if world.hasNoClock { return LineCondition(errno: 0, availableFrames: 3_840, delayFrames: 0) }
        switch direction {
        case .playback:
            let side = world.playback
            let queue = side.moved - (side.isStuck ? 0 : side.position(at: world.now))
            if side.isXrun || (queue < 0 && side.startedAt != nil) {
                world.playback.isXrun = true
                return LineCondition(errno: EPIPE)
            }
            return LineCondition(
                errno: 0, availableFrames: side.bufferFrames - queue, delayFrames: queue + side.behindFrames)
        case .capture:
            let side = world.capture
            let waiting = side.isStuck ? 0 : side.position(at: world.now) - side.moved
            if side.isXrun || waiting > side.bufferFrames {
                world.capture.isXrun = true
                return LineCondition(errno: EPIPE)
            }
            return LineCondition(errno: 0, availableFrames: waiting, delayFrames: waiting + side.behindFrames)
        }
    }

    mutating func write(_ samples: borrowing SampleBuffer, from start: Int, to end: Int) -> Int {
        world.now = world.now.advanced(byNanoseconds: world.stallBeforeWriteNanoseconds)
        world.stallBeforeWriteNanoseconds = 0
        let condition = condition(.playback)
        if condition.errno != 0 { return -Int(condition.errno) }
        let count = min(end - start, condition.availableFrames, world.mostAtOnce)
        if count <= 0 { return -Int(EAGAIN) }
        let span = samples.samples(end)
        for index in 0..<count {
            // Until it starts, the frame's time is counted from now.
            let frame = world.playback.moved + index
            let time =
                world.playback.startedAt == nil ? world.now : world.playback.time(ofFrame: frame)
            world.hear(span[start + index], at: time.advanced(byNanoseconds: behindNanoseconds))
        }
        world.playback.moved += count
        return count
    }

    private var behindNanoseconds: Int64 {
        Int64(world.playback.behindFrames) * 1_000_000_000 / Int64(world.playback.rate)
    }

    mutating func read(into samples: inout SampleBuffer, count: Int) -> Int {
        let condition = condition(.capture)
        if condition.errno != 0 { return -Int(condition.errno) }
        let count = min(count, condition.availableFrames, world.mostAtOnce)
        if count <= 0 { return -Int(EAGAIN) }
        let first = world.capture.moved
        var span = samples.mutableSamples(count)
        for index in 0..<count { span[index] = world.captured(frame: first + index) }
        world.capture.moved += count
        return count
    }

    mutating func setWakeQueue(frames: Int, startFrames: Int) {}
}
