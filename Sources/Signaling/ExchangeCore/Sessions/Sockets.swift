import SignalWire
import Core

/// What the core knows of sockets, logged in or not: until when they must log in, and what they may still send.
struct Sockets: Sendable {
    /// Whether a message may be served.
    enum Admission: Hashable, Sendable {
        case admitted
        case refused
        /// The connection has not stopped sending too much, and is closed.
        case closed
    }

    private struct Socket {
        var malformedCount = 0
        var malformedSince = Instant.zero
        /// When it is closed if it has no session.
        var loginDue: Instant
        /// What it may still send.
        var messages = TokenBucket()
        /// Messages refused since it last was silent long enough for a whole burst.
        var refusedCount = 0
    }

    private let loginWindow: Duration
    private var messages: TokenBucket.Rate
    private let messagesRefused: Int
    private let malformedPerMinute: Int
    private var byConnection: [ConnectionID: Socket] = [:]

    init(_ settings: ExchangeCore.Settings) {
        loginWindow = settings.loginWindow
        messages = settings.chosen.messages
        messagesRefused = settings.messagesRefused
        malformedPerMinute = settings.malformedPerMinute
    }

    /// Connections may send as much as here.
    mutating func adopt(_ settings: ExchangeCore.Settings) { messages = settings.chosen.messages }

    /// All that are open.
    var connections: some Collection<ConnectionID> { byConnection.keys }

    func has(_ connection: ConnectionID) -> Bool { byConnection[connection] != nil }

    /// From now on the connection has a while to log in.
    mutating func expectLogin(on connection: ConnectionID, at now: Instant, _ effects: inout Effects) {
        let due = now.advanced(by: loginWindow)
        byConnection[connection, default: Socket(loginDue: due)].loginDue = due
        effects.schedule(.loginIsDue(connection), due: due)
    }

    /// Adds a connection of the exchange's own, which has its session already.
    mutating func attach(_ connection: ConnectionID, at now: Instant) {
        byConnection[connection] = Socket(loginDue: now)
    }

    mutating func remove(_ connection: ConnectionID) { byConnection[connection] = nil }

    /// Closes a connection that has no session if its time to log in has ended.
    func closeOverdue(_ connection: ConnectionID, at now: Instant, _ effects: inout Effects) {
        guard let socket = byConnection[connection], socket.loginDue <= now else { return }
        effects.close(connection, .policy("no session was started in time"))
        effects.note(.connectionRefused(connection, reason: "no session was started in time"))
    }

    /// Whether a connection may send one more message; if not, the client receives an error, and is closed if it does
    /// not stop.
    mutating func admit(
        _ id: RPCID, on connection: ConnectionID, at now: Instant, _ effects: inout Effects
    ) -> Admission {
        guard let state = byConnection[connection] else { return .admitted }
        var bucket = state.messages
        let wasFull = bucket.isFull(at: now)
        let mayAsk = bucket.take(messages, at: now)
        byConnection[connection]?.messages = bucket
        if mayAsk {
            if wasFull { byConnection[connection]?.refusedCount = 0 }
            return .admitted
        }
        byConnection[connection]?.refusedCount += 1
        effects.count(\.refusals)
        let rate = Int(messages.perSecond)
        let error = RPCError(
            .tooManyRequests, "A connection sends at most \(rate) messages a second; slow down.", limit: rate)
        effects.refuse(connection, id, error)
        guard state.refusedCount + 1 > messagesRefused else { return .refused }
        effects.close(connection, .policy("too many messages"))
        effects.note(.connectionRefused(connection, reason: "too many messages"))
        return .closed
    }

    /// Answers what is no request; a connection that sends much of it is closed.
    mutating func refuse(
        _ malformed: RPCMessage.Malformed, from connection: ConnectionID, at now: Instant, _ effects: inout Effects
    ) {
        guard var state = byConnection[connection] else { return }
        effects.count(\.malformed)
        if state.malformedCount == 0 || state.malformedSince.duration(to: now) > .seconds(60) {
            state.malformedCount = 0
            state.malformedSince = now
        }
        state.malformedCount += 1
        byConnection[connection] = state
        effects.refuse(connection, malformed.id, malformed.error)
        guard state.malformedCount > malformedPerMinute else { return }
        effects.close(connection, .policy("too many malformed messages"))
        effects.note(.connectionRefused(connection, reason: "too many malformed messages"))
    }
}
