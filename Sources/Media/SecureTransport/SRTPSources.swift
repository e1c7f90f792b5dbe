internal import Core

/// The SSRCs that one key of the peer's receives with: a few at a time, however many the peer sends.
///
/// libsrtp2 keeps about 1 KB for each SSRC for the life of a context, and looks an SSRC up one by one. So a context keeps
/// ``capacity`` of them, and the one that was silent longest gives way to a new one: never the stream that is heard, and one that
/// sends steadily only if all others do, because many new SSRCs may come between two of its packets. What is removed takes its
/// replay window along, so an SSRC that was removed is refused for as long as the key lasts: otherwise its packets could be
/// replayed (RFC 3711 §3.3.2). New SSRCs need credit, which packets of known ones earn, so that making and removing them is rare
/// however many the peer sends.
@safe
struct SRTPSources: ~Copyable {
    /// SSRCs at a time: media, its RTCP, and the ones before a change or two.
    static var capacity: Int { @_noAllocation @_noLocks get { 8 } }
    /// New SSRCs at once.
    static var mostAtOnce: Int { @_noAllocation @_noLocks get { 16 } }
    /// Packets of known SSRCs that earn one new SSRC: 0.3 s of sound.
    static var packetsForNew: Int { @_noAllocation @_noLocks get { 16 } }
    /// Packets by which an SSRC has shown that it is a stream.
    private static var steadyPackets: UInt32 { @_noAllocation @_noLocks get { 16 } }
    /// Packets of others, between two of its own, after which a stream counts as ended: some 5 s of sound.
    private static var steadyGap: UInt64 { @_noAllocation @_noLocks get { 256 } }

    private struct Source: BitwiseCopyable {
        var ssrc: UInt32 = 0
        /// Its packets, as far as they are counted.
        var received: UInt32 = 0
        var usedAt: UInt64 = 0
    }

    private var sources = InlineArray<8, Source>(repeating: Source())
    /// SSRCs that it has now.
    private(set) var count = 0
    private var packets: UInt64 = 0
    private var credit: Int
    /// A Bloom filter of removed SSRCs; 1 KB. It never forgets one. Of SSRCs that were never there it refuses 1 in
    /// 200,000 after 100 removed ones, and 1 in 100 after 800.
    private let removed: UnsafeMutablePointer<UInt64>

    private static var filterWords: Int { @_noAllocation @_noLocks get { 128 } }

    init() {
        credit = Self.mostAtOnce * Self.packetsForNew
        unsafe removed = .allocate(capacity: Self.filterWords)
        unsafe removed.initialize(repeating: 0, count: Self.filterWords)
    }

    deinit { unsafe removed.deallocate() }

    /// What a packet's SSRC is, before its authentication.
    enum Verdict: BitwiseCopyable {
        case known(Int)
        case new
        /// It was there before, and its replay window is gone.
        case removed
        /// The peer has used up its new SSRCs.
        case tooMany
    }

    @_noAllocation @_noLocks
    func judge(_ ssrc: UInt32) -> Verdict {
        for index in 0..<count where sources[index].ssrc == ssrc { return .known(index) }
        if isRemoved(ssrc) { return .removed }
        return credit >= Self.packetsForNew ? .new : .tooMany
    }

    /// A packet of the known SSRC at `index` was authenticated.
    @_noAllocation @_noLocks
    mutating func note(known index: Int) {
        packets &+= 1
        sources[index].usedAt = packets
        if sources[index].received < Self.steadyPackets { sources[index].received += 1 }
        credit = min(credit + 1, Self.mostAtOnce * Self.packetsForNew)
    }

    /// The first packet of a new SSRC was authenticated.
    ///
    /// - Parameter heard: The SSRC of the stream that is heard, which stays.
    /// - Returns: The SSRC that gives way to it, and is to be removed; nil if there was room.
    @_noAllocation @_noLocks
    mutating func add(_ ssrc: UInt32, keeping heard: UInt32?) -> UInt32? {
        packets &+= 1
        credit -= Self.packetsForNew
        let source = Source(ssrc: ssrc, received: 1, usedAt: packets)
        guard count == Self.capacity else {
            sources[count] = source
            count += 1
            return nil
        }
        var oldest = sources[0].ssrc == heard ? 1 : 0
        for index in 1..<count where sources[index].ssrc != heard && givesWay(index, before: oldest) { oldest = index }
        let former = sources[oldest].ssrc
        sources[oldest] = source
        markRemoved(former)
        return former
    }

    @_noAllocation @_noLocks
    private func givesWay(_ index: Int, before other: Int) -> Bool {
        let (isSteady, isOtherSteady) = (isSteady(index), isSteady(other))
        return isSteady == isOtherSteady ? sources[index].usedAt < sources[other].usedAt : isOtherSteady
    }

    /// Whether a stream is sent with it at present.
    @_noAllocation @_noLocks
    private func isSteady(_ index: Int) -> Bool {
        sources[index].received >= Self.steadyPackets && packets &- sources[index].usedAt < Self.steadyGap
    }

    @_noAllocation @_noLocks
    private func isRemoved(_ ssrc: UInt32) -> Bool {
        let mixed = Self.mix(ssrc)
        for number in 0..<Self.hashes {
            let bit = Self.bit(mixed, number)
            if unsafe removed[bit >> 6] & (1 << UInt64(bit & 63)) == 0 { return false }
        }
        return true
    }

    @_noAllocation @_noLocks
    private func markRemoved(_ ssrc: UInt32) {
        let mixed = Self.mix(ssrc)
        for number in 0..<Self.hashes {
            let bit = Self.bit(mixed, number)
            unsafe removed[bit >> 6] |= 1 << UInt64(bit & 63)
        }
    }

    private static var hashes: Int { @_noAllocation @_noLocks get { 4 } }

    /// Spreads an SSRC over 64 bits.
    @_noAllocation @_noLocks
    private static func mix(_ ssrc: UInt32) -> UInt64 { SplitMix64.number(UInt64(ssrc) &+ 1, of: 0) }

    /// One of the filter's 8,192 bits: 13 bits of the mixture for each.
    @_noAllocation @_noLocks
    private static func bit(_ mixed: UInt64, _ number: Int) -> Int {
        Int(truncatingIfNeeded: mixed >> UInt64(number * 16)) & 0x1FFF
    }
}
