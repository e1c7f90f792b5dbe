import SignalWire
import Core

/// The audience of an event among a user's devices.
enum Audience: Hashable, Sendable {
    /// One device, registered or not.
    case device(DeviceID)
    /// The devices that receive invites, except one.
    case registered(except: DeviceID?)
    /// All devices, registered or not.
    case every

    /// Whether a device is among them.
    func includes(_ device: DeviceID, isRegistered: Bool) -> Bool {
        switch self {
        case .device(let only): device == only
        case .registered(let except): isRegistered && device != except
        case .every: true
        }
    }
}

/// One user's numbered events: the newest of them are kept for devices that resume (CONN-5).
///
/// Capacity: ``capacity`` events of ``capacityBytes`` together, none older than the resume window; beyond that the oldest
/// go, and a device that would have needed them starts afresh.
package struct EventLog: Sendable {
    private struct Entry {
        var sequence: UInt64
        var body: EventBody
        var audience: Audience
        var at: Instant
        /// It was restored from disk, and has not been read since.
        var isUnread = false
    }

    static let capacity = 256
    /// A device that resumes is sent them at once, and they must fit in what may wait for it
    /// (``OutboundMeter/limit``).
    static let capacityBytes = 768 << 10
    /// Numbers that are reserved at once for events that are not kept.
    private static let reservation: UInt64 = 1_024

    private var entries: [Entry] = []
    /// Bytes of the bodies.
    private var bytes = 0
    /// Events up to this number are discarded, whomever they were for.
    private(set) var forgotten: UInt64 = 0
    /// For each audience, the newest event that has expired: a device that received no events for long has missed none,
    /// and neither has a device that an event to all others excluded.
    private(set) var outdated: [Audience: UInt64] = [:]
    /// Audiences in ``outdated``, two for each of 64 devices and one for all; past it the audiences with the oldest
    /// events are merged into ``forgotten``.
    static let outdatedCapacity = 129
    /// The number of the newest event; 0 before the first.
    package private(set) var sequence: UInt64 = 0
    /// After a restart numbering continues above this number, unless a stored event has a higher one.
    private var reserved: UInt64 = 0
    /// A deadline is scheduled for the expiry of the oldest event.
    var isExpiryPlanned = false

    /// When the oldest happened of those that are kept.
    var oldest: Instant? { entries.first?.at }
    /// What is kept, oldest first.
    var bodies: [EventBody] { entries.map(\.body) }

    init() {}

    /// Continues a stream that is on disk.
    init(_ stream: Saved.Stream) {
        reserved = stream.reserved
        forgotten = stream.forgotten
        for (audience, sequence) in stream.outdated { outdated[Audience(audience)] = sequence }
        sequence = max(reserved, forgotten, outdated.values.max() ?? 0)
    }

    /// Takes in an event that is on disk; they come in the order of their numbers.
    mutating func restore(_ event: StoredEvent) {
        sequence = max(sequence, event.sequence)
        bytes += event.body.bytes
        entries.append(
            Entry(
                sequence: event.sequence, body: event.body, audience: Audience(event.audience), at: event.at,
                isUnread: true))
    }

    /// Forgets what is from before `instant`.
    ///
    /// - Returns: The bodies that this log has released.
    mutating func forget(before instant: Instant) -> [EventBody] {
        let old = entries.prefix { $0.at < instant }
        for entry in old {
            // Every session that is older than this has received it.
            if entry.audience == .every {
                forgotten = max(forgotten, entry.sequence)
            } else {
                outdated[entry.audience] = entry.sequence
            }
        }
        while outdated.count > Self.outdatedCapacity, let oldest = outdated.min(by: { $0.value < $1.value }) {
            forgotten = max(forgotten, oldest.value)
            outdated[oldest.key] = nil
        }
        return remove(old.count)
    }

    private mutating func drop(_ count: Int) -> [EventBody] {
        guard count > 0 else { return [] }
        forgotten = entries[count - 1].sequence
        return remove(count)
    }

    private mutating func remove(_ count: Int) -> [EventBody] {
        let dropped = entries.prefix(count).map(\.body)
        bytes -= dropped.reduce(0) { $0 + $1.bytes }
        entries.removeFirst(count)
        return dropped
    }

    /// Numbers an event and keeps it.
    ///
    /// - Returns: The bodies that had to make room for it.
    mutating func append(_ body: EventBody, for audience: Audience, at now: Instant) -> [EventBody] {
        sequence += 1
        var count = max(0, entries.count + 1 - Self.capacity)
        var left = bytes + body.bytes - entries.prefix(count).reduce(0) { $0 + $1.body.bytes }
        while left > Self.capacityBytes, count < entries.count {
            left -= entries[count].body.bytes
            count += 1
        }
        let dropped = drop(count)
        bytes += body.bytes
        entries.append(Entry(sequence: sequence, body: body, audience: audience, at: now))
        return dropped
    }

    /// Numbers an event that there is no room to keep: a device that did not receive it must start afresh.
    ///
    /// - Returns: The bodies that are unusable without it.
    mutating func skip() -> [EventBody] {
        sequence += 1
        let dropped = drop(entries.count)
        forgotten = sequence
        return dropped
    }

    /// Numbers an event that only connected devices receive.
    ///
    /// - Returns: The number above which a restart must continue, if it has changed.
    mutating func pass() -> UInt64? {
        sequence += 1
        guard sequence > reserved else { return nil }
        reserved = sequence + Self.reservation
        return reserved
    }

    /// What a device missed since event number `after`; `nil` if that is not known any more.
    func missed(after: UInt64, by device: DeviceID, isRegistered: Bool) -> [DeliveredEvent]? {
        let old = outdated.filter { $0.key.includes(device, isRegistered: isRegistered) }.values.max() ?? 0
        guard max(forgotten, old) <= after, after <= sequence else { return nil }
        let missed = entries.filter {
            $0.sequence > after && $0.audience.includes(device, isRegistered: isRegistered)
        }
        guard missed.allSatisfy({ !$0.isUnread || $0.body.event != nil }) else { return nil }
        return missed.map { DeliveredEvent(sequence: $0.sequence, body: $0.body) }
    }
}
