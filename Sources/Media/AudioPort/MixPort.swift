internal import AudioKit
public import Realtime

/// A mixer's side of a call's sound, at the call's 48 kHz. The media worker's side is a ``PortLine``, as for any program.
///
/// Rings of a fixed size join the two, so that neither waits for the other. Nothing here allocates or locks after ``pair()``. The two
/// sides run at the same pace, and each keeps what it needs in the rings (``RingCushion``); what a stall left there beyond that is
/// left out.
public struct MixPort: ~Copyable, Sendable {
    private var heard: AudioRing.Consumer
    private var queue: AudioRing.Producer
    private var heardEdge = SoundEdge()
    private var sentEdge = SoundEdge()
    private var heardCushion = RingCushion()
    private var sentCushion = RingCushion()
    private var shared: SharedFrameWriter
    /// Frames for the caller that are still to be left out.
    private var surplus = 0
    /// Frames that were left out in either direction, because they would have been late.
    public private(set) var framesLeftOut = 0

    /// Samples of one frame: 20 ms.
    public static var frameSamples: Int { @_noAllocation @_noLocks get { 960 } }
    /// Samples that either ring holds: 0.17 s, which is 16 KiB.
    public static let capacity = 8_192
    /// Samples that may wait in either direction, 80 ms: with more, a frame is left out at once.
    static var mostWaiting: Int { @_noAllocation @_noLocks get { 3_840 } }

    /// Makes both sides.
    public static func pair() -> MixPair {
        let heard = AudioRing(capacity: capacity)
        let queue = AudioRing(capacity: capacity)
        let orders = SPSCRing<PlayOrder>(capacity: 2)
        let reports = SPSCRing<PlayReport>(capacity: 2)
        let turnEvents = SPSCRing<TurnEvent>(capacity: 2)
        let shared = SharedFrameReader.pair()
        return MixPair(
            port: MixPort(heard: heard.consumer, queue: queue.producer, shared: shared.writer),
            line: PortLine(
                heard: heard.producer, queue: queue.consumer, orders: orders.consumer, reports: reports.producer,
                turnEvents: turnEvents.producer, rate: .hz48000, turns: nil, signal: nil, shared: shared.reader))
    }

    private init(
        heard: consuming AudioRing.Consumer, queue: consuming AudioRing.Producer, shared: consuming SharedFrameWriter
    ) {
        self.heard = heard
        self.queue = queue
        self.shared = shared
    }

    /// How the call sends what it hears of the mix, as of its last frame.
    public var sharing: FrameSharing { @_noAllocation @_noLocks get { shared.sharing } }

    /// Whether the call has ended, or its line has left it.
    public var isOver: Bool { @_noAllocation @_noLocks mutating get { heard.hasEnded() } }

    /// Takes the next frame of the caller. Where sound is missing it fades out within 5 ms; the rest is silence.
    ///
    /// - Returns: Samples of sound in it.
    @_noAllocation @_noLocks
    public mutating func take(into frame: inout MutableSpan<Int16>) -> Int {
        shared.update()
        let count = heard.read(into: &frame)
        if count == frame.count { heardEdge.join(&frame) } else { heardEdge.shape(&frame, soundSamples: count) }
        let waiting = heard.count
        let excess = heardCushion.surplus(of: waiting) &* Self.frameSamples
        leaveOut(waiting > Self.mostWaiting ? waiting &- Self.frameSamples : excess)
        return count
    }

    @_noAllocation @_noLocks
    private mutating func leaveOut(_ count: Int) {
        guard count > 0 else { return }
        heard.skip(count)
        heardEdge.expectCut()
        framesLeftOut &+= (count &+ Self.frameSamples &- 1) / Self.frameSamples
    }

    /// Gives the caller its next frame, of ``frameSamples`` samples. A caller that reads none gets no more than 80 ms ahead.
    ///
    /// - Parameters:
    ///   - work: Room for one frame.
    ///   - encoded: The same frame as it can be sent, if it is encoded for several calls. The call gets it unless its samples were changed
    ///     on the way.
    @_noAllocation @_noLocks
    public mutating func give(_ frame: Span<Int16>, through work: inout SampleBuffer, encoded: SharedFrame? = nil) {
        let waiting = Self.capacity &- queue.space
        let found = sentCushion.surplus(of: waiting)
        if found > 0 { surplus = found }
        if waiting > Self.mostWaiting || surplus > 0 {
            surplus = max(0, surplus &- 1)
            framesLeftOut &+= 1
            return sentEdge.expectCut()
        }
        if sentEdge.isAtRest {
            if let encoded { shared.give(encoded, at: queue.position) }
            _ = queue.write(frame)
            sentEdge.pass(frame)
        } else {
            Self.write(frame, to: &queue, through: &work, shapedBy: &sentEdge)
        }
    }

    // Views of samples, which unoptimised code counts as reference counting.
    @_semantics("no_performance_analysis") @inline(__always)
    private static func write(
        _ frame: Span<Int16>, to queue: inout AudioRing.Producer, through work: inout SampleBuffer,
        shapedBy edge: inout SoundEdge
    ) {
        var room = work.mutableSamples(frame.count)
        for index in 0..<min(room.count, frame.count) { room[index] = frame[index] }
        edge.join(&room)
        _ = queue.write(room.span)
    }
}

/// Both sides of a call's sound in a mix.
@frozen
public struct MixPair: ~Copyable {
    /// For the mixer.
    public var port: MixPort
    /// For the media worker.
    public var line: PortLine

    init(port: consuming MixPort, line: consuming PortLine) {
        self.port = port
        self.line = line
    }
}

/// Decides when a ring between two threads of the same pace holds more than it needs. Pure.
///
/// A stall of one side leaves frames in the ring for ever. Those that the ring did not need for a whole window (4 s at first) are left out,
/// all at once. If that is due again within four windows, the stalls recur, and the window doubles, up to 64 s: the ring then keeps the
/// frames that it needs.
public struct RingCushion: BitwiseCopyable, Sendable {
    private var least = Int.max
    private var ticks = 0
    private var window = RingCushion.shortest
    private var sinceLast = Int.max / 2

    private static var shortest: Int { @_noAllocation @_noLocks get { 200 } }
    private static var longest: Int { @_noAllocation @_noLocks get { 3_200 } }

    /// Knows of nothing.
    @_noAllocation @_noLocks
    public init() {}

    /// Notes how many samples waited at the moment of this tick, in which the fewest wait.
    ///
    /// - Returns: How many frames are to be left out from now on, one after the other.
    @_noAllocation @_noLocks
    public mutating func surplus(of waiting: Int) -> Int {
        least = min(least, waiting)
        ticks &+= 1
        sinceLast &+= 1
        guard ticks >= window else { return 0 }
        let surplus = least / MixPort.frameSamples
        (ticks, least) = (0, Int.max)
        guard surplus > 0 else { return 0 }
        window = sinceLast < 4 &* window ? min(2 &* window, Self.longest) : Self.shortest
        sinceLast = 0
        return surplus
    }
}
