import SignalWire
import Timekeeping

/// Which of a user's devices an event is for.
enum Audience: Hashable, Sendable {
    /// One device, registered or not.
    case device(DeviceID)
    /// The devices that receive invites, but for one.
    case registered(except: DeviceID?)

    /// Whether a device is among them.
    func includes(_ device: DeviceID, isRegistered: Bool) -> Bool {
        switch self {
        case .device(let only): device == only
        case .registered(let except): isRegistered && device != except
        }
    }
}

/// One user's numbered events: the newest of them are kept for devices that resume (CONN-5).
///
/// Capacity: ``capacity`` events, none older than the resume window; beyond that the oldest go, and a device that
/// would have needed them starts afresh.
struct EventLog: Sendable {
    private struct Entry {
        var numbered: NumberedEvent
        var audience: Audience
        var at: Instant
    }

    static let capacity = 256
    private var entries: [Entry] = []
    /// The number of the newest event that was kept and is not any more.
    private var forgotten: UInt64 = 0
    /// The number of the newest event; 0 before the first.
    private(set) var sequence: UInt64 = 0

    /// Numbers an event and keeps it.
    mutating func append(
        _ event: ExchangeEvent, for audience: Audience, at now: Instant, window: Duration
    ) -> NumberedEvent {
        sequence += 1
        let numbered = NumberedEvent(sequence: sequence, event: event)
        let stale = entries.prefix { $0.at.advanced(by: window) < now }.count
        let surplus = max(stale, entries.count + 1 - Self.capacity)
        if surplus > 0 { forgotten = entries[surplus - 1].numbered.sequence }
        entries.removeFirst(surplus)
        entries.append(Entry(numbered: numbered, audience: audience, at: now))
        return numbered
    }

    /// Numbers an event that nobody gets who is not there now.
    mutating func pass(_ event: ExchangeEvent) -> NumberedEvent {
        sequence += 1
        return NumberedEvent(sequence: sequence, event: event)
    }

    /// What a device missed since event number `after`; `nil` if that is not known any more.
    func missed(after: UInt64, by device: DeviceID, isRegistered: Bool) -> [NumberedEvent]? {
        guard forgotten <= after, after <= sequence else { return nil }
        return entries.filter {
            $0.numbered.sequence > after && $0.audience.includes(device, isRegistered: isRegistered)
        }.map(\.numbered)
    }
}
