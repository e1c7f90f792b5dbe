package import CallControl
internal import CallMedia
internal import SDP
internal import SecureTransport

// What the peer learns of an error: one of a closed set of causes. The error itself stays in this device's log.
extension MediaFailure {
    /// What the peer learns of this error.
    package init(_ error: any Error) {
        switch error {
        case let error as NegotiationError: self.init(CallFailureCause(error.code), "\(error)")
        case let error as SDPError:
            self.init(error.code == .tooLong ? .descriptionTooLarge : .descriptionUnreadable, "\(error)")
        case is DescriptionError: self.init(.descriptionUnreadable, "\(error)")
        // Of a description's fingerprints.
        case let error as DTLSError where error.code != .library: self.init(.noCommonKeys, "\(error)")
        case let error as MediaStartError where error.isFull: self.init(.deviceFull, "\(error)")
        case let error as MediaStartError: self.init(error.file == nil ? .deviceFault : .fileUnusable, "\(error)")
        case let failure as ConnectionFailure: self.init(CallFailureCause(failure), "\(failure)")
        default: self.init(.deviceFault, "\(error)")
        }
    }
}

extension CallFailureCause {
    init(_ code: NegotiationError.Code) {
        switch code {
        case .noAudio, .refused: self = .noAudio
        case .noCommonCodec: self = .noCommonCodec
        case .noAcceptableCrypto, .noFingerprint: self = .noCommonKeys
        case .plainMediaRefused: self = .plainMediaRefused
        case .unsupportedProfile: self = .unsupportedTransport
        case .unusableAddress: self = .unusableAddress
        case .malformedICE, .multiplexingNeeded, .staleICECredentials: self = .unusableICE
        case .answerDoesNotFit: self = .answerDoesNotFit
        case .tooManySections: self = .descriptionTooLarge
        default: self = .deviceFault  // Out of turn, which is for us to prevent.
        }
    }

    init(_ failure: ConnectionFailure) {
        switch failure.code {
        case .noPath: self = .noPath
        case .unusableAddress: self = .unusableAddress
        case .handshake: self = failure.handshake.map { CallFailureCause($0.code) } ?? .handshakeFailed
        default: self = .deviceFault
        }
    }

    private init(_ code: DTLSError.Code) {
        switch code {
        case .fingerprintMismatch: self = .certificateMismatch
        case .certificateUnsupported: self = .certificateUnsupported
        case .refusedByPeer: self = .handshakeRefused
        case .timedOut: self = .handshakeTimedOut
        case .library: self = .deviceFault
        default: self = .handshakeFailed
        }
    }
}
