internal import CallAgent
internal import CallControl
internal import DeviceControl
internal import Logging
internal import Realtime
internal import Synchronization
internal import Core

/// Reports what happens to the accounts of a process: to the log, the service manager and watching clients.
final class AccountReporter: Sendable {
    private let configuration: DeviceConfiguration
    private let media: SharedMedia
    private let monitor: DeviceMonitor
    private let status: AccountsStatus
    private let control: ControlInterfaces?
    private let ending: EndRequest
    private let logger: Logger
    private let memory: CallMemoryKeeper
    private let givenUp = Mutex<(any Error)?>(nil)

    /// - Parameter ending: Is made when the only account has failed.
    init(
        _ configuration: AccountsConfiguration, media: SharedMedia, monitor: DeviceMonitor, status: AccountsStatus,
        control: ControlInterfaces?, ending: EndRequest, logger: Logger
    ) {
        guard let first = configuration.accounts.first?.configuration else {
            preconditionFailure("a configuration that was read has an account")
        }
        self.configuration = first
        self.media = media
        self.monitor = monitor
        self.status = status
        self.control = control
        self.ending = ending
        self.logger = logger
        memory = CallMemoryKeeper(mayLock: first.media.realtimePriority != nil)
    }

    /// Why the only account has failed; nil unless it has.
    var failure: (any Error)? { givenUp.withLock { $0 } }

    /// Reports events until there are no more.
    func report(_ events: AsyncStream<AccountEvent>) async {
        // The calls of all accounts are numbered in one series.
        var calls = LoggedCalls()
        for await event in events { await report(event, &calls) }
    }

    private func report(_ event: AccountEvent, _ calls: inout LoggedCalls) async {
        var logger = logger
        if let name = event.account { logger[metadataKey: "account"] = "\(name)" }
        switch event.kind {
        case .device(let happening):
            await report(happening, of: event.account, calls.logger(for: happening, logger))
        case .connected(let configuration):
            logger.info(
                "Ready",
                metadata: ["server": "\(configuration.account.eventsURL)", "device": "\(configuration.device.name)"])
            guard await status.connected(event.account) else { return }
            await memory.becomeReady()
            if configuration.media.realtimePriority != nil { RunCommand.checkLock(logger) }
        case .failed(let error, let wait, let failures):
            await status.note(event.account, isConnected: false)
            logger.error(
                "An account has failed; it is tried again",
                metadata: [
                    "error": "\(error)", "after_s": "\(wait.seconds.rounded(toPlaces: 1))", "failures": "\(failures)",
                ])
        case .lost:
            await status.note(event.account, isConnected: false)
            logger.error("An account has lost its login; it logs in again when its calls have ended")
        case .waitsForTime(let error):
            let time = MonotonicClock.wallTime.rfc3339
            logger.warning(
                "This machine's clock is wrong, so certificates cannot be checked; waiting for the time",
                metadata: ["clock": "\(time)", "error": "\(error)"])
            status.wait(for: "Waiting for the time: the clock says \(time)")
        case .gaveUp(let error):
            givenUp.withLock { $0 = error }
            ending.make()
        case .removed:
            await status.note(event.account, isConnected: false)
            logger.info("An account is removed")
        case .ready: await status.becomeReady()
        }
    }

    private func report(_ event: DeviceEvent, of account: String?, _ logger: Logger) async {
        await memory.hear(event)
        monitor.note(event, of: account)
        DeviceEventLog.log(event, configuration, logger)
        if case .signaling(let event) = event { await note(event, of: account) }
        await control?.notify(event, of: account)
        if case .ended(let call, _, let report?) = event, report.sound != nil {
            DeviceEventLog.log(report, of: call, card: media.cardStatistics, logger)
        }
    }

    private func note(_ event: SignalingEvent, of account: String?) async {
        if case .reconnecting = event { await status.note(account, isConnected: false) }
        if case .disconnected = event { await status.note(account, isConnected: false) }
        if case .reconnected = event { await status.note(account, isConnected: true) }
    }
}

/// Puts into the lines about a call what the other end and the service know it by, so that one word finds the call in the logs of all.
private struct LoggedCalls {
    private var invites: [CallID: InviteID] = [:]

    /// A logger for what is said of an event, to be asked for each event in order.
    mutating func logger(for event: DeviceEvent, _ logger: Logger) -> Logger {
        guard let call = event.call else { return logger }
        if case .identified(_, let id) = event { invites[call] = id }
        var invite = invites[call]
        if case .ended(_, let record, _) = event { invite = invites.removeValue(forKey: call) ?? record.invite }
        guard let invite else { return logger }
        var logger = logger
        logger[metadataKey: "invite"] = "\(invite)"
        return logger
    }
}
