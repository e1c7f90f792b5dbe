/// Our packets that the peer has requested and that are not yet handled, in order: at most 64; further requests are
/// dropped.
struct RequestedPackets: Sendable {
    private var numbers = InlineArray<64, UInt16>(repeating: 0)
    private var first = 0
    private var end = 0

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    mutating func append(_ number: UInt16) {
        guard end < 64 else { return }
        numbers[end] = number
        end += 1
    }

    @_noAllocation @_noLocks
    mutating func take() -> UInt16? {
        guard first < end else { return nil }
        let number = numbers[first]
        first += 1
        if first == end { (first, end) = (0, 0) }
        return number
    }
}

/// Distinguishes first requests for a packet from repeated ones, over the last 64 sequence numbers.
struct RequestHistory: Sendable {
    /// One more than the number in each slot; 0 if the slot is empty.
    private var numbers = InlineArray<64, Int32>(repeating: 0)

    @_noAllocation @_noLocks
    init() {}

    /// Notes a number.
    ///
    /// - Returns: Whether it is new.
    @_noAllocation @_noLocks
    mutating func insert(_ number: UInt16) -> Bool {
        let place = Int(number & 63)
        guard numbers[place] != Int32(number) + 1 else { return false }
        numbers[place] = Int32(number) + 1
        return true
    }
}
