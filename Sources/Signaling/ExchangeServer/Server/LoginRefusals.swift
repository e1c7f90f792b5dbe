import ExchangeCore
import HTTPTransport
import Logging
import SignalWire
import Core

/// The answers to logins that are refused: each is counted, and logged unless it is about a token alone.
struct LoginRefusals {
    private let hub: ExchangeHub
    private let logger: Logger

    init(hub: ExchangeHub, logger: Logger) {
        self.hub = hub
        self.logger = logger
    }

    func answer(_ code: RESTErrorCode, _ request: RESTRequest) -> HTTPAnswer {
        hub.countRefusedLogin()
        logger.notice("Refused a login", metadata: ["code": "\(code.rawValue)", "trace": "\(request.trace)"])
        let message =
            switch code {
            case .unknownAppKey: "The Authorization header must be Basic with an application's key and secret."
            case .wrongMediaToken: "No user has this media token."
            case .wrongAccessToken: "Unknown user or wrong access token."
            case .wrongKey: "Unknown user or wrong key."
            case .challengeExpired: "The challenge has expired, was used before, or belongs to another exchange."
            case .enrollmentUnknown: "There is no such code."
            case .enrollmentExpired: "The code is more than ten minutes old."
            case .enrollmentUsed: "Another device has used the code."
            default: "Unknown user or wrong password."
            }
        return .failure(code, message, trace: request.trace)
    }

    /// The answer to a token that is not good.
    func answer(to error: RPCError, _ request: RESTRequest) -> HTTPAnswer {
        hub.countRefusedLogin()
        let code = RESTErrorCode(aboutToken: error)
        return .failure(
            code, error.message, trace: request.trace, retryAfterSeconds: code == .unavailable ? 60 : nil)
    }

    /// Too many attempts have failed.
    ///
    /// - Parameters:
    ///   - what: What was refused, for the log.
    ///   - message: The reason, for the client.
    func tooMany(_ what: Logger.Message, _ message: String, wait: Duration, _ request: RESTRequest) -> HTTPAnswer {
        hub.countRefusedLogin()
        logger.notice(what, metadata: ["code": "tooManyRequests", "trace": "\(request.trace)"])
        return .failure(
            .tooManyRequests, message, trace: request.trace, retryAfterSeconds: max(1, Int(wait.seconds.rounded(.up))))
    }

    // MARK: - Not counted, because nothing was tried

    /// The thread that checks passwords has enough to do.
    func busy(_ request: RESTRequest, retryAfterSeconds: Int = 1) -> HTTPAnswer {
        .failure(
            .tooManyRequests, "Too many logins at once.", trace: request.trace, retryAfterSeconds: retryAfterSeconds)
    }

    func noRoom(_ request: RESTRequest) -> HTTPAnswer {
        .failure(
            .unavailable,
            hub.failure == nil
                ? "The exchange has no room for another login." : "The exchange cannot write its database.",
            trace: request.trace,
            retryAfterSeconds: hub.failure == nil ? 60 : RESTService.unwrittenRetrySeconds)
    }

    func noKey(_ request: RESTRequest) -> HTTPAnswer {
        let message = "A public_key must be the 32 bytes of an Ed25519 key in base64url, not of small order."
        return .failure(.badRequest, message, trace: request.trace)
    }
}
