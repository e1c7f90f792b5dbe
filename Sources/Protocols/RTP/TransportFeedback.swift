import Core

/// Arrival times of the packets of a transport, left where they are in the packet
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
///
/// All is checked when it is made, so that stepping through it cannot end early.
public struct TransportFeedback: Equatable, Sendable {
    /// The status of one packet.
    public struct Status: Equatable, Sendable {
        /// The packet's number over the transport.
        public var sequenceNumber: UInt16
        /// When it arrived, on the receiver's own clock, in units of 250 µs; `nil` if it has not.
        public var arrivalQuarterMilliseconds: Int64?

        @_noAllocation @_noLocks
        init(sequenceNumber: UInt16, arrivalQuarterMilliseconds: Int64?) {
            self.sequenceNumber = sequenceNumber
            self.arrivalQuarterMilliseconds = arrivalQuarterMilliseconds
        }
    }

    /// Number of the first reported packet.
    public let baseSequenceNumber: UInt16
    /// Number of reported packets: 1…65 535.
    public let count: Int
    /// Counts the feedback packets, and wraps.
    public let feedbackCount: UInt8
    /// The receiver's clock, in units of 64 ms; 24 bits with a sign.
    public let referenceTime: Int32

    private let chunks: Range<Int>
    private let end: Int

    /// Reads what follows the two SSRCs.
    @_noAllocation @_noLocks
    init?(_ items: Range<Int>, in datagram: borrowing RawSpan) {
        guard items.count >= 8, items.upperBound <= datagram.byteCount,
            let base = datagram.uint16(at: items.lowerBound),
            let count = datagram.uint16(at: items.lowerBound + 2),
            let reference = datagram.uint32(at: items.lowerBound + 4), count > 0
        else { return nil }
        baseSequenceNumber = base
        self.count = Int(count)
        referenceTime = Int32(bitPattern: reference) >> 8
        feedbackCount = UInt8(truncatingIfNeeded: reference)

        var offset = items.lowerBound + 8
        var told = 0
        var deltaSize = 0
        while told < Int(count) {
            guard offset + 2 <= items.upperBound, let chunk = datagram.uint16(at: offset) else { return nil }
            let reader = Chunk(chunk)
            var index = 0
            if reader.isRun {
                // The symbol is the same for all, and there may be thousands.
                let run = min(reader.count, Int(count) - told)
                deltaSize += run * reader.deltaSize(0)
                told += run
            } else {
                while index < reader.count, told < Int(count) {
                    deltaSize += reader.deltaSize(index)
                    told += 1
                    index += 1
                }
            }
            offset += 2
        }
        guard offset + deltaSize <= items.upperBound else { return nil }
        chunks = (items.lowerBound + 8)..<offset
        end = items.upperBound
    }

    /// Sixteen bits that describe 7 or 14 packets, or a run of up to 8 191 (§3.1.3, §3.1.4).
    struct Chunk {
        private let bits: UInt16

        @_noAllocation @_noLocks
        init(_ bits: UInt16) { self.bits = bits }

        var isRun: Bool { @_noAllocation @_noLocks get { bits & 0x8000 == 0 } }

        var count: Int {
            @_noAllocation @_noLocks get { isRun ? Int(bits & 0x1FFF) : bits & 0x4000 == 0 ? 14 : 7 }
        }

        /// 0 not received, 1 with a small delta, 2 with a large one; 3 is reserved.
        @_noAllocation @_noLocks
        func symbol(_ index: Int) -> UInt16 {
            if isRun { return bits >> 13 & 3 }
            if bits & 0x4000 == 0 { return bits >> UInt16(truncatingIfNeeded: 13 - index) & 1 }
            return bits >> UInt16(truncatingIfNeeded: 12 - index * 2) & 3
        }

        @_noAllocation @_noLocks
        func deltaSize(_ index: Int) -> Int {
            switch symbol(index) {
            case 1: 1
            case 2: 2
            default: 0
            }
        }
    }

    /// Steps through the packets.
    public struct Cursor: Sendable {
        private let feedback: TransportFeedback
        private var told = 0
        private var chunkOffset: Int
        private var indexInChunk = 0
        private var deltaOffset: Int
        private var time: Int64

        /// Starts before the first packet.
        @_noAllocation @_noLocks
        public init(_ feedback: TransportFeedback) {
            self.feedback = feedback
            chunkOffset = feedback.chunks.lowerBound
            deltaOffset = feedback.chunks.upperBound
            time = Int64(feedback.referenceTime) * 256
        }

        /// The next packet, or `nil` after the last.
        ///
        /// - Parameter datagram: The same bytes that the packet was read from.
        @_noAllocation @_noLocks
        public mutating func next(in datagram: RawSpan) -> Status? {
            guard told < feedback.count, let bits = datagram.uint16(at: chunkOffset) else { return nil }
            let chunk = Chunk(bits)
            guard indexInChunk < chunk.count else {
                chunkOffset += 2
                indexInChunk = 0
                // An empty run describes nothing; the bytes after it were checked.
                return chunkOffset < feedback.chunks.upperBound ? next(in: datagram) : nil
            }
            let symbol = chunk.symbol(indexInChunk)
            let number = feedback.baseSequenceNumber &+ UInt16(truncatingIfNeeded: told)
            told += 1
            indexInChunk += 1
            var arrival: Int64?
            if symbol == 1, let delta = datagram.uint8(at: deltaOffset) {
                time += Int64(delta)
                deltaOffset += 1
                arrival = time
            } else if symbol == 2, let delta = datagram.uint16(at: deltaOffset) {
                time += Int64(Int16(bitPattern: delta))
                deltaOffset += 2
                arrival = time
            }
            return Status(sequenceNumber: number, arrivalQuarterMilliseconds: arrival)
        }
    }
}
