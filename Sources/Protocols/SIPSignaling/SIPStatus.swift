internal import CallControl
internal import SIP

/// The meaning of a status for an invite, and the reverse (docs/sip.md).
enum SIPStatus {
    /// The status by which we refuse a caller's call.
    static func refusal(_ rejection: InviteRejection) -> Int {
        switch rejection.reason {
        case .declined: 603
        case .busy: 486
        case .noAnswer: 480
        case .failed:
            switch rejection.cause {
            case .noSuchNumber: 404
            // Not 503, which means that the whole device is out of service.
            case .notReachable: 480
            case .tooManyHops: 483
            case let cause?: cause.isInDescription ? 488 : 500
            case nil: 500
            }
        }
    }

    /// Why a peer did not accept our call.
    static func reason(_ status: Int) -> RejectReason {
        switch status {
        case 486, 600: .busy
        case 408, 480, 487: .noAnswer
        case 403, 603: .declined
        default: .failed
        }
    }

    /// Why a refused call cannot reach its callee; nil if the status does not say.
    static func cause(_ status: Int) -> CallFailureCause? {
        switch status {
        case 404, 410, 484, 485, 604: .noSuchNumber
        case 430, 500..<600: .notReachable
        case 483: .tooManyHops
        default: nil
        }
    }

    /// The failure of an invite that rang nowhere; `nil` if the refusal is an invitee's own.
    static func failure(_ status: Int, _ activity: String) -> SignalingError? {
        let code: SignalingError.Code
        switch status {
        case 404, 410, 484, 485, 604: code = .unknownUser
        case 401, 403, 407: code = .notAllowed
        case 480: code = .noDeviceOnline
        case 500..<600: code = .serverError
        default: return nil
        }
        return SignalingError(
            code, activity: activity, cause: "the server says \(status) \(SIPResponse(status: status).reason)")
    }
}
