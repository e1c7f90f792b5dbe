internal import AudioKit
internal import Core

/// What was received of a stream and has not been played: packets, and the numbers of those that hold no sound.
struct PacketQueue: ~Copyable {
    private var store = PacketStore()
    /// Packets that hold no sound, and those of them that hold nothing at all.
    private var soundless = PacketNumbers()
    private var padding = PacketNumbers()

    /// Packets with sound that wait.
    var count: Int {
        @_noAllocation @_noLocks get { store.count }
    }

    @_noAllocation @_noLocks
    func entry(_ sequence: Int64) -> PacketStore.Entry? { store.entry(sequence) }

    /// The packet with the lowest number from `sequence` on.
    @_noAllocation @_noLocks
    func first(from sequence: Int64) -> PacketStore.Entry? { store.first(from: sequence) }

    /// The lowest number that can wait beside the highest that does; nil if none has come.
    var firstStorable: Int64? {
        @_noAllocation @_noLocks get { store.firstStorable }
    }

    /// Whether a packet with sound waits.
    @_noAllocation @_noLocks
    func contains(_ sequence: Int64) -> Bool { store.contains(sequence) }

    /// Whether a packet came that holds no sound.
    @_noAllocation @_noLocks
    func isSoundless(_ sequence: Int64) -> Bool { soundless.contains(sequence) }

    /// Whether a packet came that holds nothing at all.
    @_noAllocation @_noLocks
    func isPadding(_ sequence: Int64) -> Bool { padding.contains(sequence) }

    /// How many packets from `start` to before `end`, none of which waits, hold sound.
    @_noAllocation @_noLocks
    func missing(from start: Int64, to end: Int64) -> Int {
        guard end > start else { return 0 }
        return max(Int(end &- start) &- soundless.count(from: start, to: end), 0)
    }

    /// The payload of `entry`, which must wait.
    @_lifetime(borrow self) @_noAllocation @_noLocks
    func payload(_ entry: PacketStore.Entry) -> RawSpan { store.payload(entry) }

    /// As ``PacketStore/insert(_:payload:)``.
    @_noAllocation @_noLocks
    mutating func insert(_ entry: PacketStore.Entry, payload: RawSpan) -> Bool { store.insert(entry, payload: payload) }

    /// Takes note of a packet that holds no sound.
    ///
    /// - Parameter isPadding: There is nothing in it: the sender is not silent in its place.
    @_noAllocation @_noLocks
    mutating func insertSoundless(_ sequence: Int64, isPadding: Bool) {
        soundless.insert(sequence)
        if isPadding { padding.insert(sequence) }
    }

    @_noAllocation @_noLocks
    mutating func remove(_ sequence: Int64) { store.remove(sequence) }

    @_noAllocation @_noLocks
    mutating func removeAll() {
        store.removeAll()
        soundless = PacketNumbers()
        padding = PacketNumbers()
    }

    // MARK: Sound without a gap

    /// Samples in the packets from `sequence` on, up to the first that is not there: no more than policies ask about.
    @_noAllocation @_noLocks
    func readySamples(from sequence: Int64) -> Int {
        var total = 0
        var next = sequence
        while let entry = store.entry(next), total < 2 &* OpusPacket.maximumSamples {
            total &+= Int(entry.samples)
            next &+= 1
        }
        return total
    }

    /// The sound that is here without a gap, up to `wanted` samples; the packet after it; whether the sender is silent then.
    /// Padding is no gap.
    ///
    /// - Parameter decoded: Samples before packet `sequence`.
    @_noAllocation @_noLocks
    func soundAhead(
        from sequence: Int64, decoded: Int, wanted: Int
    ) -> (samples: Int, next: Int64, isDiscontinuous: Bool) {
        var ahead = (samples: decoded, next: sequence, isDiscontinuous: false)
        while ahead.samples < wanted {
            if let entry = store.entry(ahead.next) {
                ahead.samples &+= Int(entry.samples)
                ahead.isDiscontinuous = entry.isDiscontinuous
            } else if !padding.contains(ahead.next) {
                break
            }
            ahead.next &+= 1
        }
        return ahead
    }
}

/// Numbers of packets of one sort, such as those that hold no sound: the newest, over as many as the packet store holds.
struct PacketNumbers: ~Copyable {
    private let inPlace = InPlace()
    // The lower half of each number: others that share it are 2³² packets away. An entry that was never written belongs
    // to no slot.
    private var numbers = InlineArray<128, UInt32>(repeating: 1)

    @_noAllocation @_noLocks
    init() { numbers[1] = 0 }

    @_noAllocation @_noLocks
    mutating func insert(_ sequence: Int64) { numbers[Int(sequence & 127)] = UInt32(truncatingIfNeeded: sequence) }

    @_noAllocation @_noLocks
    func contains(_ sequence: Int64) -> Bool {
        numbers[Int(sequence & 127)] == UInt32(truncatingIfNeeded: sequence)
    }

    /// How many of the numbers from `start` to before `end` are among them.
    @_noAllocation @_noLocks
    func count(from start: Int64, to end: Int64) -> Int {
        var sequence = max(start, end &- 128)
        var found = 0
        while sequence < end {
            if contains(sequence) { found &+= 1 }
            sequence &+= 1
        }
        return found
    }
}
