internal import CallControl
internal import HTTPTransport
internal import Logging
internal import NIOCore
internal import SignalWire
internal import Timekeeping

/// Does what the machines ask for: owns the socket, the clock and the waiting callers, and holds no protocol itself.
///
/// Everything happens on one event loop.
final class ServiceDriver {
    let loop: any EventLoop
    let configuration: HandsetServiceConfiguration
    let hub: EventHub<SignalingEvent>
    let logger: Logger
    let trust: TLSTrust
    let rest: RESTClient

    var login: LoginMachine
    var connection: ConnectionMachine
    var gate = AuthenticationGate<Int>()
    var requests: RequestTable
    /// Requests that wait for the connection.
    var queue = SendQueue<Int>()
    /// Requests of the application that have no answer yet, by ticket.
    var waiting: [Int: Waiting] = [:]
    /// The rooms that this device is in.
    var rooms = RoomTable()
    var lastTicket = 0

    /// The socket that requests go out on.
    var link: WebSocket?
    /// The attempt that made it.
    var linkAttempt = 0
    /// The one that is to take its place.
    var nextLink: NextLink?
    /// The attempt whose socket is open, while that is kept from the machine: something waits for its answer on the other.
    var openAttempt: Int?
    /// The number of the newest event told, among those of the session's numbering.
    var newestTold: Int64 = 0
    /// The token, and what came with it.
    var held: RESTClient.Login?
    var tokens: TokenMachine
    /// Counts the tokens that this device has had.
    var tokenGeneration = 0
    /// Whether the newest one has opened a session, or is kept from when it did.
    var tokenWasGood = false
    /// Who needs a new token.
    var tokenWaiters: [(TokenOutcome) -> Void] = []
    var lastTokenFailure: ServiceFailure?
    var rejection: Rejection?
    /// Whether this device has connected before, so that it starts warm.
    var hasConnected = false
    var session: SessionGrant?
    var iceServers: [CallControl.ICEServer] = []
    /// When to ask for them again; nil if they are good for ever.
    var serversDue: Instant?
    /// Counts logins: the outcome of one that was given up is ignored.
    var loginNumber = 0
    /// Why the connection last failed for good.
    var lastError: SignalingError?

    var connectWaiters: [EventLoopPromise<Void>] = []
    var disconnectWaiters: [EventLoopPromise<Void>] = []

    private var wakeUp: Scheduled<Void>?
    private var wakeUpAt: Instant?

    /// The exchange has asked for another connection.
    var pendingMove: PendingMove?

    /// A request of the application on its way.
    struct Waiting {
        let activity: String
        let manner: SendQueue<Int>.Manner
        let send: () -> Void
        let fail: (SignalingError) -> Void
    }

    /// Where to move to, and when at the latest.
    struct PendingMove {
        let address: String?
        let deadline: Instant
    }

    /// A socket that is made while another one stands (contract CONN-12).
    struct NextLink {
        let attempt: Int
        let link: WebSocket
    }

    init(
        _ configuration: HandsetServiceConfiguration, trust: TLSTrust, hub: EventHub<SignalingEvent>,
        loop: any EventLoop,
        logger: Logger
    ) {
        self.configuration = configuration
        self.trust = trust
        self.hub = hub
        self.loop = loop
        self.logger = logger
        rest = RESTClient(configuration: configuration, trust: trust, loop: loop)
        login = LoginMachine(patience: configuration.loginPatience, seed: .random(in: .min ... .max))
        connection = ConnectionMachine(timings: configuration.connection, seed: .random(in: .min ... .max))
        tokens = TokenMachine(seed: .random(in: .min ... .max))
        requests = RequestTable(timeout: configuration.requestTimeout)
    }

    var now: Instant { Instant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds)) }

    /// A way for other threads and later times to come back to this driver, on its loop.
    func later(_ work: @escaping @Sendable (ServiceDriver) -> Void) -> @Sendable () -> Void {
        let driver = NIOLoopBound(self, eventLoop: loop)
        return { work(driver.value) }
    }

    // MARK: What callers want

    func connect(_ promise: EventLoopPromise<Void>) {
        if connection.state == .connected { return promise.succeed() }
        connectWaiters.append(promise)
        if !gate.isOpen { feed(gate: .loginStarted) }
        if login.isLoggedIn { feed(connection: .connect) } else { feed(login: .login) }
    }

    func disconnect(_ promise: EventLoopPromise<Void>) {
        disconnectWaiters.append(promise)
        if !login.isLoggedIn { feed(login: .logout) }
        feed(gate: .loggedOut)
        let error = SignalingError(.disconnected, activity: "connect", cause: "it was asked to disconnect")
        settle(&connectWaiters, .failure(error))
        feed(connection: .disconnect)
        if connection.state != .disconnecting { settle(&disconnectWaiters, .success(())) }
    }

    private func settle(_ waiters: inout [EventLoopPromise<Void>], _ result: Result<Void, any Error>) {
        let settled = waiters
        waiters = []
        for waiter in settled { waiter.completeWith(result) }
    }

    // MARK: Machines in, effects out

    func feed(login input: LoginMachine.Input) {
        var outbox: [LoginMachine.Output] = []
        login.handle(input, at: now, into: &outbox)
        for output in outbox { perform(output) }
        scheduleWakeUp()
    }

    func feed(connection input: ConnectionMachine.Input) {
        var outbox: [ConnectionMachine.Output] = []
        connection.handle(input, at: now, into: &outbox)
        for output in outbox { perform(output) }
        scheduleWakeUp()
    }

    func feed(gate input: AuthenticationGate<Int>.Input) {
        var outbox: [AuthenticationGate<Int>.Output] = []
        gate.handle(input, at: now, into: &outbox)
        for output in outbox {
            switch output {
            case .proceed(let ticket): enqueue(ticket)
            case .fail(let ticket, let error): fail(ticket, with: error)
            }
        }
        scheduleWakeUp()
    }

    private func perform(_ output: LoginMachine.Output) {
        switch output {
        case .sendLogin:
            loginNumber += 1
            sendLogin(loginNumber)
        case .retrying(let delay, let error):
            logger.warning("login failed, trying again", metadata: ["in": "\(delay.text)", "because": "\(error)"])
        case .loggedIn:
            feed(connection: .connect)
        case .loginFailed(let error):
            feed(gate: .loginFailed(error))
            settle(&connectWaiters, .failure(error))
        case .loggedOut:
            loginNumber += 1
        }
    }

    private func perform(_ output: ConnectionMachine.Output) {
        switch output {
        case .fetchResources(let attempt): fetchResources(attempt)
        case .openSocket(let resources, let attempt): openSocket(resources, attempt)
        case .startSession(let resume, let attempt): startSession(resume, attempt)
        case .sendPing: link?.ping()
        case .endSession: send(SessionEnd(), doing: "end the session") { _ in }
        case .closeSocket(let code): link?.close(code)
        case .abandon(let attempt): abandon(attempt)
        case .moved(let attempt): changeLinks(to: attempt)
        case .stayed(let error):
            logger.warning("no other connection can be made; this one stays", metadata: ["because": "\(error)"])
            sendQueued()
        case .stateChanged(let state): stateChanged(to: state)
        case .retrying(let delay, let error):
            logger.warning("no connection, trying again", metadata: ["in": "\(delay.text)", "because": "\(error)"])
        case .event(let event):
            if case .error(let error) = event { lastError = error }
            hub.publish(event)
        }
    }

    private func stateChanged(to state: ConnectionState) {
        logger.debug("connection state changed", metadata: ["state": "\(state.rawValue)"])
        switch state {
        case .connected:
            if session?.isResumed != true { rejoinRooms() }
            sendQueued()
            feed(gate: .loginSucceeded)
            settle(&connectWaiters, .success(()))
        case .failed:
            serversDue = nil
            giveUpQueued()
            let error = lastError ?? .connectionGone("connect")
            feed(gate: .loginFailed(error))
            settle(&connectWaiters, .failure(error))
            settle(&disconnectWaiters, .success(()))
        case .notConnected:
            serversDue = nil
            giveUpQueued()
            rooms = RoomTable()
            settle(&disconnectWaiters, .success(()))
        case .connecting: break
        case .reconnecting: pendingMove = nil
        case .disconnecting: giveUpQueued()
        }
    }

    // MARK: The clock

    func scheduleWakeUp() {
        let deadlines = [
            login.nextDeadline, connection.nextDeadline, gate.nextDeadline, requests.nextDeadline,
            queue.nextDeadline, pendingMove?.deadline, isAtRest ? nil : tokens.nextDeadline,
            isAtRest ? nil : serversDue,
        ]
        guard let next = deadlines.compactMap({ $0 }).min() else { return cancelWakeUp() }
        // A wake-up that comes too early does no harm, so one that is set is left alone unless it is too late.
        if let wakeUpAt, wakeUpAt <= next { return }
        wakeUp?.cancel()
        wakeUpAt = next
        let time = NIODeadline.uptimeNanoseconds(UInt64(clamping: next.nanoseconds))
        wakeUp = loop.scheduleTask(deadline: time, later { $0.wake() })
    }

    /// Whether nobody wants the connection. Then no token is renewed: the driver does nothing by itself, so that it is let
    /// go of with its service; the next `connect` renews a token that is due.
    private var isAtRest: Bool { connection.state == .notConnected && connectWaiters.isEmpty }

    private func cancelWakeUp() {
        wakeUp?.cancel()
        wakeUp = nil
        wakeUpAt = nil
    }

    private func wake() {
        wakeUp = nil
        wakeUpAt = nil
        for fail in requests.takeExpired(at: now) { fail() }
        for (ticket, error) in queue.takeExpired(at: now) { fail(ticket, with: error) }
        moveIfQuiet()
        changeLinksIfQuiet()
        if !isAtRest {
            renewServersIfDue()
            feed(tokens: .timerFired)
        }
        feed(login: .timerFired)
        feed(connection: .timerFired)
        feed(gate: .timerFired)
    }
}
