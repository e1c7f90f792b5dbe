internal import Realtime

/// Decoded samples that wait to be played, after those played last, which time-stretching looks back on (NetEq's sync buffer).
struct SyncBuffer: ~Copyable {
    /// Played samples kept: the longest pitch period (15 ms) and what is compared around it (20 ms).
    static var history: Int { @_noAllocation @_noLocks get { 1_680 } }
    /// Initial capacity for waiting samples: two packets of 20 ms, and concealment after them.
    private static var usual: Int { @_noAllocation @_noLocks get { 2_400 } }
    /// Waiting samples it can hold: the longest packet (120 ms), the longest pull (60 ms), and room to stretch.
    static var capacity: Int { @_noAllocation @_noLocks get { 11_520 } }

    private var memory = SampleBuffer(
        capacity: SyncBuffer.history + SyncBuffer.capacity, zeros: SyncBuffer.history + SyncBuffer.usual)
    /// Samples waiting to be played.
    private(set) var count = 0
    /// Made-up samples behind those: played only if nothing better comes, and else faded into what comes.
    private(set) var provisional = 0
    /// Samples over which made-up sound fades into real sound: 5 ms.
    private static var fade: Int { @_noAllocation @_noLocks get { 240 } }

    /// Samples that still fit.
    var space: Int {
        @_noAllocation @_noLocks get { Self.capacity &- count &- provisional }
    }

    /// Sample `index` after the one to be played next; negative ones have been played, down to −``history``.
    subscript(index: Int) -> Int16 {
        @_noAllocation @_noLocks get {
            let position = Self.history &+ index
            return memory[position]
        }
    }

    /// All samples, played and waiting; the one to be played next has index ``history``.
    var samples: Span<Int16> {
        @_lifetime(borrow self) @_noAllocation @_noLocks get { memory.span(0..<(Self.history &+ count)) }
    }

    /// The waiting samples, to change in place.
    var waiting: MutableSpan<Int16> {
        @_lifetime(&self) @_noAllocation @_noLocks
        mutating get { memory.mutableSpan(Self.history..<(Self.history &+ count)) }
    }

    /// Room for new samples; call `append` with how many were written at its front.
    var room: MutableSpan<Int16> {
        @_lifetime(&self) @_noAllocation @_noLocks
        mutating get { memory.mutableSpan((Self.history &+ count &+ provisional)..<(Self.history &+ Self.capacity)) }
    }

    /// Adds the first `written` samples of `room` to the waiting ones, except `dropped` of them at the front.
    ///
    /// Provisional samples fade into the first that are kept.
    @_noAllocation @_noLocks
    mutating func append(_ written: Int, dropping dropped: Int = 0) {
        let kept = min(written &- dropped, space)
        guard kept > 0 else { return }
        let end = Self.history &+ count
        let source = end &+ provisional &+ dropped
        let overlap = min(min(provisional, kept), Self.fade)
        for index in 0..<overlap {
            let rise = Int32(index) &* 2 &+ 1
            let old = Int32(memory[end &+ index])
            let new = Int32(memory[source &+ index])
            memory[end &+ index] = Int16(truncatingIfNeeded: old &+ (new &- old) &* rise / Int32(2 &* overlap))
        }
        if provisional &+ dropped > 0 {
            memory.move(kept &- overlap, from: source &+ overlap, to: end &+ overlap)
        }
        count &+= kept
        provisional = 0
    }

    /// Takes the first `written` samples of `room` as provisional.
    @_noAllocation @_noLocks
    mutating func appendProvisional(_ written: Int) { provisional &+= min(max(written, 0), space) }

    /// Makes 5 ms of zeros provisional, in place of what was.
    @_noAllocation @_noLocks
    mutating func makeSilenceProvisional() {
        provisional = 0
        let zeros = min(Self.fade, space)
        memory.clear(Self.history &+ count, zeros)
        provisional = zeros
    }

    /// Scales the last `length` waiting samples by a gain that goes evenly from `start` to `end`.
    @_noAllocation @_noLocks
    mutating func scaleLast(_ length: Int, from start: Float, to end: Float) {
        let scaled = min(length, count)
        let first = Self.history &+ count &- scaled
        for index in 0..<scaled {
            let gain = start + (end - start) * Float(index) / Float(scaled)
            memory[first &+ index] = Int16(Float(memory[first &+ index]) * gain)
        }
    }

    /// Takes the first `settled` provisional samples as waiting.
    @_noAllocation @_noLocks
    mutating func settle(_ settled: Int) {
        let moved = min(settled, provisional)
        count &+= moved
        provisional &-= moved
    }

    /// Appends `samples` zeros, or as many as fit.
    @_noAllocation @_noLocks
    mutating func appendSilence(_ samples: Int) {
        let added = max(min(samples, space), 0)
        memory.clear(Self.history &+ count &+ provisional, added)
        append(added)
    }

    /// Moves waiting samples from `source` on to `target` on: closes a gap, or opens one whose content is up to you.
    @_noAllocation @_noLocks
    mutating func moveTail(from source: Int, to target: Int) {
        memory.move(count &+ provisional &- source, from: Self.history &+ source, to: Self.history &+ target)
        count = count &- source &+ target
    }

    /// Hands out samples to all of `output`; there must be enough.
    @_noAllocation @_noLocks
    mutating func take(into output: inout MutableSpan<Int16>) {
        let taken = output.count
        precondition(taken <= count, "enough samples wait")
        memory.copy(from: Self.history, to: &output)
        memory.move(Self.history &+ count &+ provisional &- taken, from: taken, to: 0)
        count &-= taken
    }

    // MARK: Decoding straight into the room behind the samples

    // Each returns the samples written, or a negative libopus error. (They only hand memory on; the performance checker takes
    // the end of a span for a release.)

    /// Decodes a packet; all but the first `dropped` samples wait.
    @_semantics("no_performance_analysis")
    mutating func decode(
        _ entry: PacketStore.Entry, in queue: borrowing PacketQueue, with decoders: inout FormatDecoders,
        dropping dropped: Int
    ) -> Int {
        var room = room
        let written =
            entry.isNoise
            ? decoders.decodeNoise(
                queue.payload(entry), of: entry.format, samples: Int(entry.samples), into: &room)
            : decoders.decode(queue.payload(entry), of: entry.format, into: &room)
        append(written, dropping: dropped)
        return written
    }

    /// Restores `count` samples lost before a packet; all but the first `dropped` samples wait.
    @_semantics("no_performance_analysis")
    mutating func restore(
        _ count: Int, from entry: PacketStore.Entry, in queue: borrowing PacketQueue,
        with decoders: inout FormatDecoders, dropping dropped: Int
    ) -> Int {
        var room = room
        let written = decoders.recoverFEC(
            fromNext: queue.payload(entry), of: entry.format, samples: count, into: &room)
        append(written, dropping: dropped)
        return written
    }

    /// Makes up `count` samples, for good; all but the first `dropped` samples wait.
    @_semantics("no_performance_analysis")
    mutating func conceal(_ count: Int, with decoders: inout FormatDecoders, dropping dropped: Int) -> Int {
        var room = room
        let written = decoders.conceal(samples: count, into: &room)
        append(written, dropping: dropped)
        return written
    }

    /// Makes up `count` samples, in case nothing better comes.
    @_semantics("no_performance_analysis")
    mutating func concealProvisionally(_ count: Int, with decoders: inout FormatDecoders) -> Int {
        var room = room
        let written = decoders.conceal(samples: count, into: &room)
        appendProvisional(written)
        return written
    }
}
