internal import CallControl
internal import HTTPTransport
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import SignalWire
internal import Core

/// Connects the parts of the client with the network and the clock: it gives each machine its inputs, and does what the
/// machines ask for. It holds no protocol itself.
///
/// Everything happens on one event loop. A part is never in use while its outputs are carried out, because that may call
/// the part again.
final class ServiceDriver {
    private let rest: RESTClient
    private let hub: EventHub<SignalingEvent>
    private let logger: Logger

    private var login: LoginMachine
    /// Counts logins: the outcome of one that was given up is ignored.
    private var loginNumber = 0
    private let loginFile: LoginFile
    private var tokens: TokenKeeper
    private var servers = ServerList()

    private var connection: ConnectionMachine
    private var sockets = SocketTable<WebSocket>()
    private var grant: SessionGrant?
    /// Why the connection last failed for good.
    private var lastError: SignalingError?
    private var waiters = ConnectionWaiters()

    private var requests = ApplicationRequests()
    /// Requests that have been sent, the device's own among them.
    private var answers: RequestTable
    private var events: EventFilter

    private var timer: WakeUpTimer
    /// Failures to log in, to connect or to renew the token, of one outage of the exchange.
    private var outage = OutageLimit()

    init(_ rest: RESTClient, hub: EventHub<SignalingEvent>, logger: Logger) {
        let configuration = rest.configuration
        self.rest = rest
        self.hub = hub
        self.logger = logger
        login = LoginMachine(patience: configuration.loginPatience, seed: .random(in: .min ... .max))
        loginFile = LoginFile(configuration, logger: logger)
        tokens = TokenKeeper(
            canRenew: configuration.credentials.canRenew, stableAfter: configuration.connection.stableAfter,
            seed: .random(in: .min ... .max))
        connection = ConnectionMachine(timings: configuration.connection, seed: .random(in: .min ... .max))
        answers = RequestTable(timeout: configuration.requestTimeout)
        events = EventFilter(device: configuration.device.id)
        timer = WakeUpTimer(on: rest.loop)
    }

    /// The state of the connection.
    var connectionState: ConnectionState { connection.state }

    /// Who this device is to the exchange; nil until it has connected.
    var session: SessionGrant? { grant }

    /// The servers that help media through firewalls.
    var iceServers: [CallControl.ICEServer] { servers.all }

    private var configuration: HandsetServiceConfiguration { rest.configuration }

    private var now: Instant { Instant(NIODeadline.now()) }

    // MARK: What callers want

    func connect(_ promise: EventLoopPromise<Void>) {
        if connection.state == .connected { return promise.succeed() }
        waiters.addConnecting(promise)
        if !requests.isGateOpen { feed(gate: .loginStarted) }
        if login.isLoggedIn { feed(connection: .connect) } else { feed(login: .login) }
    }

    func disconnect(_ promise: EventLoopPromise<Void>) {
        waiters.addDisconnecting(promise)
        if !login.isLoggedIn { feed(login: .logout) }
        feed(gate: .loggedOut)
        let error = SignalingError(.disconnected, activity: "connect", cause: "it was asked to disconnect")
        waiters.finishConnecting(.failure(error))
        feed(connection: .disconnect)
        if connection.state != .disconnecting { waiters.finishDisconnecting() }
    }

    /// The network has changed: what waits for its next attempt is tried now.
    func networkChanged() {
        feed(login: .networkChanged)
        feed(connection: .networkChanged)
    }

    /// Forgets the login, here and on disk (contract AUTH-9); one that is only on disk counts as well.
    func forgetLogin() -> (login: RESTClient.Login?, error: SignalingError?) {
        let forgotten = tokens.login ?? loginFile.load()
        defer {
            withTokens { $0.forget(at: $1, into: &$2) }
            feed(login: .logout)
        }
        do throws(SignalingError) {
            try loginFile.clear()
            return (forgotten, nil)
        } catch {
            return (forgotten, error)
        }
    }

    /// Forgets the login that this service made by itself; nil if there is none, or if another may use it: one that is kept
    /// on disk (contract AUTH-10), or a token that was given.
    func takeOwnLogin() -> RESTClient.Login? {
        guard !loginFile.isKept, configuration.credentials.logsIn, let login = tokens.login else { return nil }
        withTokens { $0.forget(at: $1, into: &$2) }
        feed(login: .logout)
        return login
    }

    /// Sends a request of the application, or keeps it as long as `policy` says.
    ///
    /// `onSuccess` runs on the loop before anything that the exchange said afterwards is published.
    func request<Method: RPCMethod>(
        _ params: Method, _ policy: SendPolicy = .atOnce, doing activity: String,
        _ promise: EventLoopPromise<Method.Result>, onSuccess: @escaping (Method.Result) -> Void = { _ in }
    ) {
        let request = ApplicationRequests.Request(
            activity: activity, policy: policy,
            send: { [self] ticket in
                send(params, doing: activity) { [self] result in
                    switch result {
                    case .success(let value):
                        onSuccess(value)
                        requests.finish(ticket)
                        promise.succeed(value)
                    case .failure(let error) where error.code == .disconnected && policy.isRepeatable:
                        withRequests { $0.enqueue(ticket, over: $1, at: $2, into: &$3) }
                    case .failure(let error):
                        withRequests { $0.fail(ticket, with: error, into: &$3) }
                    }
                }
            },
            fail: { promise.fail($0) })
        withRequests { $0.add(request, over: $1, at: $2, into: &$3) }
    }

    func join(_ join: RoomJoin, _ promise: EventLoopPromise<RoomJoin.Result>) {
        request(join, doing: "join the room \(join.room)", promise) { [self] result in enter(join, result) }
    }

    func leave(_ leave: RoomLeave, _ promise: EventLoopPromise<Empty>) {
        events.leave(leave.room)
        request(leave, .queued, doing: "leave the room \(leave.room)", promise)
    }

    // MARK: Login and tokens

    private func feed(login input: LoginMachine.Input) {
        var outbox: [LoginMachine.Output] = []
        login.handle(input, at: now, into: &outbox)
        for output in outbox { perform(output) }
        scheduleWakeUp()
    }

    private func perform(_ output: LoginMachine.Output) {
        switch output {
        case .sendLogin:
            loginNumber += 1
            sendLogin(loginNumber)
        case .retrying(let delay, let error):
            noteRetry("Login failed; trying again", after: delay, error)
        case .loggedIn:
            feed(connection: .connect)
        case .loginFailed(let error):
            feed(gate: .loginFailed(error))
            waiters.finishConnecting(.failure(error))
        case .loggedOut:
            loginNumber += 1
        }
    }

    private func sendLogin(_ number: Int) {
        if let kept = loginFile.load() {
            take(kept, isKept: true)
            return feed(login: .succeeded)
        }
        ask { rest async throws(ServiceFailure) in
            try await rest.login()
        } then: { driver, result in
            guard driver.loginNumber == number else { return }
            switch result {
            case .success(let login):
                driver.take(login)
                driver.feed(login: .succeeded)
            case .failure(let failure):
                driver.feed(login: .failed(failure))
            }
        }
    }

    /// Takes a new token: keeps it, and continues the session with it.
    private func take(_ login: RESTClient.Login, isKept: Bool = false) {
        if !isKept { loginFile.save(login) }
        var outbox: [TokenKeeper.Output] = []
        tokens.take(login, isKept: isKept, at: now, into: &outbox)
        renewSession(with: login)
        perform(outbox)
    }

    /// If the exchange does not accept the new token, the session ends with the old one.
    private func renewSession(with login: RESTClient.Login) {
        guard connection.state == .connected else { return }
        send(SessionRenew(token: login.token), doing: "continue with the new access token") { [self] result in
            switch result {
            case .success: tokens.confirm()
            case .failure(let error):
                logger.warning("The session keeps its old access token", metadata: ["error": "\(error)"])
            }
        }
    }

    private func withTokens(_ change: (inout TokenKeeper, Instant, inout [TokenKeeper.Output]) -> Void) {
        var outbox: [TokenKeeper.Output] = []
        change(&tokens, now, &outbox)
        perform(outbox)
    }

    private func perform(_ outputs: [TokenKeeper.Output]) {
        for output in outputs {
            switch output {
            case .renew(let login, let isRefused):
                renew(login, isRefused: isRefused)
            case .retrying(let delay, let error):
                noteRetry("The access token cannot be renewed yet", after: delay, error)
            case .replaced(let attempts, .success(let login)):
                for attempt in attempts { fetchResources(attempt, with: login.token, isSecondTry: true) }
            case .replaced(let attempts, .failure(let failure)):
                for attempt in attempts { feed(connection: .link(.resourcesFailed(failure), attempt: attempt)) }
            case .lost(let failure):
                // `tokenExpired`, then `disconnected`; the next `connect` logs in again.
                sockets.current?.close(1000)
                for socket in sockets.removeAll() { drop(socket) }
                feed(connection: .giveUp(failure.error))
                feed(login: .logout)
            }
        }
        scheduleWakeUp()
    }

    private func renew(_ old: RESTClient.Login, isRefused: Bool) {
        ask { rest async throws(ServiceFailure) in
            try await rest.renew(old, isRefused: isRefused)
        } then: { driver, result in
            guard driver.tokens.isRenewing(old) else { return }
            switch result {
            case .success(let login):
                driver.logger.debug("The access token is renewed")
                driver.take(login)
            case .failure(let failure):
                driver.withTokens { $0.renewalFailed(failure, at: $1, into: &$2) }
            }
        }
    }

    /// Asks over HTTP, and brings the outcome back to the loop.
    private func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (RESTClient) async throws(ServiceFailure) -> Answer,
        then finish: @escaping @Sendable (ServiceDriver, Result<Answer, ServiceFailure>) -> Void
    ) {
        let driver = NIOLoopBound(self, eventLoop: rest.loop)
        let rest = rest
        Task {
            let outcome: Result<Answer, ServiceFailure>
            do throws(ServiceFailure) {
                outcome = .success(try await rest.anywhere(question))
            } catch {
                outcome = .failure(error)
            }
            rest.loop.execute { finish(driver.value, outcome) }
        }
    }

    // MARK: The connection

    private func feed(connection input: ConnectionMachine.Input) {
        var outbox: [ConnectionMachine.Output] = []
        connection.handle(input, at: now, into: &outbox)
        for output in outbox { perform(output) }
        scheduleWakeUp()
    }

    private func perform(_ output: ConnectionMachine.Output) {
        switch output {
        case .fetchResources(let attempt): fetchResources(attempt)
        case .openSocket(let resources, let attempt): openSocket(resources, attempt)
        case .startSession(let resume, let attempt): startSession(resume, attempt)
        case .sendPing: sockets.current?.ping()
        case .endSession: send(SessionEnd(), doing: "end the session") { _ in }
        case .closeSocket(let code): sockets.current?.close(code)
        case .abandon(let attempt): abandon(attempt)
        case .moved(let attempt): drop(sockets.replace(with: attempt))
        case .stayed(let error):
            logger.warning("No replacement connection can be made; this one stays", metadata: ["error": "\(error)"])
            withRequests { $0.release(into: &$3) }
        case .stateChanged(let state): stateChanged(to: state)
        case .retrying(let delay, let error):
            noteRetry("No connection; trying again", after: delay, error)
        case .event(let event):
            if case .error(let error) = event { lastError = error }
            hub.publish(event)
        }
    }

    /// Warns of the first failure of an outage, and of later ones at growing intervals; logs the others at `debug`.
    private func noteRetry(_ message: Logger.Message, after delay: Duration, _ error: SignalingError) {
        var metadata: Logger.Metadata = ["in": "\(delay.text)", "error": "\(error)"]
        guard let leftOut = outage.admit(at: now) else { return logger.debug(message, metadata: metadata) }
        if leftOut > 0 { metadata["left_out"] = "\(leftOut)" }
        logger.warning(message, metadata: metadata)
    }

    private func stateChanged(to state: ConnectionState) {
        logger.debug("Connection state changed", metadata: ["state": "\(state.rawValue)"])
        switch state {
        case .connected:
            outage.end()
            if grant?.isResumed != true { rejoinRooms() }
            withRequests { $0.release(into: &$3) }
            feed(gate: .loginSucceeded)
            waiters.finishConnecting(.success(()))
        case .failed:
            servers.stopAsking()
            giveUpRequests()
            let error = lastError ?? .connectionGone("connect")
            feed(gate: .loginFailed(error))
            waiters.finishConnecting(.failure(error))
            waiters.finishDisconnecting()
        case .notConnected:
            servers.stopAsking()
            giveUpRequests()
            events.leaveAllRooms()
            waiters.finishDisconnecting()
        case .connecting: break
        case .reconnecting: sockets.cancelMove()
        case .disconnecting: giveUpRequests()
        }
    }

    /// Fetches the resources; a token that is refused (the exchange may have been restarted) is replaced once.
    private func fetchResources(_ attempt: Int) {
        guard let login = tokens.login else {
            return feed(connection: .link(.resourcesFailed(tokens.absence), attempt: attempt))
        }
        if tokens.isRejected { return replace(login.token, for: attempt) }
        fetchResources(attempt, with: login.token, isSecondTry: false)
    }

    private func replace(_ token: Redacted<String>, for attempt: Int) {
        withTokens { $0.replace(token, for: attempt, at: $1, into: &$2) }
    }

    private func fetchResources(_ attempt: Int, with token: Redacted<String>, isSecondTry: Bool) {
        ask { rest async throws(ServiceFailure) in
            try await rest.resources(token: token)
        } then: { driver, result in
            switch result {
            case .success(let fetched):
                let resources = CallControl.ConnectionResources(fetched)
                driver.takeServers(of: resources)
                driver.feed(connection: .link(.resourcesFetched(resources), attempt: attempt))
            case .failure(let failure) where failure.error.isAboutToken && !isSecondTry && driver.tokens.canRenew:
                driver.replace(token, for: attempt)
            case .failure(let failure):
                driver.feed(connection: .link(.resourcesFailed(failure), attempt: attempt))
            }
        }
    }

    private func takeServers(of resources: CallControl.ConnectionResources) {
        let isChange = servers.take(resources, at: now)
        scheduleWakeUp()
        // The first servers arrive before the connection is established, and the caller of `connect` reads them then.
        if isChange, grant != nil { hub.publish(.iceServersChanged) }
    }

    private func renewServers() {
        // The next connection fetches them.
        guard connection.state == .connected, let token = tokens.login?.token else { return }
        ask { rest async throws(ServiceFailure) in
            try await rest.resources(token: token)
        } then: { driver, result in
            switch result {
            case .success(let resources): driver.takeServers(of: .init(resources))
            case .failure(let failure):
                driver.logger.warning(
                    "New credentials for TURN servers are not available; trying again",
                    metadata: ["in": "\(ServerList.retryInterval.text)", "error": "\(failure.error)"])
            }
        }
    }

    /// A message is read to its end up to this length. One that is longer than ``SignalBounds/delivery`` allows is skipped
    /// then; only past this the connection fails. The connection's machine has deadlines of its own.
    private static let socketSettings = WebSocket.Settings(
        .client, messageBytes: 16 * SignalLimits.deliveredBytes, closingTime: nil)

    private func openSocket(_ resources: CallControl.ConnectionResources, _ attempt: Int) {
        let activity = "open the WebSocket \(resources.webSocketURL)"
        let endpoint: HTTPEndpoint
        do throws(SignalingError) {
            endpoint = try HTTPEndpoint.of(resources.webSocketURL)
            try endpoint.check(configuration.plainText, for: activity)
        } catch {
            feed(connection: .link(.socketFailed(ServiceFailure(error, remedy: .none)), attempt: attempt))
            return
        }
        let socket = WebSocket(Self.socketSettings) { [weak self] event in
            self?.handle(event, attempt, endpoint: endpoint, doing: activity)
        }
        drop(sockets.add(socket, of: attempt, isNext: connection.isMoving(by: attempt)))
        let destination = WebSocket.Destination(
            endpoint, headers: ["User-Agent": configuration.application.userAgent], trust: rest.trust, openingTime: nil)
        let opened = WebSocket.connect(socket, to: destination, on: rest.loop)
        opened.assumeIsolated().whenComplete { result in
            switch result {
            case .success: self.socketOpened(socket, attempt)
            case .failure(let error):
                let failure = ServiceFailure.transport(error, to: endpoint, doing: activity)
                self.feed(connection: .link(.socketFailed(failure), attempt: attempt))
            }
        }
    }

    private func socketOpened(_ socket: WebSocket, _ attempt: Int) {
        switch sockets.open(socket, of: attempt) {
        case .present: feed(connection: .link(.socketOpened, attempt: attempt))
        case .next: changeSocketsIfQuiet()
        case .none: socket.abandon()
        }
    }

    private func startSession(_ resume: ResumePoint?, _ attempt: Int) {
        guard let login = tokens.login else {
            return feed(connection: .link(.sessionRefused(tokens.absence), attempt: attempt))
        }
        let start: SessionStart
        do throws(SignalingError) {
            start = try SessionStart(configuration, login, resume)
        } catch {
            return refuseSession(error, attempt)
        }
        send(start, on: sockets.socket(of: attempt), doing: SessionStart.activity) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let result):
                let grant = SessionGrant(result)
                self.events.begin(grant)
                self.register(grant, attempt)
            case .failure(let error) where error.isAboutToken && self.tokens.isWorthReplacing(at: self.now):
                let failure = ServiceFailure(error, remedy: .retry(after: nil))
                self.feed(connection: .link(.sessionRefused(failure), attempt: attempt))
            case .failure(let error): self.refuseSession(error, attempt)
            }
        }
    }

    /// Registers the device; only then the connection counts as established (contract DEV-1).
    private func register(_ grant: SessionGrant, _ attempt: Int) {
        guard !grant.isAnonymous else { return sessionStarted(grant, attempt) }
        let register: DeviceRegister
        do throws(SignalingError) {
            // A program that has connected before has missed only what it lost with the connection.
            register = try DeviceRegister(configuration, isWarm: self.grant != nil)
        } catch {
            return refuseSession(error, attempt)
        }
        send(register, on: sockets.socket(of: attempt), doing: DeviceRegister.activity) { [weak self] result in
            switch result {
            case .success: self?.sessionStarted(grant, attempt)
            case .failure(let error): self?.refuseSession(error, attempt)
            }
        }
    }

    private func sessionStarted(_ grant: SessionGrant, _ attempt: Int) {
        self.grant = grant
        tokens.confirm()
        feed(connection: .link(.sessionStarted(grant), attempt: attempt))
    }

    private func refuseSession(_ error: SignalingError, _ attempt: Int) {
        feed(connection: .link(.sessionRefused(.session(error)), attempt: attempt))
    }

    // MARK: The sockets

    /// Moves to another connection, if the exchange has asked for it and no request waits for its answer.
    private func moveIfQuiet() {
        guard let move = sockets.takeMove(isQuiet: answers.isEmpty, at: now) else { return }
        feed(connection: .move(to: move.address))
    }

    /// Moves the session to the next socket once no request waits for its answer on this one.
    private func changeSocketsIfQuiet() {
        guard let attempt = sockets.takeOpenAttempt(isQuiet: answers.isEmpty) else { return }
        feed(connection: .link(.socketOpened, attempt: attempt))
    }

    /// Drops the socket of an attempt, and fails what waits for answers on it.
    private func abandon(_ attempt: Int) {
        guard let dropped = sockets.remove(attempt) else { return }
        for fail in answers.takeAll(on: dropped) { fail() }
        dropped.abandon()
    }

    /// Drops a socket that is no longer used.
    private func drop(_ socket: WebSocket?) {
        guard let socket else { return }
        socket.abandon()
        for fail in answers.takeAll(on: socket) { fail() }
    }

    /// A socket has ended. The machine receives the reason before the callers that wait for answers: it may be one of
    /// them.
    private func loseSocket(_ report: ConnectionMachine.LinkReport, _ attempt: Int) {
        let waiting = sockets.remove(attempt).map { answers.takeAll(on: $0) } ?? []
        feed(connection: .link(report, attempt: attempt))
        for fail in waiting { fail() }
        changeSocketsIfQuiet()
    }

    private func handle(_ event: WebSocket.Event, _ attempt: Int, endpoint: HTTPEndpoint, doing activity: String) {
        switch event {
        case .text(let bytes):
            receive(bytes, attempt)
        case .pong:
            feed(connection: .link(.pong, attempt: attempt))
        case .lifeSign, .binary:
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
        case .closed(4001?) where tokens.isWorthReplacing(at: now):
            let error = SignalingError(
                .tokenRejected, activity: "keep the connection to the service",
                cause: "the service closed it, refusing the access token")
            loseSocket(.socketFailed(ServiceFailure(error, remedy: .retry(after: nil))), attempt)
        case .closed(let code):
            loseSocket(.socketClosed(code: code), attempt)
        case .failed(let error):
            loseSocket(.socketFailed(.transport(error, to: endpoint, doing: activity)), attempt)
        case .opened, .refused, .fault, .silent:
            break  // The code that opens a socket reports it; the others are events of a server.
        }
    }

    // MARK: Requests out

    private func feed(gate input: AuthenticationGate<Int>.Input) {
        withRequests { $0.handle(input, over: $1, at: $2, into: &$3) }
    }

    private func giveUpRequests() {
        withRequests { $0.giveUp(into: &$3) }
    }

    private func withRequests(
        _ change: (
            inout ApplicationRequests, ApplicationRequests.Path, Instant, inout [ApplicationRequests.Output]
        ) -> Void
    ) {
        let path = ApplicationRequests.Path(
            state: connection.state, hasSocket: sockets.current != nil,
            isChangingSockets: sockets.isReplacing || connection.isChangingLinks)
        var outbox: [ApplicationRequests.Output] = []
        change(&requests, path, now, &outbox)
        for output in outbox {
            switch output {
            case .send(let request, let ticket): request.send(ticket)
            case .fail(let request, let error): request.fail(error)
            }
        }
        scheduleWakeUp()
    }

    /// Sends a request on the present socket.
    private func send<Method: RPCMethod>(
        _ params: Method, doing activity: String,
        _ complete: @escaping (Result<Method.Result, SignalingError>) -> Void
    ) {
        send(params, on: sockets.current, doing: activity, complete)
    }

    private func send<Method: RPCMethod>(
        _ params: Method, on socket: WebSocket?, doing activity: String,
        _ complete: @escaping (Result<Method.Result, SignalingError>) -> Void
    ) {
        guard let socket else { return complete(.failure(.connectionGone(activity))) }
        guard answers.hasRoom else {
            let cause = "too many requests are waiting for their answers"
            return complete(.failure(SignalingError(.tooManyRequests, activity: activity, cause: cause)))
        }
        let id = answers.add(on: socket, doing: activity, at: now) { answer in
            complete(answer.flatMap { $0.result(of: Method.self, doing: activity) })
        }
        do throws(SignalingError) {
            socket.send(try params.message(id: id, doing: activity))
        } catch {
            answers.take(.number(id))?.complete(.failure(error))
        }
    }

    // MARK: Answers and events in

    private func receive(_ bytes: [UInt8], _ attempt: Int) {
        let message: RPCMessage
        do throws(RPCMessage.Malformed) {
            message = try RPCMessage(decoding: bytes, within: .delivery)
        } catch {
            logger.warning("Message ignored", metadata: ["error": "\(error.error)"])
            return feed(connection: .link(.received(sequence: nil), attempt: attempt))
        }
        switch message.kind {
        case .notification(NumberedEvent.method):
            receiveEvent(message, attempt)
        case .result(let id):
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
            answers.take(id)?.complete(.success(message))
            moveIfQuiet()
            changeSocketsIfQuiet()
        case .failure(let id, let error):
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
            guard let request = answers.take(id) else { return }
            request.complete(.failure(SignalingError(error, doing: request.activity)))
            moveIfQuiet()
            changeSocketsIfQuiet()
        case .request, .notification:
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
        }
    }

    private func receiveEvent(_ message: RPCMessage, _ attempt: Int) {
        do throws(RPCError) {
            let numbered = try message.params(NumberedEvent.self)
            let sequence = Int64(clamping: numbered.sequence)
            feed(connection: .link(.received(sequence: sequence), attempt: attempt))
            guard events.isNew(sequence) else { return }
            publish(SignalingEvent(numbered.event))
            if case .tokenExpiring = numbered.event {
                withTokens { $0.expire(soonAt: $1, into: &$2) }
            }
        } catch {
            logger.warning("Event ignored", metadata: ["error": "\(error)"])
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
        }
    }

    private func publish(_ event: SignalingEvent) {
        guard events.passes(event) else { return }
        hub.publish(event)
        guard case .moveRequested(let limit, let address) = event else { return }
        sockets.requestMove(to: address, within: limit, at: now)
        moveIfQuiet()
        scheduleWakeUp()
    }

    // MARK: Rooms

    private func enter(_ join: RoomJoin, _ result: RoomJoin.Result) {
        for event in events.enter(join, result) { hub.publish(event) }
    }

    /// A new session is in no room: those that the device was in are joined again.
    private func rejoinRooms() {
        for join in events.joins { rejoin(join) }
    }

    private func rejoin(_ join: RoomJoin) {
        send(join, doing: "join the room \(join.room) again") { [self] result in
            switch result {
            case .success(let joined):
                enter(join, joined)
                guard let next = joined.next else { return }
                var rest = join
                rest.after = next
                rejoin(rest)
            case .failure(let error) where error.code == .disconnected: break  // The next session tries again.
            case .failure(let error):
                events.leave(join.room)
                hub.publish(.roomLost(room: join.room, error))
            }
        }
    }

    // MARK: The clock

    private func scheduleWakeUp() {
        let deadlines = [
            login.nextDeadline, connection.nextDeadline, requests.nextDeadline, answers.nextDeadline,
            sockets.nextDeadline, isAtRest ? nil : tokens.nextDeadline, isAtRest ? nil : servers.nextDeadline,
        ]
        timer.set(deadlines.compactMap { $0 }.min(), wakeUp)
    }

    private var wakeUp: @Sendable () -> Void {
        let driver = NIOLoopBound(self, eventLoop: rest.loop)
        return { driver.value.wake() }
    }

    /// Whether no caller wants the connection. Then no token is renewed: the driver does nothing by itself, so that it
    /// is released with its service; the next `connect` renews a token that is due.
    private var isAtRest: Bool { connection.state == .notConnected && !waiters.wantConnection }

    private func wake() {
        timer.clear()
        for fail in answers.takeExpired(at: now) { fail() }
        withRequests { $0.wake(over: $1, at: $2, into: &$3) }
        moveIfQuiet()
        changeSocketsIfQuiet()
        if !isAtRest {
            if servers.takeDue(at: now) { renewServers() }
            withTokens { $0.wake(at: $1, into: &$2) }
        }
        feed(login: .timerFired)
        feed(connection: .timerFired)
    }
}
