internal import CallAgent
internal import CallControl
internal import Logging

/// Puts into the lines about a call what the other end and the service know it by, so that one word finds the call in the logs of all.
struct LoggedCalls {
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
