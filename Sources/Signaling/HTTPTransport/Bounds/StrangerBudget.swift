/// The bytes that all strangers, peers that a service has not admitted, may make a server hold together.
///
/// Past it the stranger that has held bytes for the longest time is dropped, and not the newcomer: a login is complete
/// a moment after its first byte, while an attacker that only occupies memory never completes. So logins succeed while
/// attackers fill the budget.
///
/// Capacity: ``limit`` bytes, so at most as many holders.
package struct StrangerBudget: Sendable {
    /// Who holds bytes: one request or message, numbered in the order in which they began.
    package struct Holder: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    package let limit: Int
    /// What all hold together.
    package private(set) var held = 0
    private var holdings: [UInt64: Int] = [:]
    private var next: UInt64 = 0
    /// No holder has a lower number.
    private var oldest: UInt64 = 0

    package init(limit: Int) { self.limit = limit }

    /// How many hold something.
    package var count: Int { holdings.count }

    /// Holds `bytes` more.
    ///
    /// - Parameter holder: Who holds them; `nil` for one who holds nothing so far, and is given a name.
    /// - Returns: Those that hold nothing from now on, and must go; `holder` may be one of them.
    package mutating func hold(_ bytes: Int, for holder: inout Holder?) -> [Holder] {
        // One that has lost what it held begins again, behind the others.
        if let known = holder, holdings[known.number] == nil { holder = nil }
        let name = holder ?? Holder(number: next)
        if holder == nil { next += 1 }
        holder = name
        holdings[name.number, default: 0] += bytes
        held += bytes
        var losers: [Holder] = []
        while held > limit, let loser = takeOldest() { losers.append(loser) }
        return losers
    }

    /// `holder` holds nothing any more.
    package mutating func release(_ holder: Holder) {
        held -= holdings.removeValue(forKey: holder.number) ?? 0
    }

    /// `holder` holds `bytes` less, and is no younger for it.
    package mutating func release(_ bytes: Int, of holder: Holder) {
        guard let own = holdings[holder.number] else { return }
        let released = min(bytes, own)
        holdings[holder.number] = own - released
        held -= released
    }

    private mutating func takeOldest() -> Holder? {
        guard !holdings.isEmpty else { return nil }
        while holdings[oldest] == nil { oldest += 1 }  // Each number is passed over once.
        let loser = Holder(number: oldest)
        release(loser)
        return loser
    }
}
