internal import Core

/// The connections over which bots' servers send requests, few at a time. One with a right password stays; of the others, those of the
/// address that has most make room for a new one, the oldest first, so that idle connections do not keep the bot's server out.
///
/// Those of an address that is remembered for a right password make room for another such address only, so that strangers who connect
/// without pause do not end the connections of a bot's server before its requests arrive.
struct RequestConnections {
    typealias ID = ObjectIdentifier

    enum Admission: Equatable {
        case taken
        /// Another one is to be closed for it.
        case takenFor(ID)
        case refused
    }

    /// At a time: bots make one for each request.
    static let most = 64
    /// Of one address, as all bots behind a proxy have one.
    static let mostOfAddress = 32

    private struct Entry {
        let address: ClientAddress
        let number: Int
        var isTrusted = false
    }

    private var entries: [ID: Entry] = [:]
    private var lastNumber = 0

    var count: Int { entries.count }

    /// - Parameter remembered: Addresses that gave a right password lately.
    mutating func admit(_ id: ID, from address: ClientAddress, remembered: [ClientAddress]) -> Admission {
        let ofAddress = entries.count { $0.value.address == address }
        var idle: ID?
        if ofAddress >= Self.mostOfAddress {
            idle = oldest(of: address)
        } else if entries.count >= Self.most {
            idle = oldestOfMost { !remembered.contains($0) }
            if idle == nil, remembered.contains(address) { idle = oldestOfMost { _ in true } }
        }
        let isFull = ofAddress >= Self.mostOfAddress || entries.count >= Self.most
        guard !isFull || idle != nil else { return .refused }
        if let idle { entries[idle] = nil }
        lastNumber += 1
        entries[id] = Entry(address: address, number: lastNumber)
        return idle.map { .takenFor($0) } ?? .taken
    }

    /// A request with a right password came over it.
    mutating func trust(_ id: ID) { entries[id]?.isTrusted = true }

    mutating func leave(_ id: ID) { entries[id] = nil }

    private func oldest(of address: ClientAddress) -> ID? {
        entries.filter { $0.value.address == address && !$0.value.isTrusted }.min { $0.value.number < $1.value.number }?
            .key
    }

    private func oldestOfMost(where isEligible: (ClientAddress) -> Bool) -> ID? {
        var counts: [ClientAddress: (count: Int, oldest: Int)] = [:]
        for entry in entries.values where !entry.isTrusted && isEligible(entry.address) {
            let before = counts[entry.address] ?? (0, .max)
            counts[entry.address] = (before.count + 1, min(before.oldest, entry.number))
        }
        let most = counts.max { ($0.value.count, -$0.value.oldest) < ($1.value.count, -$1.value.oldest) }
        return most.flatMap { oldest(of: $0.key) }
    }
}
