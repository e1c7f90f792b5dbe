internal import Timekeeping

// Streams that change their codec while they are played: descriptions have agreed on another (RFC 3264 §8.3.2).
extension PlayoutBuffer {
    /// Lets the stream go on in another format, which `decoder` decodes. What waits, and packets of the format before that
    /// still come, are decoded as before; the change is heard where the first packet of the new format has its place.
    ///
    /// A decoder that is of no more use is left in the place of `decoder`, to be freed elsewhere. An empty one changes
    /// nothing.
    /// - Returns: The format's number, which its packets are inserted with.
    @_noAllocation @_noLocks
    public mutating func change(to decoder: inout StreamDecoder) -> UInt8 { decoders.change(to: &decoder) }

    /// The number of the newest format, which packets are of that are inserted without one.
    public var newestFormatNumber: UInt8 { @_noAllocation @_noLocks get { decoders.newestFormat } }

    /// A packet's place in the stream; nil if its format is known no more.
    @_noAllocation @_noLocks
    mutating func extend(
        _ sequenceNumber: UInt16, _ timestamp: UInt32, of format: UInt8, _ arrival: Instant
    ) -> (sequence: Int64, timestamp: Int64)? {
        if !stream.isNumbered(by: format), format == decoders.newestFormat {
            let goesOn = stream.change(
                to: format, samplesPerTick: decoders.samplesPerTick(of: format), at: sequenceNumber, timestamp,
                arrival: arrival, baseline: delay.baseline)
            if !goesOn { decoders.use(format) }
        }
        return stream.extend(sequenceNumber, timestamp, of: format)
    }
}
