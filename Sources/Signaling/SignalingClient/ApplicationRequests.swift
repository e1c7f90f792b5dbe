internal import CallControl
internal import Core

/// How a request of the application handles a lost connection.
struct SendPolicy {
    /// Whether it waits for a login under way (contract AUTH-7).
    var waitsForLogin = false
    /// What it does while the device reconnects (CONN-6).
    var manner = SendQueue<Int>.Manner.failsAtOnce
    /// Whether it may be sent again if the connection is lost before the answer: sending it twice does no harm.
    var isRepeatable = false

    /// It fails if it cannot be sent now.
    static let atOnce = SendPolicy()
    /// It waits for the connection.
    static let queued = SendPolicy(manner: .waits(patience: nil))
    /// It waits for the connection and may be sent twice.
    static let lasting = SendPolicy(manner: .waits(patience: nil), isRepeatable: true)
    /// An answer to an invite: it waits, though no longer than a caller would.
    static let answer = SendPolicy(waitsForLogin: true, manner: .waits(patience: .seconds(5)), isRepeatable: true)
}

/// The application's requests until they are answered: they pass the login's gate (contract AUTH-6, AUTH-7), and wait in
/// a queue while the device reconnects (CONN-6).
struct ApplicationRequests {
    /// A request on its way.
    struct Request {
        let activity: String
        let policy: SendPolicy
        /// Sends it; the ticket names it here.
        let send: (_ ticket: Int) -> Void
        let fail: (SignalingError) -> Void
    }

    /// What is to be done about requests, after the change that returns it.
    enum Output {
        case send(Request, ticket: Int)
        case fail(Request, SignalingError)
    }

    /// The connection, as a request finds it.
    struct Path {
        let state: ConnectionState
        let hasSocket: Bool
        /// Whether the connection changes its socket, so that nothing may be sent.
        let isChangingSockets: Bool
    }

    private var gate = AuthenticationGate<Int>()
    private var queue = SendQueue<Int>()
    /// By ticket, until they are answered.
    private var unanswered: [Int: Request] = [:]
    private var lastTicket = 0

    /// Whether requests need not wait for a login.
    var isGateOpen: Bool { gate.isOpen }

    /// When ``wake(over:at:into:)`` must next be called.
    var nextDeadline: Instant? { [gate.nextDeadline, queue.nextDeadline].compactMap { $0 }.min() }

    /// Takes a request of the application.
    mutating func add(_ request: Request, over path: Path, at now: Instant, into outbox: inout [Output]) {
        lastTicket += 1
        unanswered[lastTicket] = request
        handle(.request(lastTicket, waits: request.policy.waitsForLogin), over: path, at: now, into: &outbox)
    }

    /// Takes a change of the login.
    mutating func handle(
        _ input: AuthenticationGate<Int>.Input, over path: Path, at now: Instant, into outbox: inout [Output]
    ) {
        var outputs: [AuthenticationGate<Int>.Output] = []
        gate.handle(input, at: now, into: &outputs)
        for output in outputs {
            switch output {
            case .proceed(let ticket): enqueue(ticket, over: path, at: now, into: &outbox)
            case .fail(let ticket, let error): fail(ticket, with: error, into: &outbox)
            }
        }
    }

    /// A request is to be sent: now, or once there is a connection.
    mutating func enqueue(_ ticket: Int, over path: Path, at now: Instant, into outbox: inout [Output]) {
        guard let request = unanswered[ticket] else { return }
        let isHeld = path.isChangingSockets
        let state = (isHeld || !path.hasSocket) && path.state == .connected ? .reconnecting : path.state
        // The connection is not away while it changes its socket, so that nothing fails because of that.
        let manner = request.policy.manner
        let patience = isHeld && manner == .failsAtOnce ? .waits(patience: .seconds(5)) : manner
        switch queue.offer(ticket, patience, while: state, doing: request.activity, at: now) {
        case .send: outbox.append(.send(request, ticket: ticket))
        case .kept: break
        case .fail(let error): fail(ticket, with: error, into: &outbox)
        }
    }

    /// A request has failed.
    mutating func fail(_ ticket: Int, with error: SignalingError, into outbox: inout [Output]) {
        guard let request = unanswered.removeValue(forKey: ticket) else { return }
        outbox.append(.fail(request, error))
    }

    /// A request has its answer.
    mutating func finish(_ ticket: Int) { unanswered[ticket] = nil }

    /// There is a connection for those that wait for one.
    mutating func release(into outbox: inout [Output]) {
        for ticket in queue.takeAll() {
            if let request = unanswered[ticket] { outbox.append(.send(request, ticket: ticket)) }
        }
    }

    /// There will be no connection for those that wait for one.
    mutating func giveUp(into outbox: inout [Output]) {
        for (ticket, error) in queue.giveUp() { fail(ticket, with: error, into: &outbox) }
    }

    /// `nextDeadline` has come. Early calls are harmless.
    mutating func wake(over path: Path, at now: Instant, into outbox: inout [Output]) {
        for (ticket, error) in queue.takeExpired(at: now) { fail(ticket, with: error, into: &outbox) }
        handle(.timerFired, over: path, at: now, into: &outbox)
    }
}
