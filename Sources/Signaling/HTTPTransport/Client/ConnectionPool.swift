internal import Core

/// Which connection serves which request of an HTTP client, and how long a connection without a request is kept.
///
/// Each request has a connection of its own while it is served. The most recently used one is reused first, so that those
/// that are not needed expire.
struct ConnectionPool: ProtocolCore {
    typealias RequestNumber = Int

    /// Connections to one origin serve each other's requests.
    struct Origin: Hashable, Sendable {
        let isSecure: Bool
        let host: String
        let port: Int

        init(_ endpoint: HTTPEndpoint) {
            isSecure = endpoint.isSecure
            host = endpoint.host.lowercased()
            port = endpoint.port
        }
    }

    struct ConnectionNumber: Hashable, Sendable { fileprivate let value: Int }

    enum Input: Sendable {
        case request(RequestNumber, Origin)
        /// The answer to the connection's request is complete.
        case answered(ConnectionNumber, isReusable: Bool)
        /// The connection failed, or could not be opened.
        ///
        /// - Parameter maySendAgain: Whether its request can be sent once more without being served twice.
        case failed(ConnectionNumber, maySendAgain: Bool)
        /// The request is not needed any more.
        case abandoned(RequestNumber)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
        /// No request is accepted after this.
        case shutDown
    }

    enum Output: Hashable, Sendable {
        /// Open a connection, and send the request on it.
        case open(ConnectionNumber, for: RequestNumber)
        /// Send the request on a connection that is open.
        case send(RequestNumber, on: ConnectionNumber)
        case close(ConnectionNumber)
        /// The request's connection failed, and the request is not sent again.
        case fail(RequestNumber)
        /// The client was shut down.
        case refuse(RequestNumber)
    }

    private struct Connection {
        let origin: Origin
        var isReused = false
        var state: State
    }

    private enum State {
        case serving(RequestNumber)
        case idle(until: Instant)
    }

    private let idleLimit: Int
    private let idleTime: Duration
    private var connections: [ConnectionNumber: Connection] = [:]
    /// The one that has been idle for the longest time first, and so the one that expires first.
    private var idle: [ConnectionNumber] = []
    private var serving: [RequestNumber: ConnectionNumber] = [:]
    private var lastNumber = 0
    private var isShutDown = false

    /// - Parameters:
    ///   - idleLimit: Connections without a request, to all servers. Beyond it the one that was idle longest is closed.
    ///   - idleTime: How long a connection without a request is kept.
    init(idleLimit: Int, idleTime: Duration) {
        self.idleLimit = idleLimit
        self.idleTime = idleTime
    }

    var nextDeadline: Instant? {
        guard let first = idle.first, case .idle(let until)? = connections[first]?.state else { return nil }
        return until
    }

    /// The connection that serves a request, or is opened for it.
    func connection(serving request: RequestNumber) -> ConnectionNumber? { serving[request] }

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .request(let request, let origin): serve(request, origin, at: now, into: &outbox)
        case .answered(let connection, let isReusable):
            finish(connection, isReusable: isReusable, at: now, into: &outbox)
        case .failed(let connection, let maySendAgain):
            lose(connection, maySendAgain: maySendAgain, into: &outbox)
        case .abandoned(let request):
            guard let connection = serving.removeValue(forKey: request) else { return }
            connections[connection] = nil
            outbox.append(.close(connection))
        case .timerFired: expire(at: now, into: &outbox)
        case .shutDown: end(into: &outbox)
        }
    }

    private mutating func serve(
        _ request: RequestNumber, _ origin: Origin, at now: Instant, into outbox: inout [Output]
    ) {
        guard !isShutDown else { return outbox.append(.refuse(request)) }
        // A timer may be late.
        expire(at: now, into: &outbox)
        guard let index = idle.lastIndex(where: { connections[$0]?.origin == origin }) else {
            return open(for: request, origin, into: &outbox)
        }
        let connection = idle.remove(at: index)
        connections[connection]?.isReused = true
        connections[connection]?.state = .serving(request)
        serving[request] = connection
        outbox.append(.send(request, on: connection))
    }

    private mutating func open(for request: RequestNumber, _ origin: Origin, into outbox: inout [Output]) {
        lastNumber += 1
        let connection = ConnectionNumber(value: lastNumber)
        connections[connection] = Connection(origin: origin, state: .serving(request))
        serving[request] = connection
        outbox.append(.open(connection, for: request))
    }

    private mutating func finish(
        _ connection: ConnectionNumber, isReusable: Bool, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .serving(let request)? = connections[connection]?.state else { return }
        serving[request] = nil
        guard isReusable, !isShutDown, idleLimit > 0 else {
            connections[connection] = nil
            return outbox.append(.close(connection))
        }
        connections[connection]?.state = .idle(until: now.advanced(by: idleTime))
        idle.append(connection)
        if idle.count > idleLimit { closeOldest(into: &outbox) }
    }

    private mutating func lose(
        _ connection: ConnectionNumber, maySendAgain: Bool, into outbox: inout [Output]
    ) {
        guard let lost = connections.removeValue(forKey: connection) else { return }
        switch lost.state {
        case .idle: idle.removeAll { $0 == connection }
        case .serving(let request):
            serving[request] = nil
            outbox.append(.close(connection))
            // Only an old connection may have ended by itself; a new one that fails is the server's answer.
            if lost.isReused && maySendAgain && !isShutDown {
                open(for: request, lost.origin, into: &outbox)
            } else {
                outbox.append(.fail(request))
            }
        }
    }

    private mutating func expire(at now: Instant, into outbox: inout [Output]) {
        while let deadline = nextDeadline, deadline <= now { closeOldest(into: &outbox) }
    }

    private mutating func closeOldest(into outbox: inout [Output]) {
        let oldest = idle.removeFirst()
        connections[oldest] = nil
        outbox.append(.close(oldest))
    }

    private mutating func end(into outbox: inout [Output]) {
        isShutDown = true
        while !idle.isEmpty { closeOldest(into: &outbox) }
        for (request, connection) in serving.sorted(by: { $0.key < $1.key }) {
            connections[connection] = nil
            outbox.append(.close(connection))
            outbox.append(.refuse(request))
        }
        serving = [:]
    }
}
