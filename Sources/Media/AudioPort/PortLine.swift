internal import Realtime

/// The media worker's side of a port. It takes each received frame and provides the frame to send; it never waits,
/// allocates or locks.
///
/// When the queue runs empty, or is cleared, the sound fades out within 5 ms; when it returns it fades in within 5 ms.
/// A late program causes silence.
public struct PortLine: ~Copyable, Sendable {
    private var heard: AudioRing.Producer
    private var queue: AudioRing.Consumer
    private var orders: SPSCRing<Int>.Consumer
    private var reports: SPSCRing<PlayReport>.Producer
    private let handle: WakeupHandle
    // Keeps the handle's descriptor open. Untouched on the media thread, so no retain there.
    private let signal: PortSignal
    private var report = PlayReport()
    private var edge = SoundEdge()

    init(
        heard: consuming AudioRing.Producer, queue: consuming AudioRing.Consumer,
        orders: consuming SPSCRing<Int>.Consumer, reports: consuming SPSCRing<PlayReport>.Producer, signal: PortSignal
    ) {
        self.heard = heard
        self.queue = queue
        self.orders = orders
        self.reports = reports
        self.signal = signal
        handle = signal.handle
    }

    /// Runs one frame. Both spans have the same length, in samples at 48 kHz.
    @_noAllocation @_noLocks
    public mutating func exchange(received: Span<Int16>, sending: inout MutableSpan<Int16>) {
        report.missed &+= received.count &- heard.write(received)
        // Only the newest counts: the position of playback is reported for one order.
        var newest = 0
        while let target = orders.pop() { newest = max(newest, target) }
        clear(to: newest)
        let count = queue.read(into: &sending)
        report.consumed &+= count
        edge.shape(&sending, soundSamples: count)
        // If the ring is full, the next report replaces this one.
        _ = reports.push(report)
        handle.signal()
    }

    /// Runs one frame in which the caller hears something else: what is queued waits.
    @_noAllocation @_noLocks
    public mutating func hold(received: Span<Int16>) {
        report.missed &+= received.count &- heard.write(received)
        var newest = 0
        while let target = orders.pop() { newest = max(newest, target) }
        clear(to: newest)
        _ = reports.push(report)
        handle.signal()
    }

    /// The call is over.
    @_noAllocation @_noLocks
    public mutating func finish() {
        heard.close()
        handle.signal()
    }

    /// Discards what is in the queue before `target`.
    @_noAllocation @_noLocks
    private mutating func clear(to target: Int) {
        guard target > report.clearedTo else { return }
        report.clearedAt = report.consumed
        report.clearedTo = target
        let count = target &- report.consumed
        guard count > 0 else { return }
        queue.skip(count)
        report.consumed &+= count
        report.skipped &+= count
        edge.cut()
    }
}

/// Lets sound fall and rise within 5 ms where it would break off.
package struct SoundEdge: BitwiseCopyable {
    /// Samples of a slope at 48 kHz: 5 ms.
    package static var length: Int { @_noAllocation @_noLocks get { 240 } }

    /// The sample that was sent last.
    private var last: Int16 = 0
    /// Where the slope began that falls now.
    private var top: Int16 = 0
    /// Samples that are left of it.
    private var falling = 0
    /// Samples since the sound came back, up to the slope's length.
    private var risen = SoundEdge.length

    private var isCutExpected = false

    @_noAllocation @_noLocks
    package init() {}

    /// The next frame of ``join(_:)`` does not continue the previous one.
    @_noAllocation @_noLocks
    package mutating func expectCut() { isCutExpected = true }

    /// Passes frames, and shapes those after a cut.
    @_noAllocation @_noLocks
    package mutating func join(_ frame: inout MutableSpan<Int16>) {
        if isCutExpected {
            isCutExpected = false
            cut()
        }
        guard falling > 0 || risen < Self.length else {
            if frame.count > 0 { last = frame[frame.count &- 1] }
            return
        }
        shape(&frame, soundSamples: frame.count)
    }

    /// The next sound does not continue the previous one.
    @_noAllocation @_noLocks
    mutating func cut() {
        top = last
        falling = Self.length
        risen = 0
    }

    /// Shapes a frame of which the first `soundSamples` are sound; the others are filled.
    @_noAllocation @_noLocks
    mutating func shape(_ frame: inout MutableSpan<Int16>, soundSamples: Int) {
        for index in 0..<frame.count {
            if index == soundSamples, risen > 0 { cut() }
            var value = 0
            if index < soundSamples {
                value = Int(frame[index])
                if risen < Self.length {
                    value = value &* risen / Self.length
                    risen &+= 1
                }
            }
            if falling > 0 {
                value = max(-32_768, min(32_767, value &+ Int(top) &* falling / Self.length))
                falling &-= 1
            }
            last = Int16(truncatingIfNeeded: value)
            frame[index] = last
        }
    }
}
