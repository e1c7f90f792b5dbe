internal import Core

/// Keeps a connection beside the account's flow alive, and notices its end (RFC 5626 §4.4.1). A server that has answered a ping and
/// stops doing so is gone; one that never did may know nothing of pings.
struct StreamKeepalive: Sendable {
    enum Due: Sendable {
        case nothing
        case ping
        case dead
    }

    private static let pongTimeout = Duration.seconds(10)

    private let interval: Duration
    private var nextPing: Instant
    private var pongDeadline: Instant?
    private var answersPings = false

    /// The first ping is due at once, and shows whether the server answers pings.
    init(interval: Duration, at now: Instant) {
        self.interval = interval
        nextPing = now
    }

    var deadline: Instant { min(nextPing, pongDeadline ?? nextPing) }

    mutating func heard() { pongDeadline = nil }

    mutating func ponged() {
        answersPings = true
        pongDeadline = nil
    }

    mutating func fire(at now: Instant) -> Due {
        if let deadline = pongDeadline, deadline <= now {
            guard !answersPings else { return .dead }
            pongDeadline = nil
        }
        guard nextPing <= now else { return .nothing }
        nextPing = now.advanced(by: interval)
        if pongDeadline == nil { pongDeadline = now.advanced(by: Self.pongTimeout) }
        return .ping
    }
}
