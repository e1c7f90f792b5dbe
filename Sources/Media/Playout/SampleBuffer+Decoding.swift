/// Decoding straight into the room behind the samples. Each returns the samples written, or a negative libopus error.
/// (They only hand memory on; the performance checker takes the end of a span for a release.)
extension SampleBuffer {
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
