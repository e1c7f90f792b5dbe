internal import BotCalls
internal import Call
internal import CallBridging
public import CallControl
internal import CallDiagnosis
public import Logging
public import CallMedia
internal import MediaEngine
public import Realtime
public import SignalingClient
internal import VoiceActivity
internal import Core
public import Tracing

/// A logged-in device: receives invites, answers by policy, makes calls, and reports events.
///
/// It decides nothing about a call itself: each call's session does, and the device carries out the session's outputs.
public actor Device {
    /// The events, in order. The first listener receives all of them from the beginning.
    public nonisolated let events = DeviceEvents()

    private(set) var configuration: DeviceConfiguration
    let service: any SignalingService
    private let logger: Logger
    /// What the device has for the media of its calls.
    var media: MediaResources
    /// What it shares with the other devices of its process.
    let share: MediaShare
    var calls = CallTable()
    var plainInvites = PlainInvites()
    private(set) var signaling = SignalingState()
    private var drain = CallDrain()
    private let archive: CallArchive
    /// Has calls traced; nil if they are not.
    private var tracer: CallTracer?
    /// The programs, bots and ports that take part in calls.
    let participants: CallParticipants
    private var listeners: [Task<Void, Never>] = []
    /// Takes the counters of calls each second; nil without calls.
    private var observer: Task<Void, Never>?
    /// Whether old recordings and records are removed now and then.
    private var isTidied = false
    /// Whether the end of the device was requested, after which it does not connect.
    private var isClosed = false

    /// Opens the media sockets of a device that is not logged in yet.
    ///
    /// - Parameter mediaAddress: Where media is received, with the first worker's port or 0.
    public init(
        _ configuration: DeviceConfiguration, service: any SignalingService, mediaAddress: MediaAddress,
        logger: Logger
    ) throws(RealtimeError) {
        let share = try MediaShare(openedFor: configuration, at: mediaAddress, logger)
        try self.init(configuration, service: service, mediaAddress: mediaAddress, share, logger: logger)
    }

    /// Makes a device that is not logged in yet, and shares media with others.
    ///
    /// - Parameter mediaAddress: What its calls name as their address.
    public init(
        _ configuration: DeviceConfiguration, service: any SignalingService, mediaAddress: MediaAddress,
        sharing media: SharedMedia, logger: Logger
    ) throws(RealtimeError) {
        let share = MediaShare(of: media, isExclusive: false)
        try self.init(configuration, service: service, mediaAddress: mediaAddress, share, logger: logger)
    }

    private init(
        _ configuration: DeviceConfiguration, service: any SignalingService, mediaAddress: MediaAddress,
        _ share: MediaShare, logger: Logger
    ) throws(RealtimeError) {
        self.configuration = configuration
        self.service = service
        self.logger = logger
        archive = CallArchive(configuration, logger)
        self.share = share
        media = MediaResources(
            configuration, engine: share.media.engine, address: mediaAddress, owner: share.owner)
        do throws(RealtimeError) {
            participants = try CallParticipants(configuration, in: share.media.hall)
        } catch {
            share.leave {}
            throw error
        }
    }

    /// Logs in, and returns when the device can be called.
    ///
    /// Events from the login on wait in ``events`` for the first listener.
    ///
    /// - Throws: ``SignalingError``: why the device is not logged in; it has been shut down.
    public static func login(
        _ configuration: DeviceConfiguration, program: DeviceProgram = DeviceProgram(version: "1"),
        logger: Logger = Logger(label: "handset.device")
    ) async throws(SignalingError) -> Device {
        let service = try configuration.makeService(program: program, logger: logger)
        let device: Device
        do {
            device = try Device(
                configuration, service: service, mediaAddress: MediaAddress(for: configuration), logger: logger)
        } catch {
            throw SignalingError(.mediaFailed, activity: "open the media sockets", cause: "\(error)")
        }
        do throws(SignalingError) {
            try await device.connect()
        } catch {
            await device.shutDown()
            throw error
        }
        return device
    }

    /// Logs in and connects; returns when the device can be called. Throws if the end of the device was requested.
    public func connect() async throws(SignalingError) {
        try expectOpen()
        if listeners.isEmpty {
            listeners = [
                Task { [service] in for await event in service.events { self.handle(event) } },
                Task { [events = share.events] in for await event in events { self.handle(event) } },
                Task { [inputs = participants.inputs] in for await input in inputs { self.handle(input) } },
            ]
            if let mailbox = service.mailboxSignaling, !configuration.mailboxes.isEmpty {
                listeners.append(
                    Task { [logger] in
                        await NotifiedMailboxes.keep(mailbox, logger) { await self.configuration.notifiedMailboxes }
                    })
            }
            try await participants.listen(logger)
            if isClosed { await participants.bots?.finish() }
        }
        let folders = allFiles.map { files in Task { await files.prepareRecordings() } }
        await (folders + participants.recoverMessages()).wait(within: Self.longestDiskWait)
        // Before the first call: the first certificate takes the longest to make.
        _ = try? media.currentIdentity()
        // The end may be requested while this waits for a disk, or for the service.
        try expectOpen()
        try await service.connect()
        if isClosed {
            await service.disconnect()
            try expectOpen()
        }
        let user = await service.session?.user
        signaling.noteLogin(of: user)
        // Not before: a certificate that was accepted shows that the clock is not years off.
        if !isTidied {
            isTidied = true
            listeners.append(Task { [archive] in await archive.keepTidy { await self.allFiles } })
        }
        for room in configuration.allRooms { try await rooms.join(room) }
        await lookUpServers().wait(within: Self.longestNameLookup)
    }

    /// How long a device waits for its servers' names before it is ready: its first call may need a relay, and name servers may not answer.
    private static let longestNameLookup = Duration.seconds(1)

    /// How long it waits for the folders of its recordings and messages, whose disk may not answer.
    private static let longestDiskWait = Duration.seconds(2)

    private func expectOpen() throws(SignalingError) {
        guard isClosed else { return }
        throw SignalingError(.disconnected, activity: "connect", cause: "the end of the device was requested meanwhile")
    }

    /// Takes the servers that the service and the configuration name now, and begins to look up their names. A call uses the
    /// addresses that are known when it begins.
    ///
    /// - Returns: The lookups.
    @discardableResult
    func lookUpServers() async -> [Task<Void, Never>] {
        let number = media.servers.beginLookup()
        let servers = await service.iceServers + configuration.media.iceServers
        return ICEServerLookup.groups(of: media.servers.take(servers, of: number)).map { names in
            Task {
                let answers = await ICEServerLookup.answers(to: names)
                media.servers.take(answers)
            }
        }
    }

    /// Calls a user.
    ///
    /// - Parameters:
    ///   - audio: What the call plays and records.
    ///   - onlineOnly: Whether it fails at once if no device of the user is connected; nil: as configured.
    public func call(
        _ user: UserID, audio: AudioBehaviour, timeToLive: Duration?? = .none, onlineOnly: Bool? = nil
    ) -> CallID {
        call([user], audio: audio, timeToLive: timeToLive, onlineOnly: onlineOnly)
    }

    /// Calls several users at once, with a `group` in that group. The first to accept gets the call. The others stop
    /// ringing; one that accepts before it knows this is hung up with `acceptedElsewhere`.
    ///
    /// - Parameter users: One to 32.
    public func call(
        _ users: [UserID], in group: GroupID? = nil, audio: AudioBehaviour, timeToLive: Duration?? = .none,
        onlineOnly: Bool? = nil
    ) -> CallID {
        begin(maker.outgoing(to: users, in: group, audio: audio, timeToLive: timeToLive, onlineOnly: onlineOnly))
    }

    /// Calls a user for a caller of a telephone network. An exchange takes that from its trunks alone.
    ///
    /// - Parameters:
    ///   - cause: The span of the call that this one carries on; nil if there is none.
    ///   - hops: How many calls led to this one.
    public func call(
        _ user: UserID, audio: AudioBehaviour, for caller: TrunkCall, timeToLive: Duration?? = .none,
        within cause: TraceContext? = nil, after hops: CallHops = CallHops()
    ) -> CallID {
        begin(maker.outgoing(to: [user], audio: audio, timeToLive: timeToLive, for: caller, after: hops), for: cause)
    }

    /// Has calls traced that begin from now on.
    public func traceCalls(with tracer: CallTracer) { self.tracer = tracer }

    /// The span of a call, for what it causes elsewhere; nil if calls are not traced.
    public func traceContext(of id: CallID) -> TraceContext? { calls[id]?.session.trace?.context }

    /// How many calls led to a call; nil if there is no such call.
    public func hops(of id: CallID) -> CallHops? { calls[id]?.session.hops }

    /// What is said of a call that comes from, or goes to, a telephone network; nil for others, and for calls that this device places.
    public func trunkCall(of id: CallID) -> TrunkCall? { calls[id]?.session.trunk }

    /// Whether an incoming call waits for an answer. One that the device has refused itself does not, though it was reported.
    public func isRinging(_ id: CallID) -> Bool { calls[id]?.session.progress == .ringing }

    /// Whether a call of this device has not ended. A call whose sound is still being stored, and whose end is not reported yet, has.
    public func goesOn(_ id: CallID) -> Bool { calls[id].map { $0.session.record == nil } ?? false }

    /// Calls a user, with the behaviour of the section `behaviour`.
    public func call(_ user: UserID) -> CallID { call([user], audio: files.audio(to: user)) }

    /// The same, if the device takes calls, is connected, and has room: no other call can take that room meanwhile.
    public func placeCall(to user: UserID) throws(CallObstacle) -> CallID {
        let audio = files.audio(to: user)
        if let obstacle = obstacle(toCallWith: placedPart(audio)) { throw obstacle }
        return call([user], audio: audio)
    }

    /// Declines a call that rings.
    ///
    /// - Parameter cause: The cause that the caller receives beside the reason.
    public func reject(_ id: CallID, _ reason: RejectReason = .declined, cause: CallFailureCause? = nil) {
        feed(.user(.reject(reason, cause: cause)), to: id)
    }

    /// Hangs up, cancels or declines, whichever fits.
    public func hangUp(_ id: CallID) { feed(.user(.hangUp(because: .request)), to: id) }

    /// Takes a call that rings.
    public func answer(_ id: CallID) { feed(.user(.answer(after: .zero)), to: id) }

    /// The report of a call's media so far; nil if it has none.
    public func mediaReport(on id: CallID) async -> MediaReport? {
        guard let media = calls[id]?.session.stream else { return nil }
        return await engine.report(on: media)
    }

    /// What the record of a call that has not ended would be now; nil if there is none of this name, or it is ending.
    public func runningRecord(_ name: String) async -> KeptCall? {
        guard let call = calls.inOrder.first(where: { $0.journalKey == name && $0.session.record == nil }) else {
            return nil
        }
        let report = await mediaReport(on: call.session.id)
        return archive.snapshot(of: calls[call.session.id] ?? call, report)
    }

    /// Hangs up all calls, says goodbye to the service and stops. Calls' last events come before `events` ends.
    public func shutDown() async {
        isClosed = true
        await endCalls()
        await service.disconnect()
        await close()
    }

    /// Ends the calls, revokes the login at the service, removes it and the keys here, and stops (AUTH-9).
    ///
    /// - Throws: ``SignalingError`` if the service could not be notified; everything is removed here, and the device stops,
    ///   nevertheless.
    public func logOut() async throws(SignalingError) {
        isClosed = true
        await endCalls()
        var failure: SignalingError?
        do throws(SignalingError) {
            try await service.logOut()
        } catch {
            failure = error
        }
        media.forgetIdentity()
        signaling.noteLogout()
        await close()
        if let failure { throw failure }
    }

    /// Invites of the device that are no calls.
    public nonisolated var invites: DeviceInvites { DeviceInvites(self) }

    /// The rooms of the device's service.
    public nonisolated var rooms: DeviceRooms { DeviceRooms(service) }

    /// The groups of users at the device's service.
    public nonisolated var groups: DeviceGroups { DeviceGroups(service) }

    /// The media that this device has, or shares: the sound card with its volume, and how the workers are.
    public nonisolated var sharedMedia: SharedMedia { share.media }

    /// Unregisters the device: it receives no invites until it connects again, and no pushes (DEV-2). Logging out alone
    /// does not change pushes.
    public func unregister() async throws(SignalingError) { try await service.unregister() }

    /// Takes no more calls, and returns when those that there are have ended, or after `limit`.
    public func finishCalls(within limit: Duration) async {
        drain.begin()
        feed(queues: .close(true))
        await allCallsEnded(within: limit)
    }

    /// Takes no more calls until that is taken back, while the present ones continue. A device that ends stays so.
    ///
    /// - Returns: Whether it takes no calls now.
    @discardableResult
    public func setDraining(_ isDraining: Bool) -> Bool {
        drain.pause(isDraining)
        feed(queues: .close(drain.hasBegun))
        return drain.hasBegun
    }

    /// Notifies the service that the machine's network has changed, so that it retries at once, and makes calls without ICE
    /// choose again the address from which they send.
    public func networkChanged() async {
        engine.networkChanged()
        await service.networkChanged()
    }

    /// Takes another configuration for calls that begin from now on. Present calls continue as they began.
    ///
    /// - Returns: Whether its behaviour was taken, too; otherwise it needs what a device makes at its start.
    public func adopt(_ other: DeviceConfiguration) -> Bool {
        let isTaken = configuration.adopt(other)
        participants.adopt(configuration)
        return isTaken
    }

    /// Whether the device and its media workers work, for a watchdog that asks every few seconds: false if a worker has not
    /// answered since this was last asked, or does not run its calls. Returns only if the device itself works.
    public func isAlive() -> Bool { engine.areWorkersAlive() }

    private func endCalls() async {
        drain.begin()
        feed(queues: .close(true))
        noteForRecords(.shutDown)
        for id in calls.ids { feed(.user(.hangUp(because: nil)), to: id) }
        await allCallsEnded(within: .milliseconds(600))
        for id in calls.ids { feed(.service(.event(.disconnected)), to: id) }
    }

    private func close() async {
        await allCallsEnded(within: .milliseconds(200))
        plainInvites.removeAll()
        share.leave {
            for id in calls.ids { feed(.engine(.deviceEnds), to: id) }
            for leg in participants.legs.media { engine.stop(leg) }
        }
        for id in calls.ids { keepWaitingRecord(of: id) }
        await participants.finish()
        observer?.cancel()
        for listener in listeners { listener.cancel() }
        await archive.close()
        await share.close()
        events.hub.finish()
    }

    // MARK: Events of the service, and the calls that they concern

    func handle(_ event: SignalingEvent) {
        signaling.note(event)
        noteForRecords(event)
        if let (invite, event) = event.aboutInvite { return feed(event, about: invite) }
        switch event {
        case .inviteReceived(let invite): receive(invite)
        case .inviteSent(let invite, let key):
            guard let id = calls.id(ofKey: key) else {
                return handle(.event(.inviteSent(invite, invitees: [])), for: invite)
            }
            feed(.service(.event(.inviteSent(invite, invitees: []))), to: id)
        case .inviteTimedOut(let invite, let invitees):
            // Members of a group are notified of others whose time is up, too.
            let isIncoming = calls.id(of: invite).map { calls[$0]?.session.isOutgoing == false } ?? false
            guard !isIncoming || signaling.isUser(among: invitees) else { return }
            feed(.timedOut(invitees), about: invite)
        case .callSignal(let signal) where signal.kind == .probe: answerProbe(signal)
        case .callSignal(let signal):
            guard let kind = signal.kind, CallSession.takes(kind, by: traits), let id = calls.id(of: signal.invite)
            else {
                return publish(.signaling(event))
            }
            feed(.peer(signal), to: id)
        case .inviteModified(let invite, let data): publish(.invite(.modified(invite, data: data)))
        case .inviteMissed(let invite, let payload): publish(.invite(.missed(invite, payload: payload)))
        case .iceServersChanged:
            publish(.signaling(event))
            Task { await lookUpServers() }
        case .connected, .reconnecting, .reconnected, .disconnected, .error, .connectionCreated,
            .connectionDestroyed, .roomSignal, .streamDropped, .streamResumed, .groupChanged,
            .roomLost, .moveRequested, .notification, .unknown,
            // Handled above.
            .inviteHandled, .inviteCancelled, .inviteAccepted, .inviteRejected, .inviteEnded, .callEnded:
            publish(.signaling(event))
        }
    }

    /// The peer of a call probes this device, which may not know the call any more because it was started again: then it hangs up,
    /// so that the peer does not wait for it.
    private func answerProbe(_ signal: CallSignal) {
        guard calls.id(of: signal.invite) == nil, !plainInvites.knows(signal.invite) else { return }
        log.unknownCallIsProbed(signal.invite)
        let news = CallHangUp(invite: signal.invite, reason: .connectionLost, duration: .zero, peer: signal.from)
        requests.hangUp(news, for: self)
    }

    private func receive(_ invite: ReceivedInvite) {
        guard signaling.isNew(invite.id) else { return }
        guard invite.offer != nil, signaling.asksUser(invite) else { return takeInvite(invite) }
        if let replaced = calls.replacedCall(by: invite).flatMap({ calls[$0] }) {
            return receive(invite, replacing: replaced)
        }
        let rule = admission.rule(for: invite, at: MonotonicClock.wallTime)
        let outcome = rule?.outcome ?? AnswerRule.Outcome()
        let session = maker.incoming(invite, as: part(outcome.behaviour, outcome, from: invite), replacing: nil)
        add(session)
        calls[session.id]?.rule = rule
        calls[session.id]?.laterPart = outcome.sequel.map { part($0.behaviour, outcome, from: invite) }
        feed(.begin, to: session.id)
    }

    /// A call that takes the place of another one is decided already, and has the same part.
    private func receive(_ invite: ReceivedInvite, replacing replaced: ActiveCall) {
        var part = CallFiles.part(continuing: replaced.session.part, from: invite)
        // It is joined to the same call, and what took part in the former call has ended with that.
        if participants.bridges.partner(of: replaced.session.id) != nil { part.audio.source = .silence }
        let session = maker.incoming(invite, as: part, replacing: replaced.session.id)
        add(session)
        calls[session.id]?.decidedBy = replaced.decidedBy
        feed(.begin, to: session.id)
    }

    /// The part of a call that comes in with the behaviour of this name.
    private func part(_ behaviour: String, _ outcome: AnswerRule.Outcome, from invite: ReceivedInvite) -> CallPart {
        let audio = files(of: behaviour).audio(from: invite)
        let rules = configuration.rules(for: audio, behaviour: behaviour, longest: outcome.maximumDuration)
        return CallPart(audio, rules)
    }

    private func feed(_ event: CallMachine.ServiceEvent, about invite: InviteID) {
        guard let id = calls.id(of: invite) else { return handle(.event(event), for: invite) }
        feed(.service(.event(event)), to: id)
    }

    // MARK: Shared by the parts of the device

    var engine: MediaEngine { media.engine }

    var log: CallLog { CallLog(logger) }

    var requests: CallRequests { CallRequests(service, logger) }

    var maker: CallMaker { CallMaker(configuration, traits, share.media) }

    var files: CallFiles { files(of: "") }

    /// The files of calls with the behaviour of this name.
    func files(of behaviour: String) -> CallFiles { CallFiles(configuration.behaviour(named: behaviour), logger) }

    /// Those of all behaviours with files that are kept for a time: once for each folder of recordings, and of each mailbox.
    var allFiles: [CallFiles] {
        var folders: Set<String> = []
        return configuration.allBehaviours.compactMap { _, behaviour in
            let isNew = behaviour.recordingFolder.map { folders.insert($0).inserted } ?? false
            guard isNew || behaviour.source.mailbox != nil else { return nil }
            return CallFiles(behaviour, logger)
        }
    }

    var card: CallCard { CallCard(share.media, configuration.audio) }

    /// Whether the device takes no more calls, and makes none.
    public var isDraining: Bool { drain.hasBegun }

    /// What calls that begin now do.
    public var behaviour: BehaviourConfiguration { configuration.behaviour }

    /// Which calls are answered now, and how.
    public var answerPolicy: AnswerPolicy { configuration.answer }

    func publish(_ event: DeviceEvent) {
        let before = events.hub.lostCount
        events.hub.publish(event)
        if events.hub.lostCount > before { log.eventIsLost() }
    }

    /// Adds a call that is about to begin.
    ///
    /// - Parameter cause: The span that it is made for; nil for that of the call that it takes the place of, if it does.
    func add(_ session: CallSession, for cause: TraceContext? = nil) {
        engine.warmUp()
        var call = ActiveCall(session)
        if let tracer {
            let cause = cause ?? session.predecessor.flatMap { traceContext(of: $0) }
            call.session.trace = tracer.begin(session, for: cause, foreign: traits.carriesForeignCalls)
        }
        call.journalKey = archive.begin(session)
        calls.add(call)
    }

    /// Adds a call, and begins it.
    @discardableResult
    func begin(_ session: CallSession, for cause: TraceContext? = nil) -> CallID {
        add(session, for: cause)
        feed(.begin, to: session.id)
        return session.id
    }

    /// What calls of the device's service are like.
    var traits: SignalingTraits { service.traits }

    /// Hands over the trace of an ended call.
    func endTrace(of call: CallSession, _ record: CallRecord) { tracer?.end(call, record, own: signaling.user) }

    /// Forgets an ended call.
    func forget(_ id: CallID) {
        calls[id]?.timer.cancel()
        calls.remove(id)
        participants.forget(id)
        if areCallsOver { drain.resume() }
    }

    /// How long a call's record waits for what its media counted. A worker stops a call within a frame; files may take longer.
    private static let longestReportWait = Duration.seconds(1)

    /// Puts a call's record on disk, once its media has stopped; the call is reported as ended after that (contract CALL-7).
    func keep(_ record: CallRecord, _ turns: TurnSummary?, of id: CallID) {
        calls[id]?.waitingRecord = ActiveCall.WaitingRecord(record: record, turns: turns, end: MonotonicClock.now)
        guard let call = calls[id], call.journalKey != nil, call.session.runningStream != nil else {
            return keepWaitingRecord(of: id)
        }
        Task { [weak self] in
            try? await Task.sleep(for: Self.longestReportWait)
            await self?.keepWaitingRecord(of: id)
        }
    }

    /// Puts the record of a call that has ended on disk, unless that was done.
    func keepWaitingRecord(of id: CallID) {
        guard let call = calls[id], let waiting = call.waitingRecord else { return }
        calls[id]?.waitingRecord = nil
        let source = call.session.audio.source.word
        var observation = call.observation
        if let report = call.session.mediaReport { observation.note(report, at: waiting.end) }
        let isKept = archive.end(
            call.journalKey, waiting, call.session.mediaReport, observation, source: source, decidedBy: call.decidedBy
        ) {
            [weak self] in
            Task { await self?.feed(.device(.recordKept), to: id) }
        }
        if !isKept { feed(.device(.recordKept), to: id) }
    }

    // MARK: Counters by second

    /// Has the counters of calls noted for their records each second, as long as there are calls with records.
    func observeCalls() {
        guard observer == nil, archive.keepsRecords else { return }
        observer = Task { [weak self] in
            while !Task.isCancelled {
                try? await Task.sleep(for: .seconds(1))
                guard await self?.noteCounters() == true else { return }
            }
        }
    }

    /// - Returns: Whether there are calls left.
    private func noteCounters() async -> Bool {
        let running = calls.inOrder.compactMap { call in call.session.runningStream.map { (call, $0) } }
        let due = running.filter { $0.0.observation.isDue(at: MonotonicClock.now) }.map { ($0.0.session.id, $0.1) }
        await withTaskGroup(of: (CallID, MediaReport?).self) { [engine] group in
            for (id, stream) in due { group.addTask { (id, await engine.report(on: stream)) } }
            for await (id, report) in group {
                if let report, calls[id]?.waitingRecord == nil {
                    calls[id]?.observation.note(report, at: MonotonicClock.now)
                }
            }
        }
        guard calls.inOrder.contains(where: { $0.session.runningStream != nil }) else {
            observer = nil
            return false
        }
        return true
    }

    /// Notes for the records of all calls that the connection to the service was lost, or is back.
    private func noteForRecords(_ event: SignalingEvent) {
        if case .reconnecting = event { noteForRecords(.serviceLost) }
        if case .reconnected = event { noteForRecords(.serviceBack) }
    }

    /// Notes for the records of all calls that something happened.
    func noteForRecords(_ kind: CallMoment.Kind) {
        for call in calls.inOrder { calls[call.session.id]?.observation.add(kind) }
    }

    // MARK: The end of calls

    /// A hang-up is being sent: the end of the session waits for it.
    func hangUpBegan() { drain.hangUpBegan() }

    /// The hang-up was sent, or could not be.
    func hangUpEnded() {
        drain.hangUpEnded()
        if areCallsOver { drain.resume() }
    }

    private var areCallsOver: Bool { calls.isEmpty && drain.areHangUpsSent }

    private func allCallsEnded(within limit: Duration) async {
        guard !areCallsOver else { return }
        let patience = Task {
            try? await Task.sleep(for: limit)
            if !Task.isCancelled { drain.resume() }
        }
        await withCheckedContinuation { drain.wait($0) }
        patience.cancel()
    }
}
