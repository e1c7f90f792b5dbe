package import BotWire
package import CallControl

extension TwilioWebhook.Status {
    /// How a call has ended.
    package init(_ record: CallRecord) {
        guard record.answeredAfter == nil else {
            self = .completed
            return
        }
        switch record.reason {
        case .busy: self = .busy
        case .noAnswer, .declined: self = .noAnswer
        case .cancelled: self = .canceled
        case .completed, .acceptedElsewhere, .declinedElsewhere, .dialFailed, .acceptFailed, .connectionLost,
            .disconnected,
            .internalError:
            self = .failed
        }
    }
}
