import ExchangeStore
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
        var sequence: UInt64
        var body: StoredEvent.Body
        var audience: Audience
        var at: Instant
    }

    static let capacity = 256
    /// Numbers that are reserved at once for events that are not kept.
    private static let reservation: UInt64 = 1_024

    private var entries: [Entry] = []
    /// The number of the newest event that was kept and is not any more.
    private(set) var forgotten: UInt64 = 0
    /// The same for each device.
    private var forgottenByDevice = ForgottenEvents()
    /// The number of the newest event; 0 before the first.
    private(set) var sequence: UInt64 = 0
    /// After a restart numbers go on above this one, if no event that is kept has a higher.
    private var reserved: UInt64 = 0

    /// Nothing is kept for devices that resume.
    var isEmpty: Bool { entries.isEmpty }

    init() {}

    /// Goes on with a stream that is on disk.
    init(reserved: UInt64, forgotten: UInt64) {
        self.reserved = reserved
        self.forgotten = forgotten
        forgottenByDevice = ForgottenEvents(upTo: forgotten)
        sequence = max(reserved, forgotten)
    }

    /// Takes in an event that is on disk; they come in the order of their numbers.
    mutating func restore(_ event: StoredEvent) {
        sequence = max(sequence, event.sequence)
        let entry = Entry(
            sequence: event.sequence, body: event.body, audience: Audience(event.audience), at: event.at)
        entries.append(entry)
    }

    /// Forgets what is older than `instant`.
    mutating func forget(before instant: Instant) { drop(entries.prefix { $0.at < instant }.count) }

    private mutating func drop(_ count: Int) {
        guard count > 0 else { return }
        forgotten = entries[count - 1].sequence
        for entry in entries.prefix(count) { forgottenByDevice.add(entry.sequence, for: entry.audience) }
        entries.removeFirst(count)
    }

    /// Numbers an event and keeps it.
    mutating func append(
        _ event: ExchangeEvent, for audience: Audience, at now: Instant, window: Duration
    ) -> NumberedEvent {
        sequence += 1
        let numbered = NumberedEvent(sequence: sequence, event: event)
        let stale = entries.prefix { $0.at.advanced(by: window) < now }.count
        drop(max(stale, entries.count + 1 - Self.capacity))
        entries.append(Entry(sequence: sequence, body: .event(event), audience: audience, at: now))
        return numbered
    }

    /// Numbers an event that nobody gets who is not there now.
    ///
    /// - Returns: The event, and up to which number a restart must not give any again, if that is news.
    mutating func pass(_ event: ExchangeEvent) -> (event: NumberedEvent, reserved: UInt64?) {
        sequence += 1
        let numbered = NumberedEvent(sequence: sequence, event: event)
        guard sequence > reserved else { return (numbered, nil) }
        reserved = sequence + Self.reservation
        return (numbered, reserved)
    }

    /// What a device missed since event number `after`; `nil` if that is not known any more.
    func missed(after: UInt64, by device: DeviceID, isRegistered: Bool) -> [NumberedEvent]? {
        let newest = forgottenByDevice.newest(for: device, isRegistered: isRegistered)
        guard newest <= after, after <= sequence else { return nil }
        let missed = entries.filter {
            $0.sequence > after && $0.audience.includes(device, isRegistered: isRegistered)
        }
        let read = missed.compactMap { entry in
            entry.body.event.map { NumberedEvent(sequence: entry.sequence, event: $0) }
        }
        return read.count == missed.count ? read : nil
    }
}
