internal import OpusCodec

/// Decoding straight into the room behind the waiting samples. Each returns the samples it appended, or a negative
/// libopus error. (They only hand memory on; the performance checker takes the end of a span for a release.)
extension SampleBuffer {
    @_semantics("no_performance_analysis")
    mutating func decode(
        _ entry: PacketStore.Entry, in store: borrowing PacketStore, with decoder: inout OpusDecoder
    ) -> Int {
        var room = room
        let written = decoder.decode(store.payload(entry), into: &room)
        append(written)
        return written
    }

    @_semantics("no_performance_analysis")
    mutating func restore(
        _ count: Int, from entry: PacketStore.Entry, in store: borrowing PacketStore,
        with decoder: inout OpusDecoder
    ) -> Int {
        var room = room
        let written = decoder.recoverFEC(fromNext: store.payload(entry), samples: count, into: &room)
        append(written)
        return written
    }

    @_semantics("no_performance_analysis")
    mutating func conceal(_ count: Int, with decoder: inout OpusDecoder) -> Int {
        var room = room
        let written = decoder.conceal(samples: count, into: &room)
        append(written)
        return written
    }
}
