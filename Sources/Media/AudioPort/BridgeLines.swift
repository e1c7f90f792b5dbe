internal import Realtime

/// The lines of two calls that are joined: each sends what the other one has received.
///
/// Two rings cross between the media threads of the calls, so no third thread is needed, and neither waits for the other. Nothing
/// allocates or locks after ``make()``. Sound waits for the other call's next frame: 20 ms at most, 10 ms on average. A stall of one
/// thread leaves a frame more in a ring, which is left out when it was not needed for 4 s (``RingCushion``). From the first frame that
/// both have run on, no sample is lost unless a thread stalls.
///
/// A call that is just joined may hear what it heard before until the other one has sound. The telephone of a person who presses a key sends
/// no sound for that time, and some 60 ms more.
@frozen
public struct BridgeLines: ~Copyable {
    /// For the media thread of one call.
    public var one: PortLine
    /// For that of the other.
    public var other: PortLine

    /// Samples that a ring takes in one direction: 0.17 s, which is 16 KiB. Of a call that does not read, further sound is dropped.
    public static let capacity = MixPort.capacity

    /// A call waits this long for sound of the other one: 0.3 s, the delay of a jitter buffer on a bad path, and
    /// the end of a key before it.
    public static let longestWait = Duration.milliseconds(JoinedQueue.longestWait / 48)

    /// Makes both lines.
    public static func make() -> BridgeLines {
        let there = AudioRing(capacity: capacity)
        let back = AudioRing(capacity: capacity)
        return BridgeLines(
            one: line(to: there.producer, from: back.consumer), other: line(to: back.producer, from: there.consumer))
    }

    private static func line(
        to other: consuming AudioRing.Producer, from queue: consuming AudioRing.Consumer
    ) -> PortLine {
        let orders = SPSCRing<PlayOrder>(capacity: 2)
        let reports = SPSCRing<PlayReport>(capacity: 2)
        let turnEvents = SPSCRing<TurnEvent>(capacity: 2)
        return PortLine(
            heard: other, queue: queue, orders: orders.consumer, reports: reports.producer,
            turnEvents: turnEvents.producer, rate: .hz48000, turns: nil, signal: nil, joined: JoinedQueue())
    }

    private init(one: consuming PortLine, other: consuming PortLine) {
        self.one = one
        self.other = other
    }
}

/// Decides what is left out of a queue that another call's media thread fills at the same pace. Pure.
struct JoinedQueue: BitwiseCopyable {
    private var cushion = RingCushion()
    private var hasBegun = false
    /// Samples that are left out before the next frame.
    private var late = 0
    /// Samples for which the other call's sound was waited for.
    private var waited = 0
    /// ``BridgeLines/longestWait`` in samples.
    static var longestWait: Int { @_noAllocation @_noLocks get { 14_400 } }
    /// Times that sound was left out, because it would have been late.
    private(set) var framesLeftOut = 0

    @_noAllocation @_noLocks
    init() {}

    /// Samples to leave out before the next frame is taken. Before the first one that is what the other call has said before both were
    /// joined, except for a frame.
    @_noAllocation @_noLocks
    mutating func takeLate(of waiting: Int) -> Int {
        defer { (hasBegun, late) = (true, 0) }
        return hasBegun ? late : max(0, waiting &- MixPort.frameSamples)
    }

    /// Notes a frame without sound of the other call.
    ///
    /// - Returns: Whether it is no longer waited for.
    @_noAllocation @_noLocks
    mutating func endsWait(afterFrame samples: Int) -> Bool {
        waited &+= samples
        return waited > Self.longestWait
    }

    /// Notes what waits after a frame was taken.
    @_noAllocation @_noLocks
    mutating func noteRest(_ waiting: Int) {
        let excess = cushion.surplus(of: waiting) &* MixPort.frameSamples
        late = waiting > MixPort.mostWaiting ? waiting &- MixPort.frameSamples : excess
        if late > 0 { framesLeftOut &+= 1 }
    }
}
