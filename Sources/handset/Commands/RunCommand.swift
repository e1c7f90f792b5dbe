internal import ArgumentParser
internal import AudioDevices
internal import AudioKit
internal import CallAgent
internal import CallControl
internal import ConfigReader
internal import DeviceControl
internal import Glibc
internal import Logging
internal import CallMedia
internal import MediaEngine
internal import NIOCore
internal import NIOPosix
internal import Peering
internal import Playout
internal import PrivateFiles
internal import Realtime
internal import ServiceManager
internal import Speakerphone
internal import Timekeeping

/// `handset run`: the daemon.
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Log in, hold the connection and answer calls by policy.")

    @Option(help: "The device's configuration file.", completion: .file())
    var config: String

    @Option(
        help: "Base URL of the signaling server, instead of the configuration's.",
        transform: ServerURL.argument)
    var server: String?

    @Option(
        help: """
            Write what calls receive to this file, for `handset replay`; the second call to FILE-2 and so on, 100 calls \
            at most. Has what was said, but no keys, names or addresses.
            """)
    var capture: String?

    @Option(
        help: """
            Seconds for which calls go on after SIGTERM, while new ones are refused as busy; with 0 they are hung up at \
            once. A second signal ends the process.
            """)
    var drain = 0

    @OptionGroup var logs: LogOptions

    func validate() throws {
        guard (0...86_400).contains(drain) else {
            throw ValidationError("--drain \(drain) is not a number of seconds from 0 to 86400.")
        }
    }

    func run() async throws {
        logs.bootstrap()
        let logger = Logger(label: "handset")
        let document = try ConfigDocument.read(path: config, fileChecks: .all)
        try ConfigurationCheck.expect("run", document)
        var read = try DeviceConfiguration.read(document, server: server)
        read.behaviour.capture = capture
        let configuration = read
        for warning in configuration.warnings { logger.warning("\(warning)") }
        if let capture { try AppendedFile.check(path: capture) }
        // Before anything that others would notice: another device may be at work here.
        let lock = try Self.lock(configuration)
        let socket = try configuration.control.map { try ControlSocket(path: ControlSocketPath.listening($0)) }
        let (device, group) = try DeviceFactory(configuration: configuration, logger: logger).make()
        let control = try await Self.listen(socket, for: device, configuration, group, logger)
        let unit = ServiceUnit(logger: logger)
        unit.tell(status: "Logging in")
        let reload = DeviceReload(
            path: config, server: server, document: document, device: device, unit: unit, logger: logger)
        Self.onHangUp { await reload.run { await Self.status(of: device) } }
        await NetworkListener.start(on: group, logger: logger) {
            logger.debug("The network has changed")
            Task { await device.networkChanged() }
        }
        let watchdog = unit.feedWatchdog { await device.isAlive() }
        let patience = Self.becomeReady(unit, within: Self.loginPatience)
        let memory = CallMemoryKeeper(mayLock: configuration.media.realtimePriority != nil)
        let listener = Task {
            for await event in device.events {
                await memory.hear(event)
                Self.log(event, configuration, logger)
                if case .signaling(let event) = event { Self.tell(event, to: unit) }
                await control?.tell(event)
                if case .ended(let call, _, let report?) = event, report.sound != nil {
                    Self.log(report, of: call, card: await device.cardStatistics, logger)
                }
            }
        }
        let ending = EndRequest(moreSeconds: drain)
        do throws(SignalingError) {
            try await connectInTime(device, unless: ending, unit, logger)
        } catch {
            await device.shutDown()
            await control?.close()
            if ending.isMade { return }
            throw error
        }
        logger.info(
            "Ready",
            metadata: ["server": "\(configuration.account.eventsURL)", "device": "\(configuration.device.name)"])
        patience.cancel()
        unit.tell(.ready, status: Self.connectedStatus)
        await memory.becomeReady()
        if configuration.media.realtimePriority != nil { Self.checkLock(logger) }
        await ending.wait()
        unit.tell(.stopping, status: "Ending")
        if drain > 0 {
            logger.info("Waiting for calls to end", metadata: ["seconds": "\(drain)"])
            await device.finishCalls(within: .seconds(drain))
        }
        logger.info("Saying goodbye")
        watchdog?.cancel()
        await device.shutDown()
        _ = await listener.value
        await control?.close()
        try? await group.shutdownGracefully()
        withExtendedLifetime(lock) {}
    }

    /// How long the service manager waits for the login before it goes on: a device without a network has started, too, and
    /// logs in when there is one.
    private static let loginPatience = Duration.seconds(5)

    private static func becomeReady(_ unit: ServiceUnit, within limit: Duration) -> Task<Void, Never> {
        Task {
            guard (try? await Task.sleep(for: limit)) != nil else { return }
            unit.tell(.ready, status: waitingStatus)
        }
    }

    private static let waitingStatus = "Logging in: the service has not answered yet"
    private static let connectedStatus = "Connected: can be called"
    private static let reconnectingStatus = "Not connected: cannot be called, and tries again"

    private static func tell(_ event: SignalingEvent, to unit: ServiceUnit) {
        if case .reconnecting = event { unit.tell(status: reconnectingStatus) }
        if case .reconnected = event { unit.tell(status: connectedStatus) }
    }

    private static func status(of device: Device) async -> String {
        switch await device.status.connection {
        case .connected: connectedStatus
        case .connecting: waitingStatus
        case .reconnecting, .disconnected: reconnectingStatus
        }
    }

    /// Has SIGHUP do something, once after the other. On a terminal it ends the process: it says that the terminal is gone.
    static func onHangUp(_ act: @escaping @Sendable () async -> Void) {
        guard isatty(STDIN_FILENO) == 0 else { return }
        // One more that waits is enough for any number that come meanwhile.
        let (wishes, wish) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        Task { for await _ in wishes { await act() } }
        Shutdown.onHangUp { wish.yield() }
    }

    /// Keeps a second device away from this one's stored login: each of them would end the other's sessions.
    static func lock(_ configuration: DeviceConfiguration) throws -> LockFile? {
        guard let file = configuration.account.sessionFile else { return nil }
        do throws(PrivateFileError) {
            return try LockFile(file + ".lock")
        } catch {
            throw CommandFailure(
                .failed, "\(error) Each running device needs an account.session_file of its own; is this one running?")
        }
    }

    /// Tells, before there is a call, if the media threads may wait for memory that was written out or dropped.
    private static func checkLock(_ logger: Logger) {
        do throws(RealtimeError) {
            try ProcessMemory.checkLock()
        } catch {
            logger.notice("Memory is not locked during calls", metadata: ["error": "\(error)"])
        }
    }

    /// Lets programs on this machine act on the device, if the configuration has a socket for them.
    private static func listen(
        _ socket: ControlSocket?, for device: Device, _ configuration: DeviceConfiguration,
        _ group: MultiThreadedEventLoopGroup, _ logger: Logger
    ) async throws -> ControlServer? {
        guard let socket else { return nil }
        let server = try await ControlServer.start(
            socket, device: device, configuration: configuration, version: HandsetVersion.current, group: group,
            logger: logger)
        logger.info("Listening to programs on this machine", metadata: ["socket": "\(socket.path)"])
        return server
    }

    /// Connects; while the clock cannot be right, a certificate that is not trusted is no failure but a reason to wait.
    private func connectInTime(
        _ device: Device, unless ending: EndRequest, _ unit: ServiceUnit, _ logger: Logger
    ) async throws(SignalingError) {
        while true {
            let failure: SignalingError
            do throws(SignalingError) {
                return try await connect(device, unless: ending)
            } catch {
                failure = error
            }
            let time = MonotonicClock.wallTime
            guard ClockDoubt.isReason(for: failure, at: time), !ending.isMade else { throw failure }
            logger.warning(
                "This machine's clock cannot be right, so no certificate can be checked: waiting for the time",
                metadata: ["clock": "\(time.rfc3339)", "error": "\(failure)"])
            unit.tell(status: "Waiting for the time: the clock says \(time.rfc3339)")
            // It may be set at any moment; whatever it is, the service is asked again after a minute.
            for _ in 0..<60 where !ending.isMade && !ClockDoubt.canBeRight(MonotonicClock.wallTime) {
                try? await Task.sleep(for: .seconds(1))
            }
            guard !ending.isMade else { throw failure }
            logger.info("Logging in again", metadata: ["clock": "\(MonotonicClock.wallTime.rfc3339)"])
        }
    }

    /// Connects, but lets go when the process is told to end first.
    private func connect(_ device: Device, unless ending: EndRequest) async throws(SignalingError) {
        let connecting = Task { () -> SignalingError? in
            do throws(SignalingError) {
                try await device.connect()
                return nil
            } catch {
                return error
            }
        }
        let watching = Task {
            await ending.wait()
            if !Task.isCancelled { await device.shutDown() }
        }
        let error = await connecting.value
        watching.cancel()
        if let error { throw error }
    }

    private static func log(_ event: DeviceEvent, _ configuration: DeviceConfiguration, _ logger: Logger) {
        switch event {
        case .signaling(let event): log(event, logger)
        case .incoming(let call, let caller):
            logger.info("A call comes in", metadata: ["call": "\(call)", "from": "\(caller)"])
        case .invited(let invite):
            logger.info(
                "An invite comes in", metadata: ["invite": "\(invite.id)", "from": "\(invite.received.inviter)"])
        case .invite: logger.debug("News of an invite")
        case .answered(let call): logger.debug("Answered", metadata: ["call": "\(call)"])
        case .established(let call, let time):
            logger.info(
                "Media flows both ways",
                metadata: ["call": "\(call)", "setup_ms": "\(time.milliseconds.rounded(toPlaces: 1))"])
        case .playbackEnded(let call): logger.debug("The file is over", metadata: ["call": "\(call)"])
        case .digit(let call, let digit, let time):
            logger.info(
                "The peer pressed a key",
                metadata: [
                    "call": "\(call)", "digit": "\(digit)", "held_ms": "\(time.milliseconds.rounded(toPlaces: 0))",
                ])
        case .speech(let call, let isOver, let at):
            logger.debug(
                isOver ? "The caller's speech ends" : "The caller speaks",
                metadata: ["call": "\(call)", "position_ms": "\(at.milliseconds.rounded(toPlaces: 1))"])
        case .interrupted(let call, let played):
            logger.info(
                "The caller has interrupted the program",
                metadata: ["call": "\(call)", "played_ms": "\(played.milliseconds.rounded(toPlaces: 1))"])
        case .responded(let call, let time):
            logger.info(
                "The program answers",
                metadata: ["call": "\(call)", "after_ms": "\(time.milliseconds.rounded(toPlaces: 1))"])
        case .sendingStopped(let call, let reason):
            logger.warning("A call sends no more", metadata: ["call": "\(call)", "reason": "\(reason.rawValue)"])
        case .sendingResumed(let call): logger.info("A call sends again", metadata: ["call": "\(call)"])
        case .playing(let call, let path):
            logger.info("A file is played in a call", metadata: ["call": "\(call)", "file": "\(path)"])
        case .playingEnded(let call, let path, let end):
            logger.info(
                "A file is no longer played in a call",
                metadata: ["call": "\(call)", "file": "\(path)", "reason": "\(end.rawValue)"])
        case .recording(let call, let path):
            logger.info("A call is recorded", metadata: ["call": "\(call)", "file": "\(path)"])
        case .recordingEnded(let call, let end, let reason):
            logger.info(
                "A recording is over",
                metadata: [
                    "call": "\(call)", "file": "\(end.path)", "reason": "\(reason.rawValue)",
                    "duration_ms": "\(end.duration.milliseconds.rounded(toPlaces: 0))",
                    "missed_ms": "\(end.missed.milliseconds.rounded(toPlaces: 0))",
                ])
        case .transferRequested: break  // Logged where it is decided.
        case .transferProgress(let call, let target, let progress):
            logger.info(
                "A transfer goes on",
                metadata: ["call": "\(call)", "to": "\(target)", "state": "\(progress.rawValue)"])
        case .attached(let call): logger.info("A program joins a call", metadata: ["call": "\(call)"])
        case .detached(let call): logger.info("A program leaves a call", metadata: ["call": "\(call)"])
        case .fileFailed: break  // Logged where it happened.
        case .ended(let call, let record, let report):
            var metadata: Logger.Metadata = [
                "call": "\(call)", "peer": "\(record.peer)", "reason": "\(record.reason.rawValue)",
                "duration_ms": "\(record.duration.milliseconds.rounded(toPlaces: 0))",
            ]
            if let cause = record.cause { metadata["cause"] = "\(cause.rawValue)" }
            if let error = record.error { metadata["error"] = "\(error)" }
            if let cause = record.hangUpCause { metadata["hung_up_because"] = "\(cause.rawValue)" }
            if let report {
                metadata["received"] = "\(report.peer.packetsReceived)"
                metadata["lost"] = "\(report.playout.packetsLost)"
                metadata["dropped"] = "\(report.peer.dropped.total)"
                if report.recordOverrunSamples > 0 {
                    metadata["recording_gap_ms"] = "\(report.recordOverrunSamples / 48)"
                }
            }
            logger.info("A call is over", metadata: metadata)
        case .card(let event):
            let text = CardEventText(event: event, audio: configuration.audio)
            logger.log(level: text.isWarning ? .warning : .info, "\(text.text)")
        case .loadChanged(let load): log(load, logger)
        case .realtimePriorityRefused(let error):
            logger.warning("Media runs without real-time priority", metadata: ["error": "\(error)"])
        }
    }

    /// What the device does about too much work, or that it need not any more.
    private static func log(_ load: DeviceLoad, _ logger: Logger) {
        let busiest = load.busiest
        let metadata: Logger.Metadata = [
            "busy_percent": "\((busiest.share * 100).rounded(toPlaces: 0))",
            "calls": "\(busiest.runningCalls.rounded(toPlaces: 0))", "complexity_limit": "\(load.complexityLimit)",
        ]
        if !load.takesCalls {
            logger.warning("The machine is full: new calls are refused as busy until others end", metadata: metadata)
        } else if load.complexityLimit < 10 {
            logger.warning(
                "The machine is nearly full: encoders spend less effort, so that no sound is lost", metadata: metadata)
        } else {
            logger.info("The machine has room again: encoders are as configured, calls are taken", metadata: metadata)
        }
    }

    /// What a call on the card has heard, and how the card has been since the start.
    private static func log(_ report: MediaReport, of call: CallID, card: CardStatistics?, _ logger: Logger) {
        guard let sound = report.sound else { return }
        var metadata: Logger.Metadata = [
            "call": "\(call)", "late": "\(report.playout.packetsLate)",
            "concealed_ms": "\((Double(report.playout.samplesConcealed) / 48).rounded(toPlaces: 1))",
            "frames_skipped": "\(report.call.framesSkipped)", "turns_skipped": "\(sound.ticksSkipped)",
        ]
        if let reduction = sound.echo.echoReturnLossEnhancementDB {
            metadata["echo_lowered_db"] = "\(reduction.rounded(toPlaces: 1))"
        }
        if let card {
            metadata["xruns"] = "\(card.playback.xruns) out, \(card.capture.xruns) in"
            metadata["missing_samples"] = "\(card.playback.missingSamples) out, \(card.capture.missingSamples) in"
            let (out, into) = (card.playback.targetMilliseconds, card.capture.targetMilliseconds)
            metadata["target_ms"] = "\(out.rounded(toPlaces: 1)) out, \(into.rounded(toPlaces: 1)) in"
            metadata["delay_jumps"] = "\(card.playback.jumps) out, \(card.capture.jumps) in"
        }
        logger.info("How it sounded", metadata: metadata)
    }

    private static func log(_ event: SignalingEvent, _ logger: Logger) {
        switch event {
        case .connected: logger.info("Connected")
        case .reconnecting: logger.warning("The connection is lost; connecting anew")
        case .reconnected: logger.info("Connected again")
        case .disconnected: logger.info("Disconnected")
        case .error(let error): logger.error("\(error)")
        case .roomLost(let room, let error):
            logger.warning("A room is lost", metadata: ["room": "\(room)", "error": "\(error)"])
        case .moveRequested: logger.info("The service asks for another connection")
        case .notification: logger.info("A notification came")
        case .iceServersChanged: logger.debug("The service names other STUN or TURN servers, or other ways in there")
        case .inviteReceived, .inviteHandled, .inviteCancelled, .inviteMissed, .inviteSent, .inviteAccepted,
            .inviteRejected, .inviteEnded, .inviteTimedOut, .callSignal, .callEnded, .connectionCreated,
            .connectionDestroyed, .roomSignal, .streamDropped, .streamResumed, .groupChanged, .inviteModified, .unknown:
            logger.debug("The service says something that is not about a call of ours")
        }
    }
}
