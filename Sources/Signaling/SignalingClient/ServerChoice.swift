internal import CallControl
internal import Core
internal import SignalWire
internal import Synchronization

/// Which of several servers is asked: exchanges that share a database, of which one serves and the others are standbys.
///
/// The one that served last is asked first. Any thread may call.
final class ServerChoice: Sendable {
    typealias Server = HandsetServiceConfiguration.Addresses

    private struct State {
        var served: Server
        var epochs = EpochWatch()
    }

    private let configured: [Server]
    private let state: Mutex<State>

    init(_ configuration: HandsetServiceConfiguration) {
        configured = [configuration.addresses] + configuration.moreServers.map { .init($0) }
        state = Mutex(State(served: configuration.addresses))
    }

    /// Where the asking begins.
    func round() -> ServerRound { ServerRound(configured, first: state.withLock(\.served)) }

    /// This one serves, until another does.
    func note(served server: Server) { state.withLock { $0.served = server } }

    /// Whether an answer under this epoch counts: not if a newer one was seen a moment ago.
    func admits(_ epoch: OwnerEpoch, at now: Instant) -> Bool { state.withLock { $0.epochs.admits(epoch, at: now) } }
}

/// One question to servers of which one serves: who is asked next, and for how long. A value.
struct ServerRound {
    typealias Server = HandsetServiceConfiguration.Addresses

    /// How long one is waited for while there is another to ask: a machine that was stopped accepts connections, and is silent.
    static let patience = Duration.seconds(3)

    /// Who is asked now.
    private(set) var server: Server
    private var others: [Server]
    /// One that was silent. It may have had too much to do, so it is asked again, for longer, where no other serves.
    private var silent: Server?
    private var isLast = false
    /// A server names another one once in a round, so that two cannot send a client back and forth.
    private var follows = true

    init(_ configured: [Server], first: Server) {
        server = first
        let start = configured.firstIndex(of: first) ?? 0
        others = (configured[start...] + configured[..<start]).filter { $0 != first }
    }

    /// For how long it is asked; nil for as long as any server.
    var patience: Duration? { others.isEmpty || isLast ? nil : Self.patience }

    /// Chooses the next server after one that does not serve.
    ///
    /// - Parameter took: How long it took to learn that.
    /// - Returns: Whether there is one.
    mutating func moveOn(after failure: ServiceFailure, took: Duration) -> Bool {
        guard failure.mayBeElsewhere, !isLast else { return false }
        if let patience, took >= patience { silent = silent ?? server }
        if let named = named(by: failure) { others.insert(named, at: 0) }
        if others.isEmpty {
            guard let silent else { return false }
            (server, isLast) = (silent, true)
        } else {
            server = others.removeFirst()
        }
        return true
    }

    /// The server that a standby names, which must not be asked in plain text if the standby was not.
    private mutating func named(by failure: ServiceFailure) -> Server? {
        guard follows, let url = failure.elsewhere, url.hasPrefix("https://") || !server.events.hasPrefix("https://")
        else { return nil }
        let named = Server(url)
        follows = false
        others.removeAll { $0 == named }
        guard named != server else { return nil }
        return named
    }
}

/// Drops what an exchange answers that another one has replaced since: it may have been stopped between its last look at its lease and
/// the sending of one answer.
struct EpochWatch {
    /// How long a newer epoch is remembered. An older one after that is of a database that was restored.
    static let memory = Duration.seconds(60)

    private var newest: (epoch: OwnerEpoch, seen: Instant)?

    mutating func admits(_ epoch: OwnerEpoch, at now: Instant) -> Bool {
        if let newest, epoch < newest.epoch, newest.seen.duration(to: now) < Self.memory { return false }
        newest = (epoch, now)
        return true
    }
}

extension ServiceFailure {
    /// Whether another server may serve: this one is a standby, or cannot be reached.
    fileprivate var mayBeElsewhere: Bool { [.serverUnreachable, .disconnected].contains(error.code) }
}
