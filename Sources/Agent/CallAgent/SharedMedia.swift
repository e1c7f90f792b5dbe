public import AudioDevices
public import AudioKit
public import Logging
public import CallMeetings
internal import MediaEngine
internal import Core
internal import CallMedia
public import CallParticipation
public import Realtime
internal import Synchronization
internal import TLS

/// What the devices of one process share: media workers and their sockets, the sound card, room for calls, and the numbers of calls.
///
/// Any thread may use it. It ends with ``close()``, after its devices.
public final class SharedMedia: Sendable {
    let engine: MediaEngine
    /// The rooms in which calls of all devices meet.
    let hall: MeetingHall
    private let router: MediaRouter
    private let claims = Mutex(MediaClaims())
    private let card: Mutex<CardControl>
    private let presence: CardPresence
    /// Mute and volume, for the next start.
    private let soundKeeper: SoundKeeper?
    private let events: AsyncStream<MediaEvent>
    /// Where sockets are bound: one address, or the wildcard address, with the first worker's port or 0.
    let bindAddress: SocketAddress
    /// Streams that may run in each worker.
    private let streamsPerWorker: Int

    /// Opens the media sockets of several devices.
    ///
    /// - Parameter configurations: At least one. They have the process's sections in common: `media`, except what calls offer, and
    ///   `audio`.
    public convenience init(for configurations: [DeviceConfiguration], logger: Logger) throws(RealtimeError) {
        try self.init(configurations, at: MediaAddress.bindAddress(for: configurations), isOnly: false, logger: logger)
    }

    /// Opens the media sockets of one device.
    public convenience init(
        for configuration: DeviceConfiguration, at address: MediaAddress, logger: Logger
    ) throws(RealtimeError) {
        try self.init([configuration], at: address.bindAddress, isOnly: false, logger: logger)
    }

    /// - Parameter isOnly: Whether there is one device, which hears of the card and of the workers, too.
    init(
        _ configurations: [DeviceConfiguration], at address: SocketAddress, isOnly: Bool, logger: Logger
    ) throws(RealtimeError) {
        guard let first = configurations.first else { preconditionFailure("media is for at least one device") }
        let leading = configurations.first { $0.sound != nil } ?? first
        // The media side reports a few events a call; this many wait if they are not read.
        let (stream, sink) = AsyncStream.makeStream(of: MediaEvent.self, bufferingPolicy: .bufferingOldest(16_384))
        events = stream
        let router = MediaRouter(process: isOnly ? nil : sink)
        self.router = router
        let presence = CardPresence()
        self.presence = presence
        bindAddress = address
        streamsPerWorker = AnswerPolicy.CallLimit.mostPerWorker(of: configurations)
        var sound = leading.sound
        soundKeeper = leading.keptSoundPath.flatMap { path in
            sound.map { SoundKeeper(path: path, configured: SoundSettings($0), logger: logger) }
        }
        if let kept = soundKeeper?.kept { sound?.use(kept) }
        hall = try MeetingHall(priority: leading.media.realtimePriority)
        engine = try MediaEngine(
            MediaEngineConfiguration(
                bindAddress: address, callPorts: leading.media.callPorts, workerCount: leading.media.workers,
                // A call that has ended hinders no new one, and has its place until its worker has put it away.
                callLimitPerWorker: 2 * streamsPerWorker,
                realtimePriority: leading.media.realtimePriority,
                relayTrust: leading.media.relayTrustRoots.map(TrustRoots.file) ?? .system, sound: sound)
        ) { event in
            if case .card(let event) = event { presence.note(event) }
            router.route(event)
        }
        card = Mutex(CardControl(leading, sound: sound, engine: engine))
    }

    /// Ends all media and its threads, and then the events. Another time it does nothing.
    func shutDown() {
        engine.shutdown()
        hall.finish()
        router.finish()
    }

    /// Ends all media, and returns when mute and volume are kept for the next start.
    public func close() async {
        shutDown()
        await soundKeeper?.close()
    }

    /// Why a device of this configuration cannot share this media, as a sentence without its full stop; nil if it can.
    ///
    /// - Parameter others: The configurations of the devices that share it besides.
    public func obstacle(
        to configuration: DeviceConfiguration, besides others: [DeviceConfiguration] = []
    ) -> String? {
        let streams = AnswerPolicy.CallLimit.mostPerWorker(of: others + [configuration])
        if streams > streamsPerWorker {
            return
                "answer.max_calls of all accounts come to \(streams) streams of sound, and the media workers got memory for "
                + "\(streamsPerWorker) when the process started"
        }
        if configuration.sound != nil, engine.cardStatistics == nil {
            return "no account had behaviour.source: card when the process started, so no sound card is open"
        }
        if bindAddress.isLoopback, configuration.media.address == nil,
            !MediaAddress.isOnThisMachine(configuration.account.eventsHost)
        {
            return "all servers were on this machine when the process started, so media sockets are bound to it alone"
        }
        return nil
    }

    // MARK: Events of the card and the workers, which are about no device

    /// Reports what happens to the card and the workers, until ``close()``; for one listener.
    public func forEachEvent(_ tell: @Sendable (DeviceEvent) async -> Void) async {
        for await event in events {
            if let event = deviceEvent(event) { await tell(event) }
        }
    }

    /// What devices, or their process, report of it; nil if nothing.
    func deviceEvent(_ event: MediaEvent) -> DeviceEvent? {
        switch event {
        case .effortLimited: .loadChanged(load)
        case .realtimePriorityRefused(let error): .realtimePriorityRefused(error)
        case .card(.report): nil
        case .card(let event): .card(event)
        case .loadMeasured, .mediaReceived, .ready, .flowing, .playbackEnded, .announcementEnded, .bridgeHeard,
            .recordingEnded, .digit,
            .sendingStopped, .sendingResumed, .candidate, .candidatesComplete, .connected, .secured, .connectionQuiet,
            .connectionBack, .pathLost, .relayFailed, .relayOverrun, .connectionFailed, .goodbyeReceived, .fileFailed,
            .refused, .ended:
            nil
        }
    }

    /// Why the card could not be opened when that was last tried; nil if it could, was not tried yet, or there is none.
    var cardFailure: CardFailure? { presence.failure }

    /// How the card is doing; nil without one.
    public var cardStatistics: CardStatistics? { engine.cardStatistics }

    /// Whether the workers work, for a watchdog that asks every few seconds (``Device/isAlive()``).
    public func areWorkersAlive() -> Bool { engine.areWorkersAlive() }

    // MARK: What devices do

    /// Lets a device take part, by a number that no other one has now.
    func join() -> (owner: UInt16, events: AsyncStream<MediaEvent>) { router.join() }

    /// A device has ended.
    func leave(_ owner: UInt16) {
        router.leave(owner)
        claims.withLock { $0.forget(owner) }
    }

    /// How busy the machine is.
    public var load: DeviceLoad { DeviceLoad(workers: engine.loads, takesCalls: !isFull) }

    /// Whether the last call that asked for room was refused, and there has been none since.
    var isFull: Bool { claims.withLock { $0.isFull } }

    /// Notes how many streams a device's calls need that no worker runs yet.
    func note(unplaced: Int, of owner: UInt16) { claims.withLock { $0.note(unplaced: unplaced, of: owner) } }

    /// Whether the machine carries a call of `streams` streams besides those that are admitted.
    ///
    /// - Parameters:
    ///   - unplaced: Those of the device's other calls that no worker runs yet.
    ///   - isCall: Whether the call is there, and takes the room.
    /// - Returns: That, and whether it is another answer than the last one.
    func hasRoom(
        streams: Int, besides unplaced: Int, isCall: Bool, of owner: UInt16
    ) -> (hasRoom: Bool, isChange: Bool) {
        // Under one lock, so that of two devices that ask for the last room at once one gets it. The engine takes its
        // own lock within, and calls no handler there.
        claims.withLock { claims in
            let hasRoom = claims.ask(streams: streams, besides: unplaced, isCall: isCall, of: owner) {
                engine.hasRoom(for: streams, besides: $0)
            }
            let isChange = claims.noteFull(!hasRoom)
            router.setFull(!hasRoom)
            return (hasRoom, isChange)
        }
    }

    /// The rooms in which calls meet.
    public var rooms: [RoomStatus] { hall.rooms }

    /// Mutes a call in its room, or has it heard again.
    ///
    /// - Returns: False if the call is in no room.
    public func setMuted(_ isMuted: Bool, inRoom call: CallID) -> Bool { hall.setMuted(isMuted, of: call.number) }

    /// Whether a call is in a room.
    public func isInRoom(_ call: CallID) -> Bool { hall.isMember(call.number) }

    /// How loud the card is; nil without one.
    public var sound: SoundSettings? { card.withLock { $0.settings } }

    /// Mutes the microphone, or lets it be heard again.
    public func setMuted(_ isMuted: Bool) { setSound { $0.setMuted(isMuted) } }

    /// Sets the volume of the loudspeaker, in dB: −60…20.
    public func setVolume(decibels: Double) { setSound { $0.setVolume(decibels: decibels) } }

    /// Sets the volume of the microphone after all processing, in dB: −60…20.
    public func setMicrophoneVolume(decibels: Double) { setSound { $0.setMicrophoneVolume(decibels: decibels) } }

    /// Switches parts of the speakerphone on and off; the length of the echo stays as it was.
    public func setProcessing(_ settings: SpeakerphoneSettings) { engine.setProcessing(settings) }

    /// Waits for the end of the tone for a failed outgoing call.
    public func finishTones() async { await withCard { $0.failureToneEnd }?.value }

    /// Changes how loud the card is, and keeps that for the next start.
    private func setSound(_ act: (inout CardControl) -> Void) {
        card.withLock { card in
            act(&card)
            // In here: of two changes at once, the later one is noted last.
            if let settings = card.settings { soundKeeper?.note(settings) }
        }
    }

    /// Changes what the card's loudspeaker sounds, or returns how loud it is.
    func withCard<Result: Sendable>(_ act: (inout CardControl) -> Result) -> Result { card.withLock { act(&$0) } }

    func claimCard(for call: CallID, inPlaceOf former: CallID?) -> Bool {
        claims.withLock { $0.claimCard(for: call, inPlaceOf: former) }
    }

    func releaseCard(of call: CallID) { claims.withLock { $0.releaseCard(of: call) } }

    func nextCall() -> UInt64 { claims.withLock { $0.nextCall() } }

    func nextCapture() -> Int? { claims.withLock { $0.nextCapture() } }
}

/// Whether the sound card can be opened. A card that was lost counts as present until the next try to open it fails.
private final class CardPresence: Sendable {
    private let state = Mutex<CardFailure?>(nil)

    var failure: CardFailure? { state.withLock { $0 } }

    func note(_ event: CardEvent) {
        switch event {
        case .unavailable(let failure): state.withLock { $0 = failure }
        case .opened: state.withLock { $0 = nil }
        case .running, .lost, .stalled, .xruns, .suspended, .resumed, .priorityRefused, .report, .stopped: break
        }
    }
}

/// Gives each device the events of its calls.
private final class MediaRouter: Sendable {
    private struct State {
        var sinks: [UInt16: AsyncStream<MediaEvent>.Continuation] = [:]
        var last: UInt16 = 0
        var isFull = false
    }

    private let state = Mutex(State())
    /// Hears what is about no device; nil if the only device does.
    private let process: AsyncStream<MediaEvent>.Continuation?

    init(process: AsyncStream<MediaEvent>.Continuation?) { self.process = process }

    func join() -> (owner: UInt16, events: AsyncStream<MediaEvent>) {
        let (stream, sink) = AsyncStream.makeStream(of: MediaEvent.self, bufferingPolicy: .bufferingOldest(16_384))
        let owner = state.withLock { state in
            repeat { state.last &+= 1 } while state.sinks[state.last] != nil
            state.sinks[state.last] = sink
            return state.last
        }
        return (owner, stream)
    }

    func leave(_ owner: UInt16) { state.withLock { $0.sinks.removeValue(forKey: owner) }?.finish() }

    func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

    func finish() { process?.finish() }

    func route(_ event: MediaEvent) {
        if let call = event.call {
            _ = state.withLock { $0.sinks[call.owner] }?.yield(event)
            return
        }
        if case .loadMeasured = event {
            // Four times a second: only those want it who wait for room.
            for sink in state.withLock({ $0.isFull ? Array($0.sinks.values) : [] }) { sink.yield(event) }
        } else if let process {
            process.yield(event)
        } else {
            _ = state.withLock { $0.sinks.values.first }?.yield(event)
        }
    }
}

extension AnswerPolicy.CallLimit {
    /// Streams that may run in one media worker, with all these devices on it.
    fileprivate static func mostPerWorker(of configurations: [DeviceConfiguration]) -> Int {
        let numbers = configurations.reduce(0) { sum, configuration in
            guard case .calls(let limit) = configuration.answer.callLimit else { return sum }
            return sum + limit * (configuration.hasLegs ? 2 : 1)
        }
        return max(256, numbers)
    }
}
