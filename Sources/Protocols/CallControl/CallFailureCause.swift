/// Why a call could not be set up, or failed later: what one side may report to any other side.
///
/// The set is closed and each cause has one sentence, so that nothing about this machine (paths, addresses, messages of
/// libraries) reaches a stranger. It accompanies the reason (contract CALL-5), as `cause` in the data of a reject and
/// in a hang-up.
public enum CallFailureCause: String, CaseIterable, Hashable, Sendable {
    // What the descriptions say.

    /// An offer or answer is not a session description.
    case descriptionUnreadable
    /// An offer has more sections than are answered, or an answer would be longer than a message.
    case descriptionTooLarge
    /// There is no audio in it, or it was refused.
    case noAudio
    /// The two sides have no codec in common.
    case noCommonCodec
    /// The two sides have no way of protecting media in common, or there are no keys for it.
    case noCommonKeys
    /// Media would be unprotected, which is not allowed.
    case plainMediaRefused
    /// The transport is one that the other side does not have.
    case unsupportedTransport
    /// There is no address that media can be sent to.
    case unusableAddress
    /// The parts about ICE cannot be used.
    case unusableICE
    /// The answer does not fit the offer.
    case answerDoesNotFit

    // The way, and the handshake on it.

    /// No path between the two sides works.
    case noPath
    /// The peer did not show the certificate that its description promises.
    case certificateMismatch
    /// The peer's certificate, or the curve of its key, is of a kind that is not accepted.
    case certificateUnsupported
    /// The two DTLS stacks have no cipher, group or SRTP profile in common, or one broke the protocol.
    case handshakeFailed
    /// One side ended the DTLS handshake with an alert.
    case handshakeRefused
    /// The DTLS handshake was not over in time.
    case handshakeTimedOut
    /// Media was not ready in time. Earlier versions also sent this when media did not flow both ways in time.
    case mediaTimedOut

    // Who is called.

    /// There is no such number or user.
    case noSuchNumber
    /// The callee exists, or may exist, and cannot be reached now: its server or network has a fault, or no device is there.
    case notReachable
    /// More calls led to this one, one after the other, than may: their devices probably call each other in a circle.
    case tooManyHops

    // The device.

    /// A file that the call plays or records cannot be used; the disk may be full.
    case fileUnusable
    /// The device has as many calls as it can have.
    case deviceFull
    /// Something else that is the device's own fault.
    case deviceFault
}

extension CallFailureCause {
    /// What it means, to be read after "the other side says that" or by itself.
    public var sentence: String {
        switch self {
        case .descriptionUnreadable: "the session description cannot be read"
        case .descriptionTooLarge: "the session description has too many sections, or is too long"
        case .noAudio: "there is no audio to agree on"
        case .noCommonCodec: "the two sides have no codec in common"
        case .noCommonKeys: "the two sides have no way of protecting media in common"
        case .plainMediaRefused: "unprotected media is not allowed"
        case .unsupportedTransport: "the media transport is not supported"
        case .unusableAddress: "there is no address that media can be sent to"
        case .unusableICE: "the ICE parameters cannot be used"
        case .answerDoesNotFit: "the answer does not fit the offer"
        case .noPath: "no path between the two sides works"
        case .certificateMismatch: "the certificate is not the one that the description promises"
        case .certificateUnsupported: "the certificate, or the curve of its key, is not supported"
        case .handshakeFailed: "the DTLS handshake failed"
        case .handshakeRefused: "the DTLS handshake was refused with an alert"
        case .handshakeTimedOut: "the DTLS handshake did not complete in time"
        case .mediaTimedOut: "media was not ready in time"
        case .noSuchNumber: "there is no such number or user"
        case .notReachable: "the callee cannot be reached now"
        case .tooManyHops: "too many calls led to this one, one after the other"
        case .fileUnusable: "a file that the call needs cannot be used"
        case .deviceFull: "the device has as many calls as it can have"
        case .deviceFault: "the device has a fault of its own"
        }
    }

    /// Whether another description might do.
    public var isInDescription: Bool {
        switch self {
        case .descriptionUnreadable, .descriptionTooLarge, .noAudio, .noCommonCodec, .noCommonKeys, .plainMediaRefused,
            .unsupportedTransport, .unusableAddress, .unusableICE, .answerDoesNotFit:
            true
        case .noPath, .certificateMismatch, .certificateUnsupported, .handshakeFailed, .handshakeRefused,
            .handshakeTimedOut, .mediaTimedOut, .noSuchNumber, .notReachable, .tooManyHops, .fileUnusable, .deviceFull,
            .deviceFault:
            false
        }
    }

    /// Whether it says that the callee cannot be had, and nothing of media or of a device.
    public var isOfCallee: Bool { [.noSuchNumber, .notReachable, .tooManyHops].contains(self) }

    /// Why a call reaches no device, from the service's error; nil for an error that is not about the callee.
    init?(_ error: SignalingError) {
        switch error.code {
        case .unknownUser: self = .noSuchNumber
        case .noDeviceOnline, .serverError, .timedOut, .disconnected: self = .notReachable
        default: return nil
        }
    }

    /// The error in the record of the side that received this cause.
    var toldError: SignalingError {
        let cause = "the other side says that \(sentence)"
        switch self {
        case .noSuchNumber: return SignalingError(.unknownUser, activity: "call", cause: cause)
        case .notReachable, .tooManyHops: return SignalingError(.serverError, activity: "call", cause: cause)
        case .descriptionUnreadable, .descriptionTooLarge, .noAudio, .noCommonCodec, .noCommonKeys, .plainMediaRefused,
            .unsupportedTransport, .unusableAddress, .unusableICE, .answerDoesNotFit, .noPath, .certificateMismatch,
            .certificateUnsupported, .handshakeFailed, .handshakeRefused, .handshakeTimedOut, .mediaTimedOut,
            .fileUnusable, .deviceFull, .deviceFault:
            return SignalingError(.mediaFailed, activity: "provide the call's media", cause: cause)
        }
    }
}

/// The media side's report of a failure: the cause for the peer, and the details for this device's own log.
public struct MediaFailure: Hashable, Sendable, ExpressibleByStringLiteral {
    /// What the peer may know.
    public var cause: CallFailureCause
    /// What happened, as text; it stays on this device.
    public var detail: String

    /// Makes one.
    public init(_ cause: CallFailureCause, _ detail: String) {
        self.cause = cause
        self.detail = detail
    }

    /// A failure of which the peer learns only that it is this side's.
    public init(stringLiteral detail: String) { self.init(.deviceFault, detail) }

    /// Media was not there when it had to be.
    static func late(_ detail: String) -> MediaFailure { MediaFailure(.mediaTimedOut, detail) }

    /// The error in this device's record.
    var error: SignalingError {
        SignalingError(.mediaFailed, activity: "provide the call's media", cause: detail)
    }
}
