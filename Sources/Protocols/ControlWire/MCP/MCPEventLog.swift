internal import JSON

/// The newest events of a device that an agent may wait for, until they are reported.
struct MCPEventLog: Sendable {
    /// Events that are kept: what happens to calls, and not what tools report themselves.
    static let names = ["incoming", "calling", "established", "ended", "digit", "transfer", "connection"]

    /// Which events are meant.
    struct Filter: Hashable, Sendable {
        /// Their names; empty for all.
        var names: Set<String>
        /// The call; nil for any.
        var call: UInt64?

        fileprivate func admits(_ event: JSONValue) -> Bool {
            guard let name = event["event"]?.string, names.isEmpty || names.contains(name) else { return false }
            return call == nil || event["call"]?.integer == call.map(Int64.init)
        }
    }

    private var events: [JSONValue] = []
    /// Events that were dropped since the last report.
    private var missed = 0

    /// Keeps an event, of its kind. Beyond ``MCPLimits/keptEvents`` the oldest is dropped and counted.
    mutating func add(_ event: JSONValue) {
        guard let name = event["event"]?.string, Self.names.contains(name) else { return }
        events.append(event)
        guard events.count > MCPLimits.keptEvents else { return }
        events.removeFirst()
        missed += 1
    }

    /// Takes the events that a filter admits; nil if there is none.
    mutating func take(_ filter: Filter) -> (events: [JSONValue], missed: Int)? {
        let found = events.filter(filter.admits)
        guard !found.isEmpty else { return nil }
        events.removeAll(where: filter.admits)
        defer { missed = 0 }
        return (found, missed)
    }

    /// The device ended: its calls have gone, and another one numbers its own from 1 again.
    mutating func clear() {
        events = []
        missed = 0
    }
}
