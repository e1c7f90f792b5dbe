/// Decoded samples that wait to be played, after those played last, which time-stretching looks back on.
struct SampleBuffer: ~Copyable {
    /// Played samples kept: the longest pitch period (15 ms) and what is compared around it (20 ms).
    static var history: Int { @_noAllocation @_noLocks get { 1_680 } }
    /// Waiting samples it can hold: the longest packet (120 ms), the longest pull (60 ms), and room to stretch.
    static var capacity: Int { @_noAllocation @_noLocks get { 11_520 } }

    private var memory = SampleMemory(count: SampleBuffer.history + SampleBuffer.capacity)
    /// Samples waiting to be played.
    private(set) var count = 0

    /// Samples that still fit.
    var space: Int {
        @_noAllocation @_noLocks get { Self.capacity &- count }
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
        mutating get { memory.mutableSpan((Self.history &+ count)..<(Self.history &+ Self.capacity)) }
    }

    /// Takes the first `written` samples of `room` as waiting.
    @_noAllocation @_noLocks
    mutating func append(_ written: Int) { count = min(count &+ max(written, 0), Self.capacity) }

    /// Appends `samples` zeros, or as many as fit.
    @_noAllocation @_noLocks
    mutating func appendSilence(_ samples: Int) {
        let added = max(min(samples, space), 0)
        memory.clear(Self.history &+ count, added)
        append(added)
    }

    /// Drops the last `samples` waiting samples.
    @_noAllocation @_noLocks
    mutating func removeLast(_ samples: Int) { count = max(count &- samples, 0) }

    /// Moves waiting samples from `source` on to `target` on: closes a gap, or opens one whose content is up to you.
    @_noAllocation @_noLocks
    mutating func moveTail(from source: Int, to target: Int) {
        memory.move(count &- source, from: Self.history &+ source, to: Self.history &+ target)
        count = count &- source &+ target
    }

    /// Hands out samples to all of `output`; there must be enough.
    @_noAllocation @_noLocks
    mutating func take(into output: inout MutableSpan<Int16>) {
        let taken = output.count
        precondition(taken <= count, "enough samples wait")
        for index in 0..<taken { output[index] = self[index] }
        memory.move(Self.history &+ count &- taken, from: taken, to: 0)
        count &-= taken
    }
}
