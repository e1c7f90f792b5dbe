internal import RTP
package import Core

/// One input of a call's jitter buffer, on its way from the media thread to the file thread.
///
/// The jitter buffer has no other input, so the same inputs in the same order produce the same sound.
package struct CaptureRecord: BitwiseCopyable {
    enum Kind: BitwiseCopyable {
        /// A packet of sound, of comfort noise, or an earlier frame that a later packet repeats.
        case packet, noise, copy
        /// A packet that holds no sound.
        case passOver
        /// Sound was taken: `count` samples, with which the checksum of all became `value`.
        case pull
        /// Pulls come earlier by `value` nanoseconds (`advance`), or may be delayed by `value` nanoseconds (`patience`).
        case advance, patience
        /// How long a packet that is asked for again takes; `value` is negative if none is asked for.
        case repair
        /// The packet `value` was asked for again.
        case request
        /// Later packets may be of another codec, the one of this number.
        case change
    }

    /// The longest payload that the jitter buffer takes.
    static var payloadCapacity: Int { @_noAllocation @_noLocks get { 1_280 } }

    let kind: Kind
    package let at: Instant
    var value: Int64 = 0
    var count: Int32 = 0
    /// Records before this one that found no room.
    var lostBefore: UInt32 = 0
    // Of a packet.
    var payloadType: UInt8 = 0
    /// Counted by changes; the one that the packet was inserted with.
    var format: UInt8 = 0
    var marker = false
    var sequenceNumber: UInt16 = 0
    var timestamp: UInt32 = 0
    var ssrc: UInt32 = 0
    /// Of a copy: by how many ticks it is older.
    var timestampOffset: UInt32 = 0
    var payloadBytes: Int32 = 0
    var payload = InlineArray<1_280, UInt8>(repeating: 0)

    @_noAllocation @_noLocks
    init(_ kind: Kind, at: Instant) {
        self.kind = kind
        self.at = at
    }

    /// A packet with only the fixed part of its header: no contributing sources, no extensions, no padding.
    ///
    /// Looks at a view of memory in place, which neither allocates nor locks; see the end of MediaCall.swift.
    /// - Returns: nil if the payload is longer than the jitter buffer takes.
    @_semantics("no_performance_analysis") @inline(__always)
    init?(_ kind: Kind, _ bytes: RawSpan, _ header: RTPHeader, format: UInt8, arrival: Instant) {
        guard bytes.byteCount <= Self.payloadCapacity else { return nil }
        self.init(kind, at: arrival)
        payloadType = header.payloadType
        self.format = format
        marker = header.marker
        sequenceNumber = header.sequenceNumber
        timestamp = header.timestamp
        ssrc = header.ssrc
        payloadBytes = Int32(truncatingIfNeeded: bytes.byteCount)
        for index in 0..<bytes.byteCount {
            payload[index] = unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)
        }
    }
}
