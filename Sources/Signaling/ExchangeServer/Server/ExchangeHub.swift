import ExchangeCore
import HTTPTransport
import JSON
import Logging
import NIOCore
import SignalWire
import Tracing
import Core
import Realtime

/// Drives the core: gives it what sockets and clock bring, and does what it puts out.
///
/// Lives on one event loop, on which everything of one exchange runs; that makes it ordered without locks.
final class ExchangeHub {
    let loop: any EventLoop
    /// The way of what other threads find out to the event loop. The exchange closes it at its end.
    let door: LoopDoor
    private let logger: Logger
    private let clock: (() -> Instant)?
    /// Reads a message from a socket.
    private let reader: (ExchangeHub, [UInt8], ConnectionID) -> ExchangeCore.Input
    private var setup: CoreSetup
    private(set) var core: ExchangeCore
    private let timer: DeadlineTimer
    private var connections = ConnectionTable()
    private let channels = OpenChannels()
    private var counters = ExchangeCounters()
    /// Decides who may come, and counts who may not.
    private var admission: Admission?
    /// Receives what the core delivers to attached connections.
    private weak var streams: StreamService?
    /// `nil` if pushes are off. Its creator stops it.
    private let pushSender: PushSender?
    /// What waits for clients that read slowly.
    let sendBuffers: SendBufferPool

    /// `nil` if the exchange keeps nothing on disk.
    let journal: CommitGate?
    /// Called once another process has taken the store over: this exchange does nothing more.
    var taken: ((StoreError) -> Void)? {
        didSet { if let fence { taken?(fence) } }
    }
    /// That another process has taken the store over.
    private var fence: StoreError?
    /// Why the database cannot be written; all requests are refused until it can.
    private(set) var failure: StoreError?

    /// Why no request is accepted at present.
    enum Obstacle {
        /// The database cannot be written, and what the core knows may be lost: no input is handled.
        case failed
        /// Too many changes wait for the disk.
        case behind
        /// The database is another exchange's, or will be: this one ends.
        case givenUp
    }

    /// Whether the database is another exchange's, or will be in a moment.
    var isReplaced: Bool { givesUpDatabase || fence != nil }

    /// Why requests are refused at present; `nil` if they are not.
    var obstacle: Obstacle? {
        if isReplaced { return .givenUp }
        if failure != nil { return .failed }
        return journal?.isFull == true ? .behind : nil
    }

    /// What keeps it from serving its clients now, in sentences; nothing if it serves them.
    var obstacles: [String] {
        switch obstacle {
        case .failed: ["the database cannot be written: \(failure.map { "\($0)" } ?? "not known why")"]
        case .behind: ["the database does not keep up: too much waits for the disk"]
        case .givenUp: ["this exchange ends, and has given its database up for another one"]
        case nil: []
        }
    }

    /// Inputs that came in while outputs of an earlier one were being carried out, oldest first.
    private var waiting: [ExchangeCore.Input] = []
    private var isBusy = false
    /// A request over HTTP is being served.
    private var isInTask = false
    /// The newest request over HTTP.
    private var lastRequest: UInt64 = 0
    /// What clients ask for and must wait for its turn.
    let turns: WorkQueue
    private var meter = TurnMeter()
    /// The next turn of the event loop begins a round.
    private var isRoundPlanned = false
    /// Set once by ``handOver(to:)`` or ``stop(isFollowed:)``.
    private(set) var isStopping = false
    /// Set once by ``handOver(to:)``.
    private var givesUpDatabase = false
    /// Who waits for what became of an order of the operator. ``ExchangeControl`` bounds them.
    private var orders: [OrderNumber: (OrderOutcome) -> Void] = [:]
    private var lastOrder: UInt64 = 0
    /// Receives what has happened, once it is on disk.
    var observer: ((ExchangeNote) -> Void)?
    /// Makes spans of invites, and who takes them; nil if calls are not traced.
    private var traces: (made: InviteTraces, take: (Trace) -> Void)?
    /// What asks clients to move, kept by ``handOver(to:)`` until there is an exchange to move to.
    private var farewells: [ExchangeCore.Output] = []
    /// What a hand-over waits for.
    private var handOvers: [EventLoopPromise<Void>] = []

    /// - Parameters:
    ///   - journal: Where what must survive is written, with what an earlier run left; none to forget it all.
    ///   - pushSender: Makes the attempts at pushes.
    ///   - clock: What time it is, unless the event loop knows.
    ///   - reader: Reads a message from a socket.
    init(
        loop: any EventLoop, configuration: ExchangeConfiguration, logger: Logger,
        journal: (CommitGate, Saved)? = nil, pushSender: PushSender? = nil,
        clock: (() -> Instant)? = nil,
        reader: @escaping (ExchangeHub, [UInt8], ConnectionID) -> ExchangeCore.Input = ExchangeHub.read
    ) {
        self.loop = loop
        door = LoopDoor(to: loop)
        self.clock = clock
        self.reader = reader
        self.logger = logger
        self.journal = journal?.0
        setup = CoreSetup(configuration)
        core = setup.makeCore()
        timer = DeadlineTimer(on: loop)
        self.pushSender = pushSender
        let shares = configuration.memoryShares
        turns = WorkQueue(WorkQueue.Queue.Limits(totalBytes: shares.turns))
        sendBuffers = SendBufferPool(.init(total: shares.sendBuffers))
        guard let (journal, saved) = journal else { return }
        core.restore(saved, at: now)
        connections.beginRun(saved.run)
        journal.finish = { [weak self] batch, error in self?.written(batch, error) }
        // What follows from the restart is written before the next one.
        handle(.timer)
    }

    /// What may change while the exchange runs is as here from now on. Sessions, invites and calls stay.
    func adopt(_ configuration: ExchangeConfiguration) {
        let before = setup.configuration
        setup.adopt(configuration)
        core.adopt(setup.settings)
        if configuration.users != before.users { handle(.accountsChanged(setup.accounts)) }
    }

    /// The accounts of the users file are these from now on.
    func replaceFileUsers(_ users: [Account]) {
        _ = journal?.take([.persist(.fileUsers(users.map(\.id)))])
        setup.replaceFileUsers(users)
        handle(.accountsChanged(setup.accounts))
    }

    /// Asks this for its counters, and ends it at the end.
    func use(_ admission: Admission) { self.admission = admission }

    /// Delivers to this what the core has for attached connections.
    func use(_ streams: StreamService) { self.streams = streams }

    var now: Instant { clock?() ?? Instant(loop.now) }

    // MARK: - Inputs

    /// Gives the core one input and carries out what comes of it, and of inputs that this causes in turn.
    func handle(_ input: ExchangeCore.Input) {
        waiting.append(input)
        if !isBusy { work() }
    }

    /// Carries out the outputs that are ready, handles the waiting inputs and those that result from it, and then the
    /// work whose turn it is.
    private func work(_ outputs: [ExchangeCore.Output] = []) {
        isBusy = true
        carryOut(all: outputs)
        repeat {
            handleWaiting()
            chargeTurn()
        } while beginNext()
        isBusy = false
        planRound()
        setTimer()
    }

    /// Carries out outputs while this process owns the store: it may have been stopped between two of them.
    private func carryOut(all outputs: [ExchangeCore.Output]) {
        for (index, output) in outputs.enumerated() {
            if let journal, !journal.isHeld { return journal.putBack(outputs[index...]) }
            carryOut(output)
        }
    }

    /// Handles the inputs that wait.
    private func handleWaiting() {
        var outbox: [ExchangeCore.Output] = []
        var next = 0
        while next < waiting.count {
            let input = waiting[next]
            next += 1
            if !refuses(input) { core.handle(input, at: now, into: &outbox) }
            meter.add(outbox)
            carryOut(all: journal?.take(outbox) ?? outbox)
            outbox.removeAll(keepingCapacity: true)
        }
        waiting.removeAll(keepingCapacity: true)
    }

    /// Knows a new socket from now on.
    func add(_ socket: SocketSession) -> ConnectionID {
        let connection = connections.add(socket)
        handle(.connected(connection))
        if isStopping || isReplaced { socket.close(.goingDown) }
        return connection
    }

    /// Forgets a socket.
    func remove(_ connection: ConnectionID) {
        guard connections.removeSocket(connection) else { return }
        submit(.disconnected(connection), from: connection, isOptional: false)
    }

    /// A number for a connection, given once.
    func reserveConnection() -> ConnectionID { connections.reserve() }

    /// Knows a connection that is no socket from now on, with a session for `endpoint` that `token` has opened.
    func attach(_ connection: ConnectionID, as endpoint: Endpoint, token: SecretDigest) {
        connections.attach(connection, of: Payer(endpoint.principal))
        handle(.attached(connection, endpoint, token: token))
    }

    /// Ends such a connection's session, and forgets it.
    func detach(_ connection: ConnectionID) {
        guard let payer = connections.detach(connection) else { return }
        let end = ExchangeCore.Input.request(connection, .string("end"), .sessionEnd(SessionEnd()))
        for input in [end, .disconnected(connection)] {
            submit(.input(input, WorkCost()), weight: 1, on: .connection(connection), of: payer, isOptional: false)
        }
    }

    /// Delivers a payload to every device of a user that is online (CONN-11).
    func notify(user: UserID, payload: JSONValue) { handle(.notify(user, payload)) }

    /// Asks every device to connect again (CONN-12).
    func requestMoves(within time: Duration, to url: String?) { handle(.move(within: time, to: url)) }

    // MARK: - The operator

    /// What became of an order.
    enum OrderOutcome {
        /// It was carried out or refused, and that is on disk.
        case obeyed(OperatorResult)
        /// Nothing was changed, for this reason.
        case unchanged(RPCError)
        /// Whether it was carried out is for the database, or another exchange, to say.
        case unknown
    }

    /// Does what the operator wants when it is its turn, and calls `then` once that is on disk, or known never to be.
    ///
    /// While a write hangs, `then` waits with it.
    func obey(_ order: OperatorOrder, then: @escaping (OrderOutcome) -> Void) {
        lastOrder += 1
        lastRequest += 1
        let number = OrderNumber(lastOrder)
        orders[number] = then
        let input = ExchangeCore.Input.ordered(number, order)
        submit(
            .input(input, WorkCost()), weight: core.expectedCost(of: input, bytes: 0), on: .request(lastRequest),
            of: .exchange)
    }

    private func settle(_ number: OrderNumber, _ outcome: OrderOutcome) { orders.removeValue(forKey: number)?(outcome) }

    /// Reads a list when it is the operator's turn, and calls `then` once what the list shows is on disk, or known never to be.
    ///
    /// - Returns: False if too many requests wait.
    func read<List>(_ list: @escaping (ExchangeHub) -> List, then: @escaping (Result<List, RPCError>) -> Void) -> Bool {
        inTurn(of: .exchange, bytes: 0, since: now) { [self] in
            guard failure == nil, !isReplaced else { return then(.failure(Self.notKept)) }
            let found = list(self)
            lastOrder += 1
            let number = OrderNumber(lastOrder)
            orders[number] = { outcome in
                if case .obeyed = outcome { then(.success(found)) } else { then(.failure(Self.notKept)) }
            }
            let output = ExchangeCore.Output.obeyed(number, .done(ended: 0))
            for ready in journal?.take([output]) ?? [output] { carryOut(ready) }
        }
    }

    /// Nothing more is reported to the operator, and what waits is not known.
    func endOrders() {
        observer = nil
        for number in Array(orders.keys) { settle(number, .unknown) }
    }

    /// A page of a list.
    func users(after: String?, atMost limit: Int) -> OperatorPage<OperatorView.User> {
        core.users(after: after, atMost: limit)
    }

    /// A page of a list.
    func openInvites(after: OperatorCursor?, atMost limit: Int) -> OperatorPage<OperatorView.Invite> {
        core.openInvites(after: after, atMost: limit, at: now)
    }

    /// A page of a list.
    func runningCalls(after: OperatorCursor?, atMost limit: Int) -> OperatorPage<OperatorView.Call> {
        core.runningCalls(after: after, atMost: limit, at: now)
    }

    /// A page of a list.
    func groups(after: OperatorCursor?, atMost limit: Int) -> OperatorPage<OperatorView.Group> {
        core.allGroups(after: after, atMost: limit)
    }

    /// A page of a list.
    func rooms(after: String?, atMost limit: Int) -> OperatorPage<OperatorView.Room> {
        core.allRooms(after: after, atMost: limit)
    }

    /// Users with an account, and open invites.
    func operatorCounts() -> (users: Int, invites: Int) { (core.countUsers(), core.countOpenInvites()) }

    // MARK: - Traces

    /// Hands the exchange's part of each call's trace to `take` from now on, which must return at once.
    func traceCalls(_ traces: InviteTraces, _ take: @escaping (Trace) -> Void) { self.traces = (traces, take) }

    private func trace(_ input: InviteTraces.Input) {
        guard traces != nil else { return }
        var made: [Trace] = []
        traces?.made.handle(
            input, at: now, epoch: MonotonicClock.now.nanoseconds - MonotonicClock.wallNanoseconds, into: &made)
        for trace in made { traces?.take(trace) }
    }

    /// Hands over the traces of what has not ended.
    func endTraces() {
        trace(.finish)
        traces = nil
    }

    // MARK: - Outputs

    private func carryOut(_ output: ExchangeCore.Output) {
        switch output {
        case .respond(let connection, let id, let response):
            if deliver(.response(id, response), to: connection) { return }
            if case .session = response {
                connections.socket(connection)?.admit(core.payer(on: connection) ?? .strangers)
            }
            send(to: [connection]) { () throws(SignalCodingError) in try response.message(id: id) }
        case .refuse(let connection, let id, let error):
            if deliver(.refusal(id, error), to: connection) { return }
            connections.socket(connection)?.send(SignalCoding.failure(id: id, error))
        case .event(let receivers, let event):
            let others = receivers.filter {
                connections.attachedPayer($0) == nil || !deliver(.event(event.event), to: $0)
            }
            guard !others.isEmpty else { return }
            send(to: others) { event.message }
        case .close(let connection, let reason):
            if deliver(.closed, to: connection) { return }
            connections.socket(connection)?.close(reason)
        case .obeyed(let number, let result): settle(number, .obeyed(result))
        case .note(let note):
            log(note)
            observer?(note)
        case .traced(let step): trace(.step(step))
        case .push(let push): post(push)
        case .persist: break
        }
    }

    /// Delivers to an attached connection; returns false for sockets.
    private func deliver(_ delivery: StreamTable.Delivery, to connection: ConnectionID) -> Bool {
        guard connections.attachedPayer(connection) != nil else { return false }
        streams?.deliver(delivery, to: connection)
        return true
    }

    private func send(to receivers: [ConnectionID], _ message: () throws(SignalCodingError) -> [UInt8]) {
        do {
            let bytes = try message()
            // Only data from an earlier version, which had no such limit, can be this long.
            guard bytes.count <= SignalLimits.deliveredBytes else {
                logger.error("Dropped a message that is too long for clients", metadata: ["bytes": "\(bytes.count)"])
                return
            }
            for connection in receivers { connections.socket(connection)?.send(bytes) }
        } catch {
            // Only numbers that JSON does not have cannot be written, and from JSON none came in.
            logger.error("Dropped a message that cannot be written", metadata: ["error": "\(error)"])
        }
    }

    private func setTimer() {
        // While they wait for their turn, there is nothing to wait for.
        let pushes = turns.payer(of: .pushes) == nil ? core.nextPush : nil
        let earliest = [core.nextDue, pushes].compactMap { $0 }.min()
        let due = failure == nil && !isStopping ? earliest : nil
        timer.set(due) { [weak self] in self?.meetDeadlines() }
    }

    /// Gives what is due its turn, and looks at the rest when others have had theirs.
    private func meetDeadlines() {
        for (deadline, payer) in core.takeDue(at: now, atMost: ExchangeCore.timersAtOnce) {
            let input = ExchangeCore.Input.due(deadline)
            submit(
                .input(input, WorkCost()), weight: core.expectedCost(of: input, bytes: 0), on: .timer(payer), of: payer,
                isOptional: false)
        }
        if let due = core.nextPush, due <= now, turns.payer(of: .pushes) == nil {
            submit(.input(.pushesAreDue, WorkCost()), weight: 1, on: .pushes, of: .exchange, isOptional: false)
        }
        setTimer()
    }

    /// Makes one attempt at a push, beside everything else.
    func post(_ push: StoredPush) {
        guard let pushSender else { return }
        let (now, door, hub) = (now, door, NIOLoopBound(self, eventLoop: loop))
        Task {
            let answer = await pushSender.send(push, at: now)
            door.execute { hub.value.handle(.pushAnswered(push.id, attempt: push.attempts, answer)) }
        }
    }

    // MARK: - Turns: what clients ask for is served so that one who asks for much does not hold up the others

    /// The event loop's time for sockets between two rounds in which nothing is written. Without it the loop would run
    /// its next task before it polls the sockets.
    private static let breath = TimeAmount.microseconds(50)

    /// Takes one text message from a socket. It is read at once, so that what it asks for can be judged, unless its user
    /// must wait, or reading alone may cost more than is served at once. Without a session it is not known whose it is until
    /// it is read: that is done for everybody, if it costs little.
    func receive(_ bytes: [UInt8], from connection: ConnectionID) {
        let line = WorkLine.connection(connection)
        let reading = WorkCost.reading(bytes)
        let known = turns.payer(of: line) ?? core.payer(on: connection)
        let payer = known ?? (isBusy || reading > WorkCost.littleReading ? .strangers : nil)
        if let payer, isBusy || reading > turns.limits.quantum || turns.mustWait(payer) {
            submit(.message(bytes, connection), weight: reading, on: line, of: payer)
            return
        }
        let (input, cost) = readAtOnce(bytes, from: connection)
        let weight = max(core.expectedCost(of: input, bytes: bytes.count), cost.units())
        submit(.input(input, cost), weight: weight, on: line, of: self.payer(of: input, from: connection))
    }

    /// Reads a message at once, although its input may then have to wait, and returns the cost. No other work runs
    /// meanwhile.
    private func readAtOnce(_ bytes: [UInt8], from connection: ConnectionID) -> (ExchangeCore.Input, WorkCost) {
        let turn = meter.interrupt(with: WorkCost(messageBytes: bytes.count), at: now)
        isBusy = true
        let input = reader(self, bytes, connection)
        // Who pays is known once the core knows of a token in it.
        handleWaiting()
        isBusy = false
        return (input, meter.resume(turn, at: now))
    }

    /// Submits a request of one of the exchange's own connections, or the end of a connection.
    func submit(_ input: ExchangeCore.Input, from connection: ConnectionID, bytes: Int = 0, isOptional: Bool = true) {
        submit(
            .input(input, WorkCost(messageBytes: bytes)), weight: core.expectedCost(of: input, bytes: bytes),
            on: .connection(connection), of: payer(of: input, from: connection), isOptional: isOptional)
    }

    /// Does a request over HTTP when it is its turn; false if too many wait.
    ///
    /// - Parameter began: Since when it has been looked at.
    func inTurn(of payer: Payer, bytes: Int, since began: Instant, _ task: @escaping () -> Void) -> Bool {
        lastRequest += 1
        var cost = WorkCost(messageBytes: bytes)
        cost.time = began.duration(to: now)
        meter.exclude(cost.time)
        let weight = max(Self.taskWeight, cost.units())
        return submit(.task(cost, task), weight: weight, on: .request(lastRequest), of: payer)
    }

    /// What a request over HTTP is expected to cost: a login, or a stream's invite.
    private static let taskWeight = 8

    /// Does something when it is its turn; false if too much waits.
    ///
    /// - Parameter weight: What it is expected to cost.
    @discardableResult
    private func submit(_ work: Work, weight: Int, on line: WorkLine, of payer: Payer, isOptional: Bool = true) -> Bool
    {
        beginRoundIfIdle()
        if !isBusy, turns.serveAtOnce(payer, weight: weight) {
            begin(work)
            self.work()
            return true
        }
        let bytes = work.cost.messageBytes
        switch turns.enqueue(work, bytes: bytes, weight: weight, on: line, of: payer, isOptional: isOptional) {
        case .taken: break
        case .takenAndPaused: if case .connection(let connection) = line { connections.socket(connection)?.pause() }
        case .refused:
            counters.crowdedTurns += 1
            refuse(work, on: line, of: turns.payer(of: line) ?? payer)
            return false
        }
        if !isBusy { self.work() }
        return true
    }

    private func payer(of input: ExchangeCore.Input, from connection: ConnectionID) -> Payer {
        if let payer = connections.attachedPayer(connection) ?? core.payer(on: connection) { return payer }
        guard case .request(_, _, let request) = input, let token = request.token else { return .strangers }
        return payer(with: token)
    }

    /// Reads a message. A signed token in it becomes known to the core.
    static func read(_ hub: ExchangeHub, _ bytes: [UInt8], from connection: ConnectionID) -> ExchangeCore.Input {
        ExchangeCore.input(reading: bytes, from: connection) { token throws(RPCError) in try hub.admit(token) }
    }

    /// Refuses work that exceeds the limits. A refusal takes time as well, so the client's connection is paused.
    private func refuse(_ work: Work, on line: WorkLine, of payer: Payer) {
        if case .connection(let connection) = line, turns.pause(line, of: payer) {
            connections.socket(connection)?.pause()
        }
        let began = now
        let error = RPCError(
            .tooManyRequests, "Too many requests of this user are waiting; try again when some are answered.")
        switch work {
        case .message(let bytes, let connection):
            if case .request(let id, _)? = (try? RPCMessage(decoding: bytes))?.kind {
                carryOut(.refuse(connection, id, error))
            }
        case .input(.request(let connection, let id, _), _): carryOut(.refuse(connection, id, error))
        case .input(.ordered(let number, _), _): settle(number, .unchanged(error))
        case .input, .task: break
        }
        let time = began.duration(to: now)
        turns.fine(payer, work.cost.units(after: time))
        meter.exclude(time)
    }

    /// Begins what has its turn. What comes of it is charged by ``chargeTurn()``.
    private func begin(_ work: Work) {
        meter.beginTurn(work.cost, at: now)
        switch work {
        case .message(let bytes, let connection):
            let wasBusy = isBusy
            isBusy = true
            let input = reader(self, bytes, connection)
            isBusy = wasBusy
            waiting.append(input)
        case .input(let input, _): waiting.append(input)
        case .task(_, let task):
            // The core has handled the task's inputs by the time that the task continues.
            let wasBusy = isBusy
            (isBusy, isInTask) = (false, true)
            task()
            (isBusy, isInTask) = (wasBusy, false)
        }
    }

    /// Takes out what has its turn next and begins it; false if nothing has.
    private func beginNext() -> Bool {
        beginRoundIfWritten()
        guard !isInTask, let work = turns.next() else { return false }
        begin(work)
        return true
    }

    /// Charges what was served for what came of it.
    private func chargeTurn() {
        guard !isInTask else { return }
        if turns.isServing { turns.charge(meter.endTurn(at: now)) } else { meter.discardTurn() }
    }

    /// What has been handed to the disk was the round before.
    private func beginRoundIfWritten() {
        // What is paid back by this round is not paid back once more by the time that it takes.
        if let journal, meter.beginRound(afterBatch: journal.begun, at: now) { turns.beginRound() }
    }

    private func beginRoundIfIdle() {
        guard turns.isEmpty, journal?.isWriting != true else { return }
        let rounds = meter.takeIdleRounds(at: now)
        if rounds > 0 { turns.beginRound(after: rounds) }
    }

    /// Sees to it that what waits has another round: when the disk is done, or in the next turn of the event loop.
    private func planRound() {
        for case .connection(let connection) in turns.takeResumed() { connections.socket(connection)?.resume() }
        guard !turns.isEmpty, !isRoundPlanned, journal?.isWriting != true else { return }
        isRoundPlanned = true
        loop.assumeIsolated().scheduleTask(in: Self.breath) { [weak self] in
            guard let self else { return }
            isRoundPlanned = false
            if journal?.isWriting != true {
                meter.beginRound(at: now)
                turns.beginRound()
            }
            if !isBusy { work() }
        }
    }

    // MARK: - Tokens: issues, exchanges, revokes and verifies them

    /// The current accounts.
    var accounts: AccountDirectory { core.accounts.directory }

    /// Makes an access token, with a refresh token for those who have an account; `nil` if there is no room.
    func issueTokens(_ grant: Grant) -> (access: Redacted<String>, refresh: Redacted<String>?)? {
        guard core.hasRoomForTokens(of: grant), failure == nil else { return nil }
        let access = FreshSecret.accessToken(of: core.shard)
        let refresh = grant.isAnonymous ? nil : RefreshToken(shard: core.shard)
        handle(
            .tokenIssued(
                SecretDigest(of: access.secret), grant, refresh: refresh?.digest, mark: refresh?.mark))
        counters.logins += 1
        return (access, refresh?.text)
    }

    /// Exchanges a refresh token for a new pair.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    func refreshTokens(
        _ old: Redacted<String>
    ) throws(RPCError) -> (grant: Grant, access: Redacted<String>, refresh: Redacted<String>) {
        let (digest, shown) = (SecretDigest(of: old.secret), RefreshToken(old))
        let grant: Grant
        do {
            grant = try core.refreshGrant(for: digest, mark: shown?.mark, at: now)
        } catch {
            if let login = core.copiedLogin(shownBy: digest, mark: shown?.mark, at: now) { handle(.tokenCopied(login)) }
            throw error
        }
        let access = FreshSecret.accessToken(of: core.shard)
        let refresh = RefreshToken(after: shown, generation: core.nextGeneration(of: digest), shard: core.shard)
        handle(
            .tokenRefreshed(
                digest, access: SecretDigest(of: access.secret), refresh: refresh.digest, family: refresh.mark.family))
        return (grant, access, refresh.text)
    }

    /// Ends the login that a token belongs to.
    func revoke(_ token: Redacted<String>) { handle(.tokenRevoked(SecretDigest(of: token.secret))) }

    /// The current grant of a token.
    ///
    /// - Throws: An error that distinguishes expired, revoked, wrongly signed and unknown tokens.
    func grant(for token: Redacted<String>) throws(RPCError) -> Grant {
        try admit(token)
        let digest = SecretDigest(of: token.secret)
        let grant = try core.grant(for: digest, at: now)
        handle(.tokenUsed(digest))
        return grant
    }

    /// Who pays for requests with this token.
    func payer(with token: Redacted<String>) -> Payer { core.payer(with: token, at: now) ?? .strangers }

    /// Registers a valid signed token with the core; other tokens need no registration.
    func admit(_ token: Redacted<String>) throws(RPCError) {
        let presentation = try core.presentation(
            of: token, to: setup.signedTokens, wall: MonotonicClock.wallTime.seconds, at: now)
        if let presentation { handle(presentation) }
    }

    // MARK: - The disk has written a batch, cannot, or can again

    /// Calls `then` once all that was done so far is on disk, or is known never to be.
    func afterWriting(_ then: @escaping (Bool) -> Void) {
        guard let journal else { return then(true) }
        journal.afterWriting(then)
    }

    /// Whether an input must wait until the disk can be written again; if it is a request, its client receives an
    /// error.
    private func refuses(_ input: ExchangeCore.Input) -> Bool {
        guard let obstacle else { return false }
        switch (input, obstacle) {
        case (.request(let connection, let id, _), .behind):
            counters.crowdedDisk += 1
            carryOut(.refuse(connection, id, Self.behind))
            return true
        case (.ordered(let number, _), .behind):
            settle(number, .unchanged(Self.behind))
            return true
        case (_, .behind): return false
        case (.ordered(let number, _), .failed), (.ordered(let number, _), .givenUp):
            settle(number, .unchanged(Self.notKept))
            return true
        case (.request(let connection, let id, _), .failed), (.badToken(let connection, let id, _, _), .failed):
            carryOut(.refuse(connection, id, Self.notKept))
            return true
        // Sockets are counted again when the disk is back. After a handover a client without an answer asks the next exchange, once
        // its connection closes in a moment.
        case (_, .failed), (_, .givenUp): return true
        }
    }

    private func written(_ batch: CommitGate.Batch, _ error: StoreError?) {
        guard let error else {
            meter.beginRound(at: now)
            work(batch.outputs)
            for then in batch.waiting {
                if journal?.isHeld == false { journal?.afterWriting(then) } else { then(true) }
            }
            return
        }
        // Sockets that close behind the goodbye lose nothing by it: their sessions are resumed as after a kill.
        if !isStopping { fail(batch, error) } else { refuseAll(of: batch, error) }
    }

    /// The core's state contains changes that are lost. It is no longer used, and all clients are disconnected, to come
    /// back to a core that has been read from disk again, as after a restart.
    private func fail(_ batch: CommitGate.Batch, _ error: StoreError) {
        failure = error
        logger.critical("Nothing can be stored, so all requests are refused", metadata: ["error": "\(error)"])
        isBusy = true
        refuseAll(of: batch, error)
        isBusy = false
        for connection in connections.attachedIDs { _ = deliver(.closed, to: connection) }
        for socket in connections.allSockets { socket.close(.notKept) }
        work()
        recover(after: error)
    }

    /// Answers what waited for the batch: nothing was changed. If that is not certain, or is for another exchange to say, no client is
    /// answered, and all connections end as if this process had been killed.
    private func refuseAll(of batch: CommitGate.Batch, _ error: StoreError) {
        for case .obeyed(let number, _) in batch.outputs {
            settle(number, error.leavesDoubt || isStopping ? .unknown : .unchanged(Self.notKept))
        }
        guard !error.leavesDoubt else {
            channels.closeAll()
            return settleHandOver(isWritten: false)
        }
        if !isStopping {
            for output in batch.outputs {
                switch output {
                case .respond(let connection, let id, _): carryOut(.refuse(connection, id, Self.notKept))
                case .refuse, .close: carryOut(output)
                case .event, .obeyed, .note, .traced, .push, .persist: break
                }
            }
        }
        for then in batch.waiting { then(false) }
    }

    /// Ends the attempts if another process owns the store; else tries again in a moment.
    private func recover(after error: any Error) {
        guard let error = error as? StoreError, error.code == .fenced else { return recover() }
        journal?.stopConfirming()
        fence = error
        taken?(error)
    }

    /// How often a disk that failed is tried.
    private static let recoveryInterval = TimeAmount.seconds(1)

    private func recover() {
        loop.assumeIsolated().scheduleTask(in: Self.recoveryInterval) { [weak self] in
            guard let self, let journal, !isStopping else { return }
            journal.recover().assumeIsolated().whenComplete { [weak self] result in
                guard let self else { return }
                switch result {
                case .success(let saved): goOn(with: saved)
                case .failure(let error): recover(after: error)
                }
            }
        }
    }

    private func goOn(with saved: Saved) {
        var fresh = setup.makeCore()
        fresh.restore(saved, at: now)
        fresh.goOn(from: core.counters)
        core = fresh
        failure = nil
        logger.notice("The database can be written again")
        for connection in connections.socketIDs { handle(.connected(connection)) }
        handle(.timer)
    }

    private static let behind = RPCError(
        .tooManyRequests, "The exchange is waiting for its disk and changed nothing; try again in a moment.")
    private static let notKept = RPCError(
        .internalError, "The exchange cannot write its database and changed nothing; try again later.")

    // MARK: - Channels and counters

    /// Keeps a TCP connection in mind, so that ``stop(isFollowed:)`` finds it.
    func track(_ channel: any Channel) { channels.track(channel) }

    func countRefusedLogin() { counters.refusedLogins += 1 }
    func countCrowdedDisk() { counters.crowdedDisk += 1 }
    func countDeadLink() { counters.deadLinks += 1 }
    func countBadFrame() { counters.badFrames += 1 }

    /// The counters now.
    func snapshot() -> ExchangeCounters {
        var snapshot = counters
        snapshot.connections = channels.total
        snapshot.openConnections = channels.count
        snapshot.refusedConnections = admission?.refused ?? 0
        snapshot.shedConnections = admission?.shed ?? 0
        snapshot.crowdedOut = admission.map { $0.strangers.crowdedOut + $0.messages.crowdedOut } ?? 0
        let counted = core.counters
        snapshot.openSessions = core.openSessions
        snapshot.openCalls = core.openCalls
        snapshot.openStreams = streams?.counts.open ?? 0
        snapshot.lateCandidates = streams?.counts.lateCandidates ?? 0
        snapshot.sessions = counted.sessions
        snapshot.requests = counted.requests
        snapshot.refusals = counted.refusals
        snapshot.malformed = counted.malformed
        snapshot.events = counted.events
        snapshot.invites = counted.invites
        snapshot.calls = counted.calls
        snapshot.pushes = counted.pushes
        snapshot.deadPushes = counted.deadPushes
        snapshot.keptBytes = core.keptBytes
        snapshot.journalBytes = journal?.bytes ?? 0
        snapshot.sendBufferBytes = sendBuffers.total
        snapshot.turnBytes = turns.bytes
        snapshot.slowClients = sendBuffers.dropped
        snapshot.overBudget = counted.overBudget
        snapshot.overload = counted.overload
        snapshot.unkeptEvents = counted.unkeptEvents
        snapshot.commits = journal?.commits ?? 0
        snapshot.droppedTraces = traces?.made.dropped ?? 0
        return snapshot
    }

    private func closeSockets() {
        for socket in connections.allSockets { socket.close(.goingDown) }
    }

    /// How long clients have to move before the goodbye.
    private static let moving = TimeAmount.seconds(1)

    /// How long clients have to close after the goodbye.
    private static let farewell = TimeAmount.milliseconds(500)

    /// How long the other end of a TLS connection has to close it in turn.
    private static let closing = TimeAmount.milliseconds(250)

    /// Ends the work so that another process can continue it at once: what was accepted is written and answered, and nothing more is
    /// accepted. Sessions are left as by a kill, to be resumed there.
    ///
    /// - Parameter url: The WebSocket's address of that process, to which ``stop(isFollowed:)`` asks clients to move.
    func handOver(to url: String? = nil) -> EventLoopFuture<Void> {
        endWork()
        guard let journal, !givesUpDatabase else { return loop.makeSucceededVoidFuture() }
        keepFarewells(to: url)
        givesUpDatabase = true
        // What comes meanwhile is not waited for: under load there is always more.
        let written = loop.makePromise(of: Void.self)
        handOvers.append(written)
        journal.afterWriting { [weak self, journal] isWritten in
            self?.failure = StoreError(stopped: journal.path)
            self?.settleHandOver(isWritten: isWritten)
        }
        return written.futureResult
    }

    /// Readies what ``handOver(to:)`` says last: events have numbers, which are reserved for many at once, so the last write is short.
    func prepareHandOver() -> EventLoopFuture<Void> {
        guard let journal, failure == nil, !isStopping else { return loop.makeSucceededVoidFuture() }
        carryOut(all: journal.take(moves(to: nil).others))
        let written = loop.makePromise(of: Void.self)
        handOvers.append(written)
        journal.afterWriting { [weak self] isWritten in self?.settleHandOver(isWritten: isWritten) }
        return written.futureResult
    }

    /// What a hand-over waits for is written, or never will be.
    private func settleHandOver(isWritten: Bool) {
        // The numbers of events that were not written are the next owner's to give.
        if !isWritten { farewells = [] }
        let waiting = handOvers
        handOvers = []
        for promise in waiting { promise.succeed() }
    }

    /// The numbers of these events are this owner's, and the last ones: what reserves them is written with what was accepted before, so
    /// that no other owner gives them again, and nothing is sent after.
    private func keepFarewells(to url: String?) {
        guard failure == nil else { return }
        let moves = moves(to: url)
        farewells = moves.events
        carryOut(all: journal?.take(moves.others) ?? [])
    }

    private func moves(to url: String?) -> (events: [ExchangeCore.Output], others: [ExchangeCore.Output]) {
        var outputs: [ExchangeCore.Output] = []
        core.handle(.move(within: .zero, to: url), at: now, into: &outputs)
        let isEvent = outputs.map { if case .event = $0 { true } else { false } }
        return (
            zip(outputs, isEvent).compactMap { $1 ? $0 : nil }, zip(outputs, isEvent).compactMap { $1 ? nil : $0 }
        )
    }

    private func endWork() {
        guard !isStopping else { return }
        isStopping = true
        timer.cancel()
        journal?.stopConfirming()
        streams?.stop()
        admission?.stop()
        handle(.goingDown)
    }

    /// Says goodbye to every client, and closes what is still open half a second later: over TLS in order, and a moment later without
    /// waiting for a peer that does not read.
    ///
    /// - Parameter isFollowed: Whether another exchange serves: then clients may connect there before their sockets are closed.
    func stop(isFollowed: Bool = false) -> EventLoopFuture<Void> {
        endWork()
        if givesUpDatabase { farewells.forEach { carryOut($0) } } else { requestMoves(within: .zero, to: nil) }
        let moving = isFollowed ? Self.moving : .zero
        if isFollowed {
            loop.assumeIsolated().scheduleTask(in: moving) { [weak self] in self?.closeSockets() }
        } else {
            closeSockets()
        }
        for time in [Self.farewell, Self.farewell + Self.closing] {
            loop.assumeIsolated().scheduleTask(in: moving + time) { [weak self] in self?.channels.closeAll() }
        }
        return channels.closed(on: loop)
            .assumeIsolated()
            .flatMap { [journal, loop] in journal?.settled() ?? loop.makeSucceededVoidFuture() }
            .nonisolated()
    }

    // MARK: - The log

    private func log(_ note: ExchangeNote) {
        guard logger.logLevel <= note.level else { return }
        logger.log(level: note.level, note.message, metadata: note.metadata)
    }
}
