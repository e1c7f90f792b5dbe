public import Core

/// Records when packets of the transport arrive, and reports it to their sender
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01).
///
/// It keeps the last 512 numbers; numbers that fall out before they are reported are not reported. Allocates nothing.
public struct TransportFeedbackWriter: ~Copyable, Sendable {
    private let inPlace = InPlace()
    /// The SSRC of the reporter.
    public var sender: UInt32
    /// Arrival of number n at n mod 512, in nanoseconds; `Int64.min` if it has not arrived.
    private var arrivals = InlineArray<512, Int64>(repeating: .min)
    private var unwrapper = SequenceUnwrapper()
    /// The next number to report: the first expected one, whether it has arrived or not; `nil` before the first
    /// arrival.
    private var next: Int64?
    /// The first number that arrived: numbers before it do not count as lost.
    private var origin: Int64 = 0
    /// One past the highest number that has arrived.
    private var end: Int64 = 0
    private var feedbackCount: UInt8 = 0

    /// The most packets in one feedback, which then fits into 600 bytes.
    public static var maximumCount: Int { @_noAllocation @_noLocks get { 256 } }

    private static var slots: Int64 { @_noAllocation @_noLocks get { 512 } }
    /// How far back feedback starts for a late packet, in sequence numbers: 2.5 s of packets of 20 ms.
    private static var mostBack: Int64 { @_noAllocation @_noLocks get { 128 } }

    /// Makes a writer that has seen nothing.
    public init(sender: UInt32) { self.sender = sender }

    /// Numbers that are not reported yet.
    public var pending: Int {
        @_noAllocation @_noLocks get {
            guard let next else { return 0 }
            return Int(max(0, end - next))
        }
    }

    /// A packet with this number has arrived. Repetitions change nothing.
    ///
    /// If it was reported as lost, the next feedback begins with it, and reports all following ones again.
    @_noAllocation @_noLocks
    public mutating func received(_ sequenceNumber: UInt16, at now: Instant) {
        let number = unwrapper.peek(sequenceNumber)
        guard let first = next else {
            _ = unwrapper.unwrap(sequenceNumber)
            next = number
            origin = number
            end = number
            note(number, now)
            return
        }
        if number < first {
            let isKnown = number < origin || number <= end - Self.mostBack || arrivals[Self.slot(number)] != .min
            guard !isKnown else { return }
            next = number
        }
        if number >= end { _ = unwrapper.unwrap(sequenceNumber) }
        note(number, now)
    }

    @_noAllocation @_noLocks
    private mutating func note(_ number: Int64, _ now: Instant) {
        // Skipped numbers have not arrived, nor have the numbers whose slots they take.
        if number >= end {
            var skipped = max(end, number - Self.slots + 1)
            while skipped <= number {
                arrivals[Self.slot(skipped)] = .min
                skipped += 1
            }
            end = number + 1
            if let first = next { next = max(first, end - Self.slots) }
        }
        let slot = Self.slot(number)
        if arrivals[slot] == .min { arrivals[slot] = now.nanoseconds }
    }

    @_noAllocation @_noLocks
    private static func slot(_ number: Int64) -> Int { Int(number & (slots - 1)) }

    /// Writes the unreported numbers, as many as fit into one packet, which may be sent alone (RFC 5506). It begins
    /// with the first expected number, so that a loss between two feedbacks is reported by the second.
    ///
    /// - Parameters:
    ///   - media: The stream whose packets these are.
    ///   - datagram: Room for the packet; 600 bytes are enough.
    /// - Returns: Bytes written; 0 if there is nothing to report, or it does not fit. Then it is reported next time.
    @_noAllocation @_noLocks
    public mutating func write(media: UInt32, into datagram: inout MutableRawSpan) -> Int {
        guard let base = next, base < end else { return 0 }
        let reference = Self.quarters(firstArrival(from: base)) >> 8
        let last = lastToTell(from: base, reference: reference)
        let size = datagram.byteCount
        var writer = ByteWriter(datagram._mutatingExtracting(0..<size))
        writer.write(0x8F as UInt8)
        writer.write(205 as UInt8)
        writer.write(0 as UInt16)
        writer.write(sender)
        writer.write(media)
        writer.write(UInt16(truncatingIfNeeded: base))
        writer.write(UInt16(truncatingIfNeeded: last - base + 1))
        writer.writeUInt24(UInt32(truncatingIfNeeded: reference & 0xFF_FFFF))
        writer.write(feedbackCount)
        writeChunks(from: base, to: last, reference: reference, into: &writer)
        writeDeltas(from: base, to: last, reference: reference, into: &writer)
        // RTCP's own padding, with its count in the last byte, completes the 32-bit word (RFC 3550 §6.4.1).
        let padding = (4 - writer.count & 3) & 3
        var left = padding
        while left > 0 {
            writer.write(left == 1 ? UInt8(truncatingIfNeeded: padding) : 0)
            left -= 1
        }
        writer.patch(UInt16(truncatingIfNeeded: writer.count / 4 - 1), at: 2)
        if padding > 0 { writer.patch(0xAFCD, at: 0) }
        guard !writer.overflowed else { return 0 }
        feedbackCount &+= 1
        next = last + 1
        return writer.count
    }

    /// When the first packet from `base` on came that has arrived. The one at `end` − 1 has.
    @_noAllocation @_noLocks
    private func firstArrival(from base: Int64) -> Int64 {
        var number = base
        while number < end {
            let arrival = arrivals[Self.slot(number)]
            if arrival != .min { return arrival }
            number += 1
        }
        return 0
    }

    /// The last number that fits with `base`: not too many, and none whose time does not fit 16 bits.
    @_noAllocation @_noLocks
    private func lastToTell(from base: Int64, reference: Int64) -> Int64 {
        // If none of this many packets has arrived, all of them are reported as lost.
        let limit = min(end, base + Int64(Self.maximumCount))
        var last = limit - 1
        var hasArrival = false
        var number = base
        var time = reference << 8
        while number < limit {
            let arrival = arrivals[Self.slot(number)]
            if arrival != .min {
                let delta = Self.quarters(arrival) - time
                guard delta >= -32_768, delta <= 32_767 else { return hasArrival ? last : number - 1 }
                time += delta
                last = number
                hasArrival = true
            }
            number += 1
        }
        return last
    }

    @_noAllocation @_noLocks
    private static func quarters(_ nanoseconds: Int64) -> Int64 { nanoseconds / 250_000 }

    /// The symbol of a number, given the time of the one that arrived before it, which it moves on.
    @_noAllocation @_noLocks
    private func symbol(_ number: Int64, _ time: inout Int64) -> UInt16 {
        let arrival = arrivals[Self.slot(number)]
        guard arrival != .min else { return 0 }
        let delta = Self.quarters(arrival) - time
        time += delta
        return delta >= 0 && delta <= 255 ? 1 : 2
    }

    /// Runs of seven or more as runs, all else by sevens.
    @_noAllocation @_noLocks
    private func writeChunks(from base: Int64, to last: Int64, reference: Int64, into writer: inout ByteWriter) {
        var number = base
        var time = reference << 8
        while number <= last {
            var ahead = number
            var aheadTime = time
            let first = symbol(ahead, &aheadTime)
            ahead += 1
            while ahead <= last {
                var probe = aheadTime
                guard symbol(ahead, &probe) == first else { break }
                aheadTime = probe
                ahead += 1
            }
            if ahead - number >= 7 || ahead > last {
                writer.write(first << 13 | UInt16(truncatingIfNeeded: ahead - number))
                (number, time) = (ahead, aheadTime)
                continue
            }
            var bits: UInt16 = 0xC000
            var index: UInt16 = 0
            while index < 7, number <= last {
                bits |= symbol(number, &time) << (12 - index * 2)
                number += 1
                index += 1
            }
            writer.write(bits)
        }
    }

    @_noAllocation @_noLocks
    private func writeDeltas(from base: Int64, to last: Int64, reference: Int64, into writer: inout ByteWriter) {
        var number = base
        var time = reference << 8
        while number <= last {
            let before = time
            switch symbol(number, &time) {
            case 1: writer.write(UInt8(truncatingIfNeeded: time - before))
            case 2: writer.write(UInt16(truncatingIfNeeded: time - before))
            default: break
            }
            number += 1
        }
    }
}
