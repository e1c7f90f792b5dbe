internal import BotCalls
internal import Call
public import CallControl
public import Logging
public import CallMedia
internal import MediaEngine
public import Realtime
public import SignalingClient
internal import VoiceActivity
internal import Core

/// A logged-in device: receives invites, answers by policy, makes calls, and reports events.
///
/// It decides nothing about a call itself: each call's machine does, and the device carries out the machine's outputs.
public actor Device {
    /// The events, in order. The first listener receives all of them from the beginning.
    public nonisolated let events = DeviceEvents()

    private(set) var configuration: DeviceConfiguration
    let service: any SignalingService
    let logger: Logger
    /// What the device has for the media of its calls.
    var media: MediaResources
    /// What it shares with the other devices of its process.
    let shared: SharedMedia
    /// What the calls of this device are known by there.
    let owner: UInt16
    /// Whether the shared media ends with this device.
    let ownsMedia: Bool
    var calls = CallTable()
    var invites = PlainInvites()
    /// Legs to bots that are offered them by HTTP.
    var legs = BotLegs()
    private var signaling = SignalingState()
    private var drain = CallDrain()
    private let journal: CallJournal?
    private let mediaEvents: AsyncStream<MediaEvent>
    /// The programs, bots and ports that take part in calls.
    let participants: CallParticipants
    private var listeners: [Task<Void, Never>] = []
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
        let media = try SharedMedia([configuration], at: mediaAddress.bindAddress, isOnly: true, logger: logger)
        do throws(RealtimeError) {
            try self.init(
                configuration, service: service, mediaAddress: mediaAddress, media: media, ownsMedia: true,
                logger: logger)
        } catch {
            media.shutDown()
            throw error
        }
    }

    /// Makes a device that is not logged in yet, and shares media with others.
    ///
    /// - Parameter mediaAddress: What its calls name as their address.
    public init(
        _ configuration: DeviceConfiguration, service: any SignalingService, mediaAddress: MediaAddress,
        sharing media: SharedMedia, logger: Logger
    ) throws(RealtimeError) {
        try self.init(
            configuration, service: service, mediaAddress: mediaAddress, media: media, ownsMedia: false, logger: logger)
    }

    private init(
        _ configuration: DeviceConfiguration, service: any SignalingService, mediaAddress: MediaAddress,
        media shared: SharedMedia, ownsMedia: Bool, logger: Logger
    ) throws(RealtimeError) {
        self.configuration = configuration
        self.service = service
        self.logger = logger
        journal = configuration.device.callRecords.map {
            CallJournal(
                path: $0, application: configuration.account.appKey, days: configuration.device.callRecordDays,
                logger: logger)
        }
        participants = try CallParticipants(configuration)
        self.shared = shared
        self.ownsMedia = ownsMedia
        (owner, mediaEvents) = shared.join()
        media = MediaResources(configuration, engine: shared.engine, address: mediaAddress, owner: owner)
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
                Task { [mediaEvents] in for await event in mediaEvents { self.handle(event) } },
                Task { [inputs = participants.inputs] in for await input in inputs { self.handle(input) } },
            ]
            try await listenForBots()
            if isClosed { await bots?.finish() }
        }
        await wait(for: [Task { [files] in await files.prepareRecordings() }], within: Self.longestDiskWait)
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
            listeners.append(Task { await self.keepTidy() })
        }
        for room in configuration.allRooms { try await join(room: room) }
        await wait(for: lookUpServers(), within: Self.longestNameLookup)
    }

    /// How long a device waits for its servers' names before it is ready: its first call may need a relay, and name servers may not answer.
    private static let longestNameLookup = Duration.seconds(1)

    /// How long it waits for the folder of its recordings, whose disk may not answer.
    private static let longestDiskWait = Duration.seconds(2)

    private func wait(for tasks: [Task<Void, Never>], within limit: Duration) async {
        guard !tasks.isEmpty else { return }
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let patience = Task {
            try? await Task.sleep(for: limit)
            end.finish()
        }
        Task {
            for task in tasks { await task.value }
            end.finish()
        }
        for await _ in ends {}
        patience.cancel()
    }

    private func expectOpen() throws(SignalingError) {
        guard isClosed else { return }
        throw SignalingError(.disconnected, activity: "connect", cause: "the end of the device was requested meanwhile")
    }

    /// Removes recordings and records that are older, or more, than are kept: now and every hour, until it is cancelled. Nothing
    /// is removed by age while the clock cannot be right.
    private func keepTidy() async {
        while !Task.isCancelled {
            let isAgeKnown = ClockPlausibility.canBeRight(MonotonicClock.wallTime)
            if isAgeKnown { journal?.prune() }
            await files.removeOldRecordings(isAgeKnown: isAgeKnown)
            try? await Task.sleep(for: .seconds(3_600))
        }
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
        call(users, in: group, audio: audio, timeToLive: timeToLive, onlineOnly: onlineOnly, for: nil)
    }

    /// Calls a user for a caller of a telephone network. An exchange takes that from its trunks alone.
    public func call(
        _ user: UserID, audio: AudioBehaviour, for caller: TrunkCall, timeToLive: Duration?? = .none
    ) -> CallID {
        call(
            [user], in: nil, audio: audio, timeToLive: timeToLive, onlineOnly: nil, for: caller)
    }

    /// What is said of a call that comes from, or goes to, a telephone network; nil for others, and for calls that this device places.
    public func trunkCall(of id: CallID) -> TrunkCall? {
        calls[id]?.session.trunk
    }

    /// Whether an incoming call waits for an answer. One that the device has refused itself does not, though it was reported.
    public func isRinging(_ id: CallID) -> Bool { calls[id]?.session.progress == .ringing }

    /// Whether a call of this device has not ended. A call whose sound is still being stored, and whose end is not reported yet, has.
    public func goesOn(_ id: CallID) -> Bool { calls[id].map { $0.session.record == nil } ?? false }

    /// Makes a call in the place of one whose peer asked for it; it begins with `feed(.begin, to:)`.
    func makeCall(
        to user: UserID, audio: AudioBehaviour, _ origin: CallTransfer.Origin, inPlaceOf call: CallSession
    ) -> CallID {
        makeCall(
            [user], in: nil, audio: audio, timeToLive: .none, onlineOnly: nil, transfer: origin,
            inPlaceOf: (call.id, call.peer))
    }

    private func call(
        _ users: [UserID], in group: GroupID?, audio: AudioBehaviour, timeToLive: Duration??, onlineOnly: Bool?,
        for caller: TrunkCall?
    ) -> CallID {
        let id = makeCall(users, in: group, audio: audio, timeToLive: timeToLive, onlineOnly: onlineOnly, for: caller)
        feed(.begin, to: id)
        return id
    }

    private func makeCall(
        _ users: [UserID], in group: GroupID?, audio: AudioBehaviour, timeToLive: Duration??, onlineOnly: Bool?,
        for caller: TrunkCall? = nil, transfer: CallTransfer.Origin? = nil,
        inPlaceOf origin: (call: CallID, peer: UserID)? = nil
    ) -> CallID {
        let defaults = configuration.invites
        var options = InviteOptions(
            to: users, in: group, timeToLive: timeToLive ?? defaults.timeToLive, payload: defaults.payload,
            timeoutPayload: defaults.missedPayload, isOnlineOnly: onlineOnly ?? defaults.isOnlineOnly,
            idempotencyKey: IdempotencyKey(ours: newKey()))
        options.trunk = caller
        options.transfer = transfer
        let id = nextCall()
        add(
            CallSession(
                id, dialling: options, audio: audio, rules: rules(for: audio), traits: traits, inPlaceOf: origin,
                timings: callTimings))
        return id
    }

    /// Calls a user, with the configured behaviour.
    public func call(_ user: UserID) -> CallID {
        call([user], audio: files.audio(to: user, key: newKey()))
    }

    /// The same, if the device takes calls, is connected, and has room: no other call can take that room meanwhile.
    public func placeCall(to user: UserID) throws(CallObstacle) -> CallID {
        let audio = files.audio(to: user, key: newKey())
        if let obstacle = obstacle(toCallPlaying: audio.source) { throw obstacle }
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
        guard let media = calls[id]?.media.negotiated.id else { return nil }
        return await engine.report(on: media)
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

    /// Unregisters the device: it receives no invites until it connects again, and no pushes (DEV-2). Logging out alone
    /// does not change pushes.
    public func unregister() async throws(SignalingError) { try await service.unregister() }

    /// Takes no more calls, and returns when those that there are have ended, or after `limit`.
    public func finishCalls(within limit: Duration) async {
        drain.begin()
        await allCallsEnded(within: limit)
    }

    /// Takes no more calls until that is taken back, while the present ones continue. A device that ends stays so.
    ///
    /// - Returns: Whether it takes no calls now.
    @discardableResult
    public func setDraining(_ isDraining: Bool) -> Bool {
        drain.pause(isDraining)
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
        for id in calls.ids { feed(.user(.hangUp(because: nil)), to: id) }
        await allCallsEnded(within: .milliseconds(600))
        for id in calls.ids { feed(.service(.event(.disconnected)), to: id) }
    }

    private func close() async {
        await allCallsEnded(within: .milliseconds(200))
        invites.removeAll()
        leaveMedia()
        await participants.finish()
        for listener in listeners { listener.cancel() }
        await journal?.close()
        if ownsMedia { await shared.close() }
        events.hub.finish()
    }

    private func leaveMedia() {
        if ownsMedia {
            shared.withCard { $0.cancelFailureTone() }
            shared.shutDown()
        } else {
            for id in calls.ids { calls[id]?.media.release(on: engine) }
            for leg in legs.media { engine.stop(leg) }
        }
        shared.leave(owner)
    }

    // MARK: Shared by the parts of the device

    var engine: MediaEngine { media.engine }

    var log: CallLog { CallLog(logger) }

    var files: CallFiles { CallFiles(configuration.behaviour, logger) }

    var card: CallCard { CallCard(shared, configuration.audio) }

    /// Whether the device takes no more calls, and makes none.
    public var isDraining: Bool { drain.hasBegun }

    /// What calls that begin now do.
    public var behaviour: BehaviourConfiguration { configuration.behaviour }

    /// Which calls are answered now, and how.
    public var answerPolicy: AnswerPolicy { configuration.answer }

    /// Who this device is to the service; nil until it has connected.
    var user: UserID? { signaling.user }

    /// How the connection to the service is.
    var connection: DeviceStatus.Connection { signaling.connection }

    /// Notes what an event says of the connection to the service.
    func noteConnection(_ event: SignalingEvent) { signaling.note(event) }

    /// Notes an invite; false if it came before (contract INV-17).
    func isNew(_ invite: InviteID) -> Bool { signaling.isNew(invite) }

    /// Whether an invite asks this user. A member of a group gets invites that ask others, too (contract GRP-2).
    func asksUser(_ invite: ReceivedInvite) -> Bool { signaling.asksUser(invite) }

    /// Whether an event about these invitees, or all if it names none, is about this user.
    func isUser(among invitees: [UserID]) -> Bool { signaling.isUser(among: invitees) }

    /// A key that names an invite before the service has given it an id.
    func newKey() -> String {
        var generator = SystemRandomNumberGenerator()
        return String(generator.next(), radix: 36) + String(generator.next(), radix: 36)
    }

    func publish(_ event: DeviceEvent) {
        let before = events.hub.lostCount
        events.hub.publish(event)
        if events.hub.lostCount > before {
            logger.warning("An event of the device is lost: its program took none in time")
        }
    }

    /// A name that no call of the process has or had.
    func nextCall() -> CallID { CallID(number: shared.nextCall()) }

    /// Adds a call that is about to begin.
    func add(_ session: CallSession) {
        engine.warmUp()
        var call = ActiveCall(session)
        call.journalKey = journal?.begin(invite: session.inviteID, peer: session.peer, direction: session.direction)
        calls.add(call)
    }

    /// What the configuration says of a call that begins now.
    func rules(for audio: AudioBehaviour) -> CallRules {
        CallRules(configuration.behaviour, for: audio, silenceTimeout: configuration.media.silenceTimeout)
    }

    /// What calls of the device's service are like.
    var traits: SignalingTraits { service.traits }

    /// Times and limits of the calls' machines.
    var callTimings: CallTimings {
        var timings = CallTimings()
        timings.invite = configuration.invites.timings
        timings.invite.answerLimit = configuration.answer.ringLimit
        // What a program or bot was promised ends before the machine's own limit, so that the fallback is still played.
        timings.prepareTimeout += configuration.participantTimeout
        return timings
    }

    /// The same for invites that are no calls.
    var inviteTimings: InviteTimings {
        var timings = configuration.invites.timings
        if let limit = configuration.answer.inviteLimit { timings.answerLimit = limit }
        return timings
    }

    /// Forgets an ended call.
    func forget(_ id: CallID) {
        calls[id]?.timer.cancel()
        calls.remove(id)
        if areCallsOver { drain.resume() }
    }

    /// Puts a call's record on disk; the call is reported as ended after that (contract CALL-7).
    func keep(_ record: CallRecord, _ turns: TurnSummary?, of id: CallID) {
        guard let journal, let key = calls[id]?.journalKey else { return feed(.device(.recordKept), to: id) }
        journal.end(key, record, turns: turns) { [weak self] in
            Task { await self?.feed(.device(.recordKept), to: id) }
        }
    }

    // MARK: The end of calls

    /// Notifies the peer of a call that we hung up. The end of the session waits for it: in the other order the peer would
    /// learn of a lost device in place of the call's end (contract CALL-3).
    func sendHangUp(_ news: CallHangUp) {
        drain.hangUpBegan()
        let sending = hand { (service) throws(SignalingError) in try await service.hangUp(news) }
        Task {
            if let error = await sending.value {
                logger.warning("The peer may not have heard that we hung up", metadata: ["error": "\(error)"])
            }
            drain.hangUpEnded()
            if areCallsOver { drain.resume() }
        }
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
