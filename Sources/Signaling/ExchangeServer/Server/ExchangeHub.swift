import ExchangeCore
import HTTPTransport
import JSON
import Logging
import NIOCore
import SignalWire
import Core

/// Drives the core: gives it what sockets and clock bring, and does what it puts out.
///
/// Lives on one event loop, on which everything of one exchange runs; that makes it ordered without locks.
final class ExchangeHub {
    let loop: any EventLoop
    let logger: Logger
    private(set) var configuration: ExchangeConfiguration
    var core: ExchangeCore
    private(set) var signedTokens: SignedTokenReader
    /// Those of the users file, as it was read last.
    var fileUsers: [Account]
    /// `nil` if the exchange keeps nothing on disk.
    let journal: CommitGate?
    /// Why the database cannot be written; all requests are refused until it can.
    var failure: StoreError?
    private(set) var sockets: [ConnectionID: SocketSession] = [:]
    /// Connections that are no sockets: those of streams, with who pays for them.
    private(set) var attached: [ConnectionID: Payer] = [:]
    /// Decides who may come, and counts who may not.
    var admission: Admission?
    /// Receives what the core delivers to attached connections.
    weak var streams: StreamService?
    private var channels: [ObjectIdentifier: any Channel] = [:]
    private var lastConnection: UInt64 = 0
    /// `nil` if pushes are off. Its creator stops it.
    let pushSender: PushSender?
    var counters = ExchangeCounters()
    private let clock: (() -> Instant)?
    /// Reads a message from a socket.
    let reader: (ExchangeHub, [UInt8], ConnectionID) -> ExchangeCore.Input
    private var timer: (due: Instant, scheduled: Scheduled<Void>)?
    /// Inputs that came in while outputs of an earlier one were being carried out, oldest first.
    var waiting: [ExchangeCore.Input] = []
    var isBusy = false
    /// What clients ask for and must wait for its turn.
    let turns: WorkQueue
    /// What waits for clients that read slowly.
    let sendBuffers: SendBufferPool
    /// A request over HTTP is being served.
    var isInTask = false
    /// What the turn has cost so far, and when it began.
    var (cost, turnBegan) = (WorkCost(), Instant.zero)
    /// Start of the current round, or the end of the previous round's write, excluding service time; and the newest
    /// batch that was handed to the disk in this round.
    var (roundBegan, roundBatch) = (Instant.zero, 0)
    /// The next turn of the event loop begins a round.
    var isRoundPlanned = false
    /// The newest request over HTTP.
    var lastRequest: UInt64 = 0
    /// Set once by ``stop()``.
    private(set) var isStopping = false

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
        self.clock = clock
        self.reader = reader
        self.logger = logger
        self.configuration = configuration
        self.journal = journal?.0
        signedTokens = SignedTokenReader(
            configuration.apiKeys, maximumLifetime: configuration.signedTokenLifetime.seconds)
        fileUsers = configuration.fileUsers
        self.pushSender = pushSender
        let shares = configuration.memoryShares
        turns = WorkQueue(WorkQueue.Queue.Limits(totalBytes: shares.turns))
        sendBuffers = SendBufferPool(.init(total: shares.sendBuffers))
        core = Self.makeCore(configuration, fileUsers: configuration.fileUsers)
        guard let (journal, saved) = journal else { return }
        core.restore(saved, at: now)
        // Rooms that outlive the process contain connections' names.
        lastConnection = saved.run << 32
        journal.finish = { [weak self] batch, error in self?.written(batch, error) }
        // What follows from the restart is written before the next one.
        handle(.timer)
    }

    /// What may change while the exchange runs is as here from now on. Sessions, invites and calls stay.
    func adopt(_ configuration: ExchangeConfiguration) {
        let before = self.configuration
        self.configuration = configuration
        signedTokens = SignedTokenReader(
            configuration.apiKeys, maximumLifetime: configuration.signedTokenLifetime.seconds)
        core.adopt(Self.settings(configuration))
        // Those of the users file are its watch's business: what was read for this configuration may be older.
        guard configuration.users != before.users else { return }
        replaceFileUsers(fileUsers)
    }

    static func makeCore(_ configuration: ExchangeConfiguration, fileUsers: [Account]) -> ExchangeCore {
        var generator = SystemRandomNumberGenerator()
        return ExchangeCore(
            accounts: configuration.users + fileUsers, settings: settings(configuration),
            run: RunSeed(using: &generator))
    }

    private static func settings(_ configuration: ExchangeConfiguration) -> ExchangeCore.Settings {
        var settings = ExchangeCore.Settings()
        settings.keepalive = configuration.keepalive
        settings.resumeWindow = configuration.resumeWindow
        settings.tokenLifetime = configuration.tokenLifetime
        settings.refreshLifetime = configuration.refreshLifetime
        settings.signedTokenLifetime = configuration.signedTokenLifetime
        settings.tokenNotice = configuration.tokenNotice
        settings.messages = TokenBucket.Rate(
            burst: configuration.messageBurst, perSecond: Double(configuration.messagesPerSecond))
        settings.tellsPresence = configuration.tellsPresence
        settings.trunks = configuration.trunks
        settings.kept.total = configuration.memoryShares.kept
        settings.tokens = configuration.memoryShares.tokens
        settings.recordRetention = configuration.callRecordRetention
        settings.deadPushRetention = configuration.push.deadRetention
        settings.push.kinds = Set(configuration.push.webhooks.map(\.kind))
        settings.push.parallel = configuration.push.parallelRequests
        settings.push.life = configuration.push.life
        return settings
    }

    var now: Instant { clock?() ?? Instant(nanoseconds: Int64(clamping: loop.now.uptimeNanoseconds)) }

    // MARK: - Inputs

    /// Gives the core one input and carries out what comes of it, and of inputs that this causes in turn.
    func handle(_ input: ExchangeCore.Input) {
        waiting.append(input)
        if !isBusy { work() }
    }

    /// Carries out the outputs that are ready, handles the waiting inputs and those that result from it, and then the
    /// work whose turn it is.
    func work(_ outputs: [ExchangeCore.Output] = []) {
        isBusy = true
        for output in outputs { carryOut(output) }
        repeat {
            handleWaiting()
            chargeTurn()
        } while beginNext()
        isBusy = false
        planRound()
        setTimer()
    }

    /// Handles the inputs that wait.
    func handleWaiting() {
        var outbox: [ExchangeCore.Output] = []
        var next = 0
        while next < waiting.count {
            let input = waiting[next]
            next += 1
            if !refuses(input) { core.handle(input, at: now, into: &outbox) }
            cost.add(outbox)
            for output in journal?.take(outbox) ?? outbox { carryOut(output) }
            outbox.removeAll(keepingCapacity: true)
        }
        waiting.removeAll(keepingCapacity: true)
    }

    /// Knows a new socket from now on.
    func add(_ socket: SocketSession) -> ConnectionID {
        let connection = reserveConnection()
        sockets[connection] = socket
        handle(.connected(connection))
        if isStopping { socket.close(.goingDown) }
        return connection
    }

    /// Forgets a socket.
    func remove(_ connection: ConnectionID) {
        guard sockets.removeValue(forKey: connection) != nil else { return }
        submit(.disconnected(connection), from: connection, isOptional: false)
    }

    /// A number for a connection, given once.
    func reserveConnection() -> ConnectionID {
        lastConnection += 1
        return ConnectionID(number: lastConnection)
    }

    /// Knows a connection that is no socket from now on, with a session for `endpoint` that `token` has opened.
    func attach(_ connection: ConnectionID, as endpoint: Endpoint, token: SecretDigest) {
        attached[connection] = Payer(endpoint.principal)
        handle(.attached(connection, endpoint, token: token))
    }

    /// Ends such a connection's session, and forgets it.
    func detach(_ connection: ConnectionID) {
        guard let payer = attached.removeValue(forKey: connection) else { return }
        let end = ExchangeCore.Input.request(connection, .string("end"), .sessionEnd(SessionEnd()))
        for input in [end, .disconnected(connection)] {
            submit(.input(input, WorkCost()), weight: 1, on: .connection(connection), of: payer, isOptional: false)
        }
    }

    /// Delivers a payload to every device of a user that is online (CONN-11).
    func notify(user: UserID, payload: JSONValue) { handle(.notify(user, payload)) }

    /// Asks every device to connect again (CONN-12).
    func requestMoves(within time: Duration, to url: String?) { handle(.move(within: time, to: url)) }

    // MARK: - Outputs

    func carryOut(_ output: ExchangeCore.Output) {
        switch output {
        case .respond(let connection, let id, let response):
            if deliver(.response(id, response), to: connection) { return }
            if case .session = response {
                sockets[connection]?.admit(core.payer(on: connection) ?? .strangers)
            }
            send(to: [connection]) { () throws(SignalCodingError) in try response.message(id: id) }
        case .refuse(let connection, let id, let error):
            if deliver(.refusal(id, error), to: connection) { return }
            sockets[connection]?.send(SignalCoding.failure(id: id, error))
        case .event(let connections, let event):
            let others = connections.filter { attached[$0] == nil || !deliver(.event(event.event), to: $0) }
            guard !others.isEmpty else { return }
            send(to: others) { event.message }
        case .close(let connection, let reason):
            if deliver(.closed, to: connection) { return }
            sockets[connection]?.close(reason)
        case .note(let note): log(note)
        case .push(let push): post(push)
        case .persist: break
        }
    }

    /// Delivers to an attached connection; returns false for sockets.
    func deliver(_ delivery: StreamTable.Delivery, to connection: ConnectionID) -> Bool {
        guard attached[connection] != nil else { return false }
        streams?.deliver(delivery, to: connection)
        return true
    }

    private func send(to connections: [ConnectionID], _ message: () throws(SignalCodingError) -> [UInt8]) {
        do {
            let bytes = try message()
            // Only data from an earlier version, which had no such limit, can be this long.
            guard bytes.count <= SignalLimits.deliveredBytes else {
                logger.error("Dropped a message that is too long for clients", metadata: ["bytes": "\(bytes.count)"])
                return
            }
            for connection in connections { sockets[connection]?.send(bytes) }
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
        guard due != timer?.due else { return }
        timer?.scheduled.cancel()
        timer = due.map { due in
            let deadline = NIODeadline.uptimeNanoseconds(UInt64(clamping: due.nanoseconds))
            let scheduled = loop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
                guard let self else { return }
                timer = nil
                meetDeadlines()
            }
            return (due, scheduled)
        }
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

    // MARK: - Channels and counters

    /// Keeps a TCP connection in mind, so that ``stop()`` finds it.
    func track(_ channel: any Channel) {
        channels[ObjectIdentifier(channel)] = channel
        counters.connections += 1
        channel.closeFuture.assumeIsolated().whenComplete { [weak self] _ in
            self?.channels[ObjectIdentifier(channel)] = nil
        }
    }

    func countRefusedLogin() { counters.refusedLogins += 1 }
    func countDeadLink() { counters.deadLinks += 1 }
    func countBadFrame() { counters.badFrames += 1 }

    /// The counters now.
    func snapshot() -> ExchangeCounters {
        var snapshot = counters
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
        return snapshot
    }

    /// How long clients have to close after the goodbye.
    private static let farewell = TimeAmount.milliseconds(500)

    /// Says goodbye to every client, and closes what is still open half a second later.
    func stop() -> EventLoopFuture<Void> {
        isStopping = true
        timer?.scheduled.cancel()
        streams?.stop()
        admission?.stop()
        handle(.goingDown)
        requestMoves(within: .zero, to: nil)
        for socket in sockets.values { socket.close(.goingDown) }
        loop.assumeIsolated().scheduleTask(in: Self.farewell) { [weak self] in
            for channel in self?.channels.values ?? [:].values { channel.close(promise: nil) }
        }
        return EventLoopFuture.andAllComplete(channels.values.map(\.closeFuture), on: loop)
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
