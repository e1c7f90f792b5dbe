internal import Core

/// The last sent packets in their protected form, for retransmission to a peer that misses one (RFC 4585 §6.2.1).
///
/// The same bytes are sent again: protecting a number twice would use its key stream twice (RFC 3711 §9.1). Memory is
/// taken once, 16 kB.
@safe
struct SentPackets: ~Copyable, @unchecked Sendable {
    // Not shared: the owner is non-copyable, so it may move between threads.
    private let base: UnsafeMutableRawPointer
    private var packets = InlineArray<32, Packet>(repeating: Packet())
    /// Halves of packets that may be sent again.
    private var credit = SentPackets.mostCredit

    private struct Packet: BitwiseCopyable {
        var number: UInt16 = 0
        /// 0 if the slot is empty.
        var length: Int32 = 0
        var times: UInt8 = 0
        var resentAt: Int64 = .min
    }

    /// Number of kept packets: 640 ms with packets of 20 ms. Older ones would arrive too late in any case.
    private static var capacity: Int { @_noAllocation @_noLocks get { 32 } }
    /// The longest packet that is kept; one of 60 ms at 48 kbit/s, with its header, has some 400 bytes.
    private static var blockSize: Int { @_noAllocation @_noLocks get { 512 } }
    /// Packets sent again add half to what is sent at most, after a burst of 16.
    static var mostCredit: Int { @_noAllocation @_noLocks get { 32 } }
    static var mostTimes: UInt8 { @_noAllocation @_noLocks get { 2 } }
    /// The least time between two copies while no round trip is known.
    private static var leastGap: Int64 { @_noAllocation @_noLocks get { 10_000_000 } }

    init() {
        let bytes = SentPackets.capacity * SentPackets.blockSize
        unsafe base = .allocate(byteCount: bytes, alignment: 16)
        // All of it is soon used, so that it had better be there from the start.
        unsafe base.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
    }

    deinit { unsafe base.deallocate() }

    /// Keeps the first `length` bytes of a packet that goes out.
    @_noAllocation @_noLocks
    mutating func keep(_ packet: borrowing MutableRawSpan, length: Int, number: UInt16) {
        credit = min(credit + 1, Self.mostCredit)
        let index = Int(number) & (Self.capacity - 1)
        var kept = Packet()
        if length <= Self.blockSize {
            kept.number = number
            kept.length = Int32(truncatingIfNeeded: length)
            store(packet, length, at: index)
        }
        packets[index] = kept
    }

    /// Discards all packets: they are not needed any more.
    @_noAllocation @_noLocks
    mutating func removeAll() {
        for index in 0..<Self.capacity { packets[index] = Packet() }
    }

    /// Writes a packet that is to be sent again at the front of `packet`.
    ///
    /// - Parameter roundTrip: A copy sent less than that ago may still be on its way.
    /// - Returns: Its length; 0 if it is not kept any more, is on its way, was sent often enough, or too much is
    ///   requested.
    @_noAllocation @_noLocks
    mutating func write(_ number: UInt16, roundTrip: Int64?, at now: Instant, into packet: inout MutableRawSpan) -> Int
    {
        let index = Int(number) & (Self.capacity - 1)
        let kept = packets[index]
        let length = Int(kept.length)
        guard length > 0, kept.number == number, packet.byteCount >= length, credit >= 2, kept.times < Self.mostTimes
        else { return 0 }
        if kept.times > 0, now.nanoseconds - kept.resentAt < max(roundTrip ?? 0, Self.leastGap) { return 0 }
        packets[index].times += 1
        packets[index].resentAt = now.nanoseconds
        credit -= 2
        load(index, length, into: &packet)
        return length
    }

    // The two below copy memory, which neither allocates nor locks.

    @_semantics("no_performance_analysis") @inline(__always)
    private func store(_ packet: borrowing MutableRawSpan, _ length: Int, at index: Int) {
        let target = unsafe base + index * Self.blockSize
        unsafe packet.withUnsafeBytes { source in
            if let bytes = source.baseAddress { unsafe target.copyMemory(from: bytes, byteCount: length) }
        }
    }

    @_semantics("no_performance_analysis") @inline(__always)
    private func load(_ index: Int, _ length: Int, into packet: inout MutableRawSpan) {
        let source = unsafe base + index * Self.blockSize
        unsafe packet.withUnsafeMutableBytes { target in
            if let bytes = target.baseAddress { unsafe bytes.copyMemory(from: source, byteCount: length) }
        }
    }
}
