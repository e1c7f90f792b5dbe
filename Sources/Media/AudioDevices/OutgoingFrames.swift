internal import Realtime
internal import Core

/// Samples made for a card that it has not taken yet.
struct OutgoingFrames: ~Copyable {
    private var samples = SampleBuffer(capacity: 8_192)
    private var start = 0
    private var end = 0

    /// How many wait.
    var count: Int { end - start }

    /// Takes memory for a card's whole buffer.
    mutating func reserve(_ capacity: Int) {
        removeAll()
        if samples.capacity < capacity { samples = SampleBuffer(capacity: capacity) }
    }

    mutating func removeAll() {
        start = 0
        end = 0
    }

    /// Adds what the worker has given; see ``PlaybackLine/fill(_:from:want:must:at:)``.
    mutating func add(from line: inout PlaybackLine, want: Int, must: Int, at now: Instant) {
        compact()
        end += Self.fill(&samples, from: end, of: &line, want: want, must: must, at: now)
    }

    /// Adds `count` frames from `ring`, and silence for those that it does not have.
    ///
    /// - Returns: How many it had.
    mutating func add(from ring: inout AudioRing.Consumer, count: Int) -> Int {
        compact()
        let last = min(end + max(0, count), samples.capacity)
        let had = Self.read(&samples, from: end, to: last, of: &ring)
        end = last
        return had
    }

    /// Adds silence.
    mutating func add(silence count: Int) {
        compact()
        let last = min(end + max(0, count), samples.capacity)
        Self.clear(&samples, from: end, to: last)
        end = last
    }

    /// Hands the first `most` of them to the card, in as many pieces as it likes.
    ///
    /// - Returns: How many it took, or a negative errno.
    mutating func write<Card: SoundCard & ~Copyable>(to card: inout Card, most: Int = .max, again: Int) -> Int {
        var total = 0
        let end = start + min(most, end - start)
        while start < end {
            let taken = card.write(samples, from: start, to: end)
            if taken == again || taken == 0 { break }
            if taken < 0 { return taken }
            start += taken
            total += taken
        }
        return total
    }

    /// Has the echo canceller remember the last `count` that were added.
    func tell(_ reference: inout EchoReference, newest count: Int) {
        reference.append(samples.samples(end), from: end - count, to: end)
    }

    /// Moves what waits to the front.
    private mutating func compact() {
        guard start > 0 else { return }
        Self.move(&samples, from: start, to: end)
        end -= start
        start = 0
    }

    private static func fill(
        _ samples: inout SampleBuffer, from start: Int, of line: inout PlaybackLine, want: Int, must: Int,
        at now: Instant
    ) -> Int {
        var space = samples.mutableSamples(samples.capacity)
        return line.fill(&space, from: start, want: want, must: must, at: now)
    }

    private static func read(
        _ samples: inout SampleBuffer, from start: Int, to end: Int, of ring: inout AudioRing.Consumer
    ) -> Int {
        var space = samples.mutableSamples(end)
        guard start < end else { return 0 }
        var room = space._mutatingExtracting(start..<end)
        let had = ring.read(into: &room)
        for index in had..<end - start { room[index] = 0 }
        return had
    }

    private static func clear(_ samples: inout SampleBuffer, from start: Int, to end: Int) {
        var space = samples.mutableSamples(end)
        for index in start..<end { space[index] = 0 }
    }

    private static func move(_ samples: inout SampleBuffer, from start: Int, to end: Int) {
        var space = samples.mutableSamples(end)
        for index in start..<end { space[index - start] = space[index] }
    }
}
