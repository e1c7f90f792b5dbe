internal import Realtime

/// Samples that wait for their tick within one thread, in memory that is taken once.
struct SampleQueue: ~Copyable, Sendable {
    private var memory: SampleBuffer
    private let mask: Int
    private var written = 0
    private var taken = 0

    /// - Parameter capacity: The largest number of samples; a power of two.
    init(capacity: Int) {
        precondition(capacity > 0 && capacity & (capacity - 1) == 0, "a queue's capacity is a power of two")
        memory = SampleBuffer(capacity: capacity)
        mask = capacity - 1
    }

    /// Samples that wait.
    var count: Int { @_noAllocation @_noLocks get { written - taken } }

    /// Adds samples, and drops the oldest for which there is no room.
    @_noAllocation @_noLocks
    mutating func append(_ samples: Span<Int16>) {
        for index in 0..<samples.count { memory[(written + index) & mask] = samples[index] }
        written += samples.count
        if count > mask + 1 { taken = written - mask - 1 }
    }

    /// Takes as many as there are, up to the room in `samples`, and leaves the rest of it as it was.
    ///
    /// - Returns: How many were taken.
    @_noAllocation @_noLocks
    mutating func take(into samples: inout MutableSpan<Int16>) -> Int {
        let number = min(samples.count, count)
        for index in 0..<number { samples[index] = memory[(taken + index) & mask] }
        taken += number
        return number
    }

    /// Drops the oldest, so that no more than `most` wait.
    ///
    /// - Returns: How many were dropped.
    @_noAllocation @_noLocks
    mutating func keep(newest most: Int) -> Int {
        let surplus = count - most
        guard surplus > 0 else { return 0 }
        taken += surplus
        return surplus
    }
}
