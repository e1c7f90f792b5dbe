/// Packets of ours that the peer has asked for and that were not dealt with, the first one first: 64 at most, and what is
/// asked for beyond is forgotten.
struct AskedPackets: Sendable {
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

/// Tells packets that are asked for the first time from those that were asked for already: over the last 64 numbers.
struct AskedBefore: Sendable {
    /// One more than the number at its place; 0 if there is none.
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
