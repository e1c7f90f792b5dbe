internal import Core

/// Our requests that wait for a response, and accepted INVITEs, for 2xx that are repeated or come from other forks.
struct RequestLedger: Sendable {
    private var uses: [UInt64: RequestUse] = [:]
    /// Accepted INVITEs in the order of their end.
    private var accepted: [(until: Instant, number: UInt64)] = []
    private var count: UInt64 = 0

    subscript(number: UInt64) -> RequestUse? { uses[number] }

    mutating func add(_ use: RequestUse) -> UInt64 {
        count += 1
        uses[count] = use
        return count
    }

    @discardableResult
    mutating func remove(_ number: UInt64) -> RequestUse? { uses.removeValue(forKey: number) }

    /// The INVITE was accepted by the fork with that tag, and this is the ACK.
    mutating func accept(_ number: UInt64, by tag: String, ack: SIPRequest, until: Instant) {
        guard let use = uses[number] else { return }
        if use.acks.isEmpty { accepted.append((until, number)) }
        uses[number]?.acks[tag] = ack
    }

    /// Forgets accepted INVITEs whose time is up.
    mutating func forgetOld(at now: Instant) {
        while let first = accepted.first, first.until <= now { uses[accepted.removeFirst().number] = nil }
    }
}
