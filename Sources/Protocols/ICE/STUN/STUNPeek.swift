internal import Core

/// A quick look at a datagram, for the thread that demultiplexes protocols. Allocates nothing and checks no integrity.
public enum STUNPeek {
    /// Whether the datagram has the shape of a STUN message: leading zero bits, cookie and length (RFC 7983 §7).
    @_noAllocation @_noLocks
    public static func looksLikeSTUN(_ datagram: borrowing RawSpan) -> Bool {
        guard let type = datagram.uint16(at: 0), type & 0xC000 == 0,
            let length = datagram.uint16(at: 2), Int(length) + 20 == datagram.byteCount, length & 3 == 0,
            datagram.uint32(at: 4) == 0x2112_A442
        else { return false }
        return true
    }

    /// Where, in a binding request, the receiver's user name fragment lies: USERNAME up to its colon (RFC 8445 §7.2.2).
    ///
    /// - Returns: nil if the datagram is something else or has no such name.
    @_noAllocation @_noLocks
    public static func receiverFragment(_ datagram: borrowing RawSpan) -> Range<Int>? {
        guard looksLikeSTUN(datagram), datagram.uint16(at: 0) == 1, let name = attribute(0x0006, of: datagram) else {
            return nil
        }
        for place in name where datagram.uint8(at: place) == 0x3A { return name.lowerBound..<place }
        return nil
    }

    /// Where, in a TURN server's Data indication, that lies which came from a peer: DATA (RFC 8656 §11.4).
    ///
    /// - Returns: nil if the datagram is something else or has no such attribute.
    @_noAllocation @_noLocks
    public static func relayedData(_ datagram: borrowing RawSpan) -> Range<Int>? {
        guard looksLikeSTUN(datagram), datagram.uint16(at: 0) == 0x0017 else { return nil }
        return attribute(0x0013, of: datagram)
    }

    /// Where the first attribute of this type has its value.
    @_noAllocation @_noLocks
    private static func attribute(_ wanted: UInt16, of datagram: borrowing RawSpan) -> Range<Int>? {
        var offset = 20
        // As many attributes as a message may have (`STUNMessage.maximumAttributes`).
        for _ in 0..<64 {
            guard let type = datagram.uint16(at: offset), let length = datagram.uint16(at: offset + 2) else {
                return nil
            }
            let start = offset + 4
            let end = start + Int(length)
            guard end <= datagram.byteCount else { return nil }
            if type == wanted { return start..<end }
            offset = end + (0 &- Int(length)) & 3
        }
        return nil
    }

    /// The transaction ID of a datagram that looks like STUN, which identifies the request that it answers.
    @_noAllocation @_noLocks
    public static func transactionID(_ datagram: borrowing RawSpan) -> TransactionID? {
        guard let high = datagram.uint64(at: 8), let low = datagram.uint32(at: 16) else { return nil }
        return TransactionID(high: high, low: low)
    }
}
