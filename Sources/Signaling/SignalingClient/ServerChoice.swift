internal import CallControl
internal import Core
internal import SignalWire
internal import Synchronization

/// Which of several servers is asked: exchanges that share a database, of which one serves and the others are standbys.
///
/// The one that served last is asked first, unless it was silent. Any thread may call.
final class ServerChoice: Sendable {
    typealias Server = HandsetServiceConfiguration.Addresses

    private struct State {
        var served: Server
        /// The one that was silent beside a standby, until one serves.
        var silent: Server?
        var epochs = EpochWatch()
    }

    private let configured: [Server]
    private let state: Mutex<State>

    init(_ configuration: HandsetServiceConfiguration) {
        configured = [configuration.addresses] + configuration.moreServers.map { .init($0) }
        state = Mutex(State(served: configuration.addresses))
    }

    /// Where the asking begins.
    func round() -> ServerRound {
        state.withLock { ServerRound(configured, first: $0.served, last: $0.silent) }
    }

    /// This one serves, until another does.
    func note(served server: Server) {
        state.withLock {
            $0.served = server
            $0.silent = nil
        }
    }

    /// No server of a round serves.
    func note(ended round: ServerRound) { state.withLock { $0.silent = round.silent } }

    /// Whether an answer under this epoch counts: not if a newer one was seen a moment ago.
    func admits(_ epoch: OwnerEpoch, at now: Instant) -> Bool { state.withLock { $0.epochs.admits(epoch, at: now) } }
}

/// One question to servers of which one serves: who is asked next, and for how long. A value.
struct ServerRound {
    typealias Server = HandsetServiceConfiguration.Addresses

    /// What follows a failure.
    enum Step {
        /// The next server is asked.
        case ask
        /// No server serves: this is what the question has failed with.
        case end(ServiceFailure)
    }

    /// How long one is waited for while there is another to ask: a machine that was stopped accepts connections, and is silent.
    static let patience = Duration.seconds(3)

    /// Who is asked now.
    private(set) var server: Server
    private var others: [Server]
    /// One that was silent: it was stopped, or has too much to do.
    private(set) var silent: Server?
    /// What a standby has answered: another server owns the database, or will in a moment.
    private var standby: ServiceFailure?
    /// The server that a standby has named. One is followed in a round, so that two cannot send a client back and forth.
    private var named: Server?
    private var isLast = false

    /// - Parameters:
    ///   - first: Who is asked first.
    ///   - last: One that was silent in the round before: it is asked behind all others, and for as long as any server.
    init(_ configured: [Server], first: Server, last: Server? = nil) {
        let start = configured.firstIndex(of: first) ?? 0
        var order = [first] + (configured[start...] + configured[..<start]).filter { $0 != first }
        if let last, order.count > 1, let index = order.firstIndex(of: last) { order.append(order.remove(at: index)) }
        server = order[0]
        others = Array(order.dropFirst())
    }

    /// For how long it is asked; nil for as long as any server.
    var patience: Duration? { others.isEmpty || isLast ? nil : Self.patience }

    /// Chooses the next server after one that does not serve.
    ///
    /// - Parameter took: How long it took to learn that.
    mutating func step(after failure: ServiceFailure, took: Duration) -> Step {
        let isMisnamed = server == named && failure.isOfAnotherKind
        guard failure.mayBeElsewhere || isMisnamed, !isLast else { return .end(failure) }
        if let patience, took >= patience { silent = silent ?? server }
        if failure.standby != nil { follow(failure) }
        guard others.isEmpty else {
            server = others.removeFirst()
            return .ask
        }
        if let standby, isMisnamed || silent != nil { return .end(standby) }
        return last(after: failure)
    }

    /// All have been asked, and none is a standby, which would take over soon. One that was silent may only have had too much to do, and
    /// is asked again, for longer.
    private mutating func last(after failure: ServiceFailure) -> Step {
        guard let silent else { return .end(failure) }
        (server, isLast) = (silent, true)
        return .ask
    }

    /// The server that a standby names is asked next, but not in plain text if the standby was not, and not again.
    private mutating func follow(_ failure: ServiceFailure) {
        if standby == nil { standby = failure }
        guard named == nil, let url = failure.standby?.owner,
            url.hasPrefix("https://") || !server.events.hasPrefix("https://")
        else { return }
        let owner = Server(url)
        named = owner
        guard owner != server, owner != silent else { return }
        others.removeAll { $0 == owner }
        others.insert(owner, at: 0)
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

    /// Whether what answered is no exchange that this client trusts. Of a server that only a standby has named, this says that the
    /// standby's configuration is wrong.
    fileprivate var isOfAnotherKind: Bool { [.certificateNotTrusted, .notAnExchange].contains(error.code) }
}
