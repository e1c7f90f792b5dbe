public import CallControl
internal import CallPrograms
internal import ICE
public import Logging
public import MediaEngine
internal import NetworkAddress
public import Realtime
internal import SecureTransport
public import SignalingClient

/// A logged-in device: receives invites, answers by policy, makes calls, and reports events.
///
/// It decides nothing about a call itself: each call's machine does, and the device carries out the machine's outputs.
public actor Device {
    /// The events, in order. The first listener receives all of them from the beginning.
    public nonisolated let events = DeviceEvents()

    let configuration: DeviceConfiguration
    let service: any SignalingService
    let logger: Logger
    let engine: MediaEngine
    /// What calls without ICE name where sockets are bound to all.
    let mediaAddress: MediaAddress
    /// Servers that help calls to be connected, their names looked up.
    var iceServers: [ICE.ICEServer] = []
    /// Counts questions for their addresses.
    private var lookups = 0
    private var newestLookup = 0
    private var identity: DTLSIdentity?
    var calls: [CallID: ActiveCall] = [:]
    var isDraining = false
    /// Calls that have been captured.
    var captures = 0
    /// Whether the last call that asked for room was refused, and there has been none since.
    var isFull = false
    /// Why an outgoing call failed, while a tone announces it; and what ends the tone.
    var lastRefusal: CallEndReason?
    var farewell: Task<Void, Never>?
    /// Invites that are no calls, by their names.
    var invites: [InviteID: PendingInvite] = [:]
    /// Answers to our invites that arrived before the invites' ids.
    var earlyWords: [InviteID: [OutgoingInviteMachine.Input]] = [:]
    /// This device's identity at the service; nil until it has connected.
    var user: UserID?
    /// How the connection to the service stands.
    var connection = DeviceStatus.Connection.connecting
    /// How loud the sound card is; nil without one.
    var soundSettings: SoundSettings?
    let journal: CallJournal?
    private let mediaEvents: AsyncStream<MediaEvent>
    /// Programs in calls; nil without the behaviour `exec`.
    let programs: CallPrograms?
    private let programNews: AsyncStream<ProgramNews>
    private var ledger = InviteLedger()
    /// Invites without a call, for signals of their peers after they are settled.
    var plainInvites = InviteLedger()
    private var lastCall: UInt64 = 0
    private var listeners: [Task<Void, Never>] = []
    /// How many peers are being told that we hung up.
    private var hangUpsUnderWay = 0
    /// Waiters in ``shutDown()`` until no call is left, and every peer of one has been told.
    private var allEnded: CheckedContinuation<Void, Never>?
    var generator = SystemRandomNumberGenerator()

    /// Opens the media sockets of a device that is not logged in yet.
    ///
    /// - Parameter mediaAddress: Where media is received, with the first worker's port or 0.
    public init(
        _ configuration: DeviceConfiguration, service: any SignalingService, mediaAddress: MediaAddress,
        logger: Logger
    ) throws(RealtimeError) {
        self.configuration = configuration
        self.service = service
        self.logger = logger
        soundSettings = configuration.sound.map {
            SoundSettings(isMuted: $0.isMuted, volumeDB: $0.volumeDB, microphoneDB: $0.microphoneDB)
        }
        journal = configuration.device.callRecords.map {
            CallJournal(path: $0, application: configuration.account.appKey, logger: logger)
        }
        // The media side sends a few events per call; this many wait if the device is busy.
        let (stream, media) = AsyncStream.makeStream(of: MediaEvent.self, bufferingPolicy: .bufferingOldest(16_384))
        mediaEvents = stream
        self.mediaAddress = mediaAddress
        // A program sends few requests, and at most ten log lines per second.
        let (news, told) = AsyncStream.makeStream(of: ProgramNews.self, bufferingPolicy: .bufferingOldest(16_384))
        programNews = news
        programs = configuration.program == nil ? nil : try CallPrograms { told.yield($0) }
        engine = try MediaEngine(
            MediaEngineConfiguration(
                bindAddress: mediaAddress.bindAddress, workerCount: configuration.media.workers,
                callLimitPerWorker: configuration.answer.callLimit.mostPerWorker,
                realtimePriority: configuration.media.realtimePriority,
                relayTrust: configuration.media.relayTrustRoots.map(TLSTrust.file) ?? .system,
                sound: configuration.sound)
        ) { media.yield($0) }
    }

    /// Logs in and connects; returns when the device can be called.
    public func connect() async throws(SignalingError) {
        if listeners.isEmpty {
            listeners = [
                Task { [service] in for await event in service.events { self.hear(event) } },
                Task { [mediaEvents] in for await event in mediaEvents { self.hear(event) } },
                Task { [programNews] in for await news in programNews { self.hear(news) } },
            ]
        }
        makeRecordingFolder()
        // Before anybody can call: the first certificate takes the longest to make.
        _ = try? currentIdentity()
        try await service.connect()
        user = await service.session?.user
        for room in configuration.allRooms { _ = try await service.join(room: room, data: nil) }
        await lookUpServers()
    }

    /// Asks for the addresses of the servers that the service and the configuration name now; calls that begin
    /// afterwards use them.
    func lookUpServers() async {
        lookups += 1
        let number = lookups
        let found = await ICEServerLookup.addresses(of: await service.iceServers + configuration.media.iceServers)
        // A later question may have been answered first.
        if number > newestLookup { (iceServers, newestLookup) = (found, number) }
    }

    /// Calls somebody.
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
        let key = newKey()
        let defaults = configuration.invites
        let options = InviteOptions(
            to: users, in: group, timeToLive: timeToLive ?? defaults.timeToLive, payload: defaults.payload,
            timeoutPayload: defaults.missedPayload, isOnlineOnly: onlineOnly ?? defaults.isOnlineOnly,
            idempotencyKey: key)
        let machine = CallMachine(dialling: options, timings: callTimings)
        let id = newCall(ActiveCall(machine: machine, audio: audio, idempotencyKey: key))
        feed(.begin, to: id)
        return id
    }

    /// Calls somebody, and does in the call what the configuration says of calls.
    public func call(_ user: UserID) -> CallID {
        call([user], audio: configuration.behaviour.audio(named: "outgoing-\(newKey())"))
    }

    /// Declines a call that rings.
    public func reject(_ id: CallID, _ reason: RejectReason = .declined) { feed(.user(.reject(reason)), to: id) }

    /// Hangs up, cancels or declines, whichever fits.
    public func hangUp(_ id: CallID) { feed(.user(.hangUp), to: id) }

    /// Takes a call that rings.
    public func answer(_ id: CallID) { feed(.user(.answer), to: id) }

    /// The report of a call's media so far; nil if it has none.
    public func mediaReport(on id: CallID) async -> MediaReport? {
        guard let media = calls[id]?.media else { return nil }
        return await engine.report(on: media)
    }

    /// Hangs up all calls, says goodbye to the service and stops. Calls' last events come before `events` ends.
    public func shutDown() async {
        await endCalls()
        await service.disconnect()
        await close()
    }

    /// Ends the calls, revokes the login at the service, removes it and the keys here, and stops (AUTH-9).
    ///
    /// - Throws: ``SignalingError`` if the service could not be told; everything is removed here, and the device stops,
    ///   nevertheless.
    public func logOut() async throws(SignalingError) {
        await endCalls()
        var failure: SignalingError?
        do throws(SignalingError) {
            try await service.logOut()
        } catch {
            failure = error
        }
        identity = nil
        user = nil
        await close()
        if let failure { throw failure }
    }

    /// Unregisters the device: it receives no invites until it connects again, and no pushes (DEV-2). Logging out alone
    /// does not change pushes.
    public func unregister() async throws(SignalingError) { try await service.unregister() }

    private func endCalls() async {
        isDraining = true
        for id in calls.keys { feed(.user(.hangUp), to: id) }
        await allCallsEnded(within: .milliseconds(600))
        for id in calls.keys { feed(.service(.disconnected), to: id) }
    }

    private func close() async {
        await allCallsEnded(within: .milliseconds(200))
        for invite in invites.values { invite.timer?.cancel() }
        invites = [:]
        farewell?.cancel()
        engine.shutdown()
        programs?.finish()
        for listener in listeners { listener.cancel() }
        await journal?.close()
        events.hub.finish()
    }

    // MARK: Shared by the parts of the device

    /// The certificate that calls show now; another one after some weeks.
    func currentIdentity() throws(DTLSError) -> DTLSIdentity {
        let now = MonotonicClock.wallTime
        if let identity, !identity.needsRotation(at: now) { return identity }
        let fresh = try DTLSIdentity(at: now)
        identity = fresh
        return fresh
    }

    func tell(_ event: DeviceEvent) {
        let before = events.hub.lostCount
        events.hub.publish(event)
        if events.hub.lostCount > before { logger.warning("An event found nobody to take it and is lost") }
    }

    func newCall(_ call: ActiveCall) -> CallID {
        engine.warmUp()
        lastCall += 1
        let id = CallID(number: lastCall)
        calls[id] = call
        calls[id]?.journalKey = journal?.begin(
            invite: call.invite, peer: call.machine.peer, direction: call.machine.isOutgoing ? .outgoing : .incoming)
        return id
    }

    /// Times and limits of the calls' machines.
    var callTimings: CallTimings {
        var timings = CallTimings()
        timings.invite = inviteTimings
        timings.invite.answerLimit = configuration.answer.ringLimit
        return timings
    }

    var inviteTimings: InviteTimings { configuration.invites.timings }

    /// Records an invite; false if it was received before (contract INV-17).
    func isNew(_ invite: InviteID) -> Bool { ledger.note(invite) }

    /// Forgets a call that is over.
    func forget(_ id: CallID) {
        calls[id] = nil
        if areCallsOver { stopWaitingForCalls() }
    }

    /// Tells the peer of a call that we hung up. Ending the session with the service waits for this, because otherwise
    /// the peer would be told of a lost device instead of the call's end (contract CALL-3).
    func sendHangUp(_ news: CallHangUp) {
        hangUpsUnderWay += 1
        Task {
            do throws(SignalingError) {
                try await service.hangUp(news)
            } catch {
                logger.warning("The peer may not have heard that we hung up", metadata: ["error": "\(error)"])
            }
            hangUpsUnderWay -= 1
            if areCallsOver { stopWaitingForCalls() }
        }
    }

    private var areCallsOver: Bool { calls.isEmpty && hangUpsUnderWay == 0 }

    private func allCallsEnded(within limit: Duration) async {
        guard !areCallsOver else { return }
        let patience = Task {
            try? await Task.sleep(for: limit)
            if !Task.isCancelled { stopWaitingForCalls() }
        }
        await withCheckedContinuation { allEnded = $0 }
        patience.cancel()
    }

    private func stopWaitingForCalls() {
        allEnded?.resume()
        allEnded = nil
    }
}
