public import Core

/// Queues the application's requests while the device reconnects, and releases them in order afterwards (contract
/// CONN-6).
///
/// Filled by the application, emptied when the connection is established again. When it is full, further requests fail;
/// when reconnecting is given up, all queued requests fail. `Ticket` names a request; the caller keeps the request
/// itself.
public struct SendQueue<Ticket: Hashable & Sendable>: Sendable {
    /// What a request does while the device reconnects.
    public enum Manner: Hashable, Sendable {
        /// Fails at once.
        case failsAtOnce
        /// Waits for the connection, and no longer than `patience` if that is given.
        case waits(patience: Duration?)
    }

    /// The decision about a request.
    public enum Decision: Hashable, Sendable {
        /// It is to be sent now.
        case send
        /// It is kept.
        case kept
        /// It fails.
        case fail(SignalingError)
    }

    private struct Entry: Sendable {
        let ticket: Ticket
        let activity: String
        let deadline: Instant?
    }

    /// Requests kept at most.
    public let capacity: Int
    /// Requests refused because the queue was full.
    public private(set) var refusedCount = 0
    private var entries: [Entry] = []

    /// Makes an empty queue for up to `capacity` requests, at least one.
    public init(capacity: Int = 256) { self.capacity = max(1, capacity) }

    /// Requests kept now.
    public var count: Int { entries.count }

    /// When ``takeExpired(at:)`` must next be called.
    public var nextDeadline: Instant? { entries.compactMap(\.deadline).min() }

    /// Decides about one request.
    ///
    /// - Parameter activity: What it does, to be read after "cannot".
    public mutating func offer(
        _ ticket: Ticket, _ manner: Manner, while state: ConnectionState, doing activity: String, at now: Instant
    ) -> Decision {
        switch (state, manner) {
        case (.connected, _):
            return .send
        case (.reconnecting, .waits(let patience)):
            guard entries.count < capacity else {
                refusedCount += 1
                return .fail(full(activity))
            }
            entries.append(Entry(ticket: ticket, activity: activity, deadline: patience.map(now.advanced(by:))))
            return .kept
        case (.reconnecting, .failsAtOnce), (.notConnected, _), (.connecting, _), (.disconnecting, _), (.failed, _):
            return .fail(Self.gone(activity))
        }
    }

    /// The connection is established again: returns the requests to send now, in order.
    public mutating func takeAll() -> [Ticket] {
        defer { entries = [] }
        return entries.map(\.ticket)
    }

    /// The connection is given up: what fails, and with what.
    public mutating func giveUp() -> [(ticket: Ticket, error: SignalingError)] {
        defer { entries = [] }
        return entries.map { ($0.ticket, Self.gone($0.activity)) }
    }

    /// Takes those that have waited as long as they may.
    public mutating func takeExpired(at now: Instant) -> [(ticket: Ticket, error: SignalingError)] {
        let late = entries.filter { $0.deadline.map { $0 <= now } ?? false }
        guard !late.isEmpty else { return [] }
        entries.removeAll { $0.deadline.map { $0 <= now } ?? false }
        return late.map { entry in
            let cause = "the connection to the service did not come back in time"
            return (entry.ticket, SignalingError(.timedOut, activity: entry.activity, cause: cause))
        }
    }

    private static func gone(_ activity: String) -> SignalingError {
        SignalingError(
            .disconnected, activity: activity, cause: "there is no connection to the service",
            advice: "Try again once it is back.")
    }

    private func full(_ activity: String) -> SignalingError {
        SignalingError(
            .tooManyRequests, activity: activity,
            cause: "the connection is being made again and \(capacity) messages wait for it already",
            advice: "Send less while the connection is away.")
    }
}
