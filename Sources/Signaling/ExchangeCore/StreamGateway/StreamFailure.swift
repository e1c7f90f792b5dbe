/// Why a stream's request is refused; each has its status code and its sentence.
package enum StreamFailure: Hashable, Sendable {
    // The request.
    case unknownOrigin
    case notAuthenticated
    case tokenExpired
    case foreignToken
    case noAccount
    case barred
    case unknownUser
    case unknownSession
    case methodNotAllowed
    case wrongType(expected: String)
    case tooLarge
    case malformed(String)
    case unusable(String)
    // The condition of a PATCH.
    case conditionMissing
    case conditionFailed
    case underWay
    // The device.
    case noDeviceOnline
    case busy
    case declined
    case deviceFailed
    case noAnswer
    case hungUp
    case unusableAnswer
    case noRestart
    // The exchange.
    case full
    case tooManyStreams
    case goingDown
    case notStored
    case failed

    /// The HTTP status.
    package var status: Int {
        switch self {
        case .malformed: 400
        case .notAuthenticated, .tokenExpired: 401
        case .unknownOrigin, .foreignToken, .noAccount, .barred: 403
        case .unknownUser, .unknownSession: 404
        case .methodNotAllowed: 405
        case .noDeviceOnline, .declined, .underWay: 409
        case .conditionFailed: 412
        case .tooLarge: 413
        case .wrongType: 415
        case .unusable: 422
        case .conditionMissing: 428
        case .tooManyStreams: 429
        case .failed: 500
        case .unusableAnswer, .deviceFailed: 502
        case .busy, .noAnswer, .hungUp, .noRestart, .full, .goingDown, .notStored: 503
        }
    }

    /// When it is worth trying again.
    package var retryAfterSeconds: Int? {
        switch self {
        case .underWay: 1
        case .busy, .noAnswer, .hungUp, .goingDown, .notStored: 5
        case .noDeviceOnline, .noRestart: 10
        case .declined, .full, .tooManyStreams: 30
        case .unknownOrigin, .notAuthenticated, .tokenExpired, .foreignToken, .noAccount, .barred, .unknownUser,
            .unknownSession, .methodNotAllowed, .wrongType, .tooLarge, .malformed, .unusable, .conditionMissing,
            .conditionFailed,
            .unusableAnswer, .deviceFailed, .failed:
            nil
        }
    }

    /// A stable name.
    package var code: String {
        switch self {
        case .unknownOrigin: "unknownOrigin"
        case .notAuthenticated: "tokenRejected"
        case .tokenExpired: "tokenExpired"
        case .foreignToken, .noAccount, .barred: "notAllowed"
        case .unknownUser: "unknownUser"
        case .unknownSession: "unknownSession"
        case .methodNotAllowed: "methodNotAllowed"
        case .wrongType: "wrongType"
        case .tooLarge: "tooLarge"
        case .malformed: "malformed"
        case .unusable: "unusable"
        case .conditionMissing: "conditionMissing"
        case .conditionFailed: "conditionFailed"
        case .underWay: "underWay"
        case .noDeviceOnline: "noDeviceOnline"
        case .busy: "busy"
        case .declined: "declined"
        case .deviceFailed: "deviceFailed"
        case .noAnswer: "noAnswer"
        case .hungUp: "hungUp"
        case .unusableAnswer: "unusableAnswer"
        case .noRestart: "noRestart"
        case .full, .goingDown, .notStored: "unavailable"
        case .tooManyStreams: "tooManyStreams"
        case .failed: "internalError"
        }
    }

    /// A sentence for people.
    package var detail: String {
        switch self {
        case .unknownOrigin:
            "Pages from that origin may not stream; allowed_origins in the configuration names those."
        case .notAuthenticated:
            "The Authorization header must be Bearer with an access token, or with a stream token of the user."
        case .tokenExpired: "The access token has expired; log in again."
        case .foreignToken: "That token is not valid for this user or this session."
        case .noAccount: "An anonymous login may not stream."
        case .barred: "A trunk's account takes calls to telephone numbers only, and no streams."
        case .unknownUser: "No user of this exchange has that name."
        case .unknownSession: "There is no such session, or it has ended."
        case .methodNotAllowed: "This path does not accept that method; the Allow header lists those that it accepts."
        case .wrongType(let expected): "The body must be of the type \(expected)."
        case .tooLarge:
            "A description has at most \(StreamTable.maximumOfferBytes) bytes, and less if it is long as JSON text."
        case .malformed(let problem): "The body cannot be read: \(problem)."
        case .unusable(let problem): "The body is readable but cannot be used: \(problem)."
        case .conditionMissing: "A PATCH needs If-Match, with the session's ETag, or with * to restart ICE."
        case .conditionFailed: "If-Match is not the session's ETag: ICE has been restarted since."
        case .underWay: "ICE is being restarted; wait for the answer."
        case .noDeviceOnline: "None of the user's devices is online."
        case .busy: "The user's device is busy."
        case .declined: "The user declined."
        case .deviceFailed: "The user's device could not take the stream."
        case .noAnswer: "None of the user's devices answered in time."
        case .hungUp: "The device hung up before the stream was set up."
        case .unusableAnswer: "The device's answer cannot be used."
        case .noRestart: "The device did not restart ICE; the session continues unchanged."
        case .full: "The exchange has no room for another stream."
        case .tooManyStreams: "This user already has too many streams or open invites."
        case .goingDown: "The exchange is shutting down."
        case .notStored: "The exchange cannot write its database, or waits for it, and changed nothing."
        case .failed: "The exchange failed."
        }
    }
}
