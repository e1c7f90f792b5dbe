import Core

/// The last four sender reports sent, so that a peer's report can be matched to the time at which the one it names was sent.
struct SentReports: Sendable {
    private var middles = InlineArray<4, UInt32>(repeating: 0)
    private var times = InlineArray<4, Int64>(repeating: 0)
    private var next = 0
    /// One of our reports was sent.
    private(set) var hasAny = false

    @_noAllocation @_noLocks
    init() {}

    /// - Parameter middle: ``NTPTimestamp/middle`` of the moment of sending.
    @_noAllocation @_noLocks
    mutating func note(_ middle: UInt32, isSenderReport: Bool, at now: Instant) {
        hasAny = true
        guard isSenderReport else { return }
        middles[next] = middle
        times[next] = now.nanoseconds
        next = (next + 1) & 3
    }

    /// When the report with this nonzero `middle` was sent; `nil` if there was none, or it is too old.
    @_noAllocation @_noLocks
    func time(of middle: UInt32) -> Instant? {
        var index = 0
        while index < 4 {
            if middles[index] == middle { return Instant(nanoseconds: times[index]) }
            index += 1
        }
        return nil
    }
}

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
