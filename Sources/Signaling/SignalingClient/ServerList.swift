internal import CallControl
internal import Core

/// The STUN and TURN servers that the exchange names, and when it is asked again.
struct ServerList {
    /// When to ask again after a question that failed.
    static let retryInterval = Duration.seconds(60)

    private var servers: [ICEServer] = []
    /// Nil if they never expire.
    private var due: Instant?

    /// The servers, as last reported.
    var all: [ICEServer] { servers }

    /// When ``takeDue(at:)`` must next be called.
    var nextDeadline: Instant? { due }

    /// The exchange names these servers. It is asked again when half of their credentials' lifetime has passed, so that a
    /// call that begins has the other half.
    ///
    /// - Returns: Whether they are others than before.
    mutating func take(_ resources: ConnectionResources, at now: Instant) -> Bool {
        due = resources.iceServersLifetime.map { now.advanced(by: $0 / 2) }
        guard resources.iceServers != servers else { return false }
        servers = resources.iceServers
        return true
    }

    /// Whether to ask again now. If that fails, it is done again after ``retryInterval``.
    mutating func takeDue(at now: Instant) -> Bool {
        guard let due, now >= due else { return false }
        self.due = now.advanced(by: Self.retryInterval)
        return true
    }

    /// The next connection asks for them.
    mutating func stopAsking() { due = nil }
}
