internal import CallControl
internal import SignalWire
internal import HTTPTransport

extension SignalingError.Code {
    /// A challenge was too old when it came back: ask for another.
    static let challengeExpired = Self(rawValue: "challengeExpired")
    /// The exchange does not have the code, or has not read it yet.
    static let enrollmentUnknown = Self(rawValue: "enrollmentUnknown")
}

extension SignalingError {
    /// What an error answer to a request means.
    init(_ error: RPCError, doing activity: String) {
        let code: Code =
            switch error.known {
            case .notAuthenticated: .notAuthenticated
            case .tokenExpired: .tokenExpired
            case .tokenRejected, .tokenWrongSignature, .tokenForAnotherSession, .tokenRevoked: .tokenRejected
            case .notAllowed: .notAllowed
            case .notRegistered: .notRegistered
            case .unknownUser: .unknownUser
            case .unknownInvite: .unknownInvite
            case .unknownRoom: .unknownRoom
            case .unknownCall: .unknownCall
            case .alreadyHandled: .alreadyHandled
            case .inviteEnded: .inviteEnded
            case .inviteTimedOut: .inviteTimedOut
            case .inviteCancelled: .inviteCancelled
            case .notYours: .notYours
            case .tooLarge: .tooLarge
            case .tooManyRequests: .tooManyRequests
            case .noDeviceOnline: .noDeviceOnline
            case .unknownGroup, .groupExists: Code(rawValue: error.data?.name ?? "error\(error.code)")
            case .parseError, .invalidRequest, .unknownMethod, .invalidParams: .invalidRequest
            case .internalError: .serverError
            case nil: Code(rawValue: error.data?.name ?? "error\(error.code)")
            }
        self.init(code, activity: activity, cause: Self.asClause(error.message))
    }

    /// A sentence of the service as a clause within another.
    static func asClause(_ message: String) -> String {
        let clause = message.hasSuffix(".") ? String(message.dropLast()) : message
        return clause.isEmpty ? "the service gave no reason" : "the service says: \(clause)"
    }
}

extension ServiceFailure {
    /// A session that was refused: the token is no good, or the exchange is unwell.
    static func session(_ error: SignalingError) -> ServiceFailure {
        let isWorthRetrying: Set<SignalingError.Code> = [.serverError, .tooManyRequests, .timedOut, .disconnected]
        return ServiceFailure(error, remedy: isWorthRetrying.contains(error.code) ? .retry(after: nil) : .none)
    }

    /// An HTTP answer that is not a success (contract AUTH-11).
    static func rest(
        status: Int, body: RESTFailure?, retryAfter: Duration?, traceID: String?, doing activity: String
    ) -> ServiceFailure {
        let said = body.map { SignalingError.asClause($0.error.message) } ?? "the answer is HTTP status \(status)"
        func failure(
            _ code: SignalingError.Code, _ advice: String, _ remedy: Remedy, isBurden: Bool = true,
            standby: Standby? = nil
        ) -> ServiceFailure {
            ServiceFailure(
                SignalingError(code, activity: activity, cause: said, advice: advice, traceID: traceID),
                remedy: remedy, isBurden: isBurden, standby: standby)
        }
        switch (status, body.flatMap { RESTErrorCode(rawValue: $0.error.code) }) {
        case (_, .tokenExpired?): return failure(.tokenExpired, "Log in again.", .none)
        case (_, .tokenRejected?): return failure(.tokenRejected, "Log in again.", .none)
        case (_, .unknownAppKey?):
            return failure(.loginRefused, "Check the application's key and secret.", .none)
        case (_, .challengeExpired?): return failure(.challengeExpired, "", .none)
        case (_, .wrongKey?):
            return failure(
                .loginRefused,
                "Enrol this device again, with a new code of `handset user enroll` and `handset enroll`.",
                .none)
        case (_, .enrollmentUnknown?):
            return failure(.enrollmentUnknown, "Check the code, or make a new one with `handset user enroll`.", .none)
        case (_, .enrollmentExpired?):
            return failure(
                .loginRefused,
                "Make a new one with `handset user enroll`, and use it within ten minutes; if it is new, the exchange's clock "
                    + "was set.", .none)
        case (_, .enrollmentUsed?):
            return failure(
                .loginRefused,
                "Make a new one with `handset user enroll`. If none of your devices has used it, the code has leaked: `handset "
                    + "user revoke --keys` locks all devices of that user out.", .none)
        // A server that only refuses is not burdened.
        case (_, .standby?):
            return failure(
                .serverUnreachable, "Name all exchanges on its database: one in server, the others in more_servers.",
                .retry(after: nil), isBurden: false, standby: Standby(owner: body?.error.owner))
        case (401, _): return failure(.loginRefused, "Check the user name and the password or media token.", .none)
        case (403, _): return failure(.notAllowed, "Another account may be needed.", .none)
        case (429, _): return failure(.tooManyRequests, "", .retry(after: retryAfter))
        case (500..., _): return failure(.serverError, "", .retry(after: retryAfter))
        case (400, _?), (413, _?): return failure(.invalidRequest, "", .none)
        default: return failure(.notAnExchange, "Check the address: it should be that of an exchange.", .none)
        }
    }
}

extension ServiceFailure {
    /// What it means that bytes could not be got to `endpoint` or back.
    static func transport(_ error: any Error, to endpoint: HTTPEndpoint, doing activity: String) -> ServiceFailure {
        (error as? ServiceFailure) ?? explained(TransportFailure(error, to: endpoint), doing: activity)
    }

    private static func explained(_ failure: TransportFailure, doing activity: String) -> ServiceFailure {
        func failed(
            _ code: SignalingError.Code, _ advice: String, _ remedy: Remedy = .retry(after: nil), isBurden: Bool = true
        ) -> ServiceFailure {
            ServiceFailure(
                SignalingError(code, activity: activity, cause: failure.cause, advice: advice), remedy: remedy,
                isBurden: isBurden)
        }
        let startIt = "Check the address, and that the exchange runs there."
        return switch failure.kind {
        // An overloaded server does not answer in time; if no server is running, an attempt causes no load.
        case .noServer: failed(.serverUnreachable, startIt, isBurden: false)
        case .unreachable, .fault: failed(.serverUnreachable, startIt)
        case .closed: failed(.disconnected, failure.advice)
        case .untrusted, .wrongName: failed(.certificateNotTrusted, failure.advice, .none)
        case .plainText: failed(.notAnExchange, failure.advice, .none)
        case .handshake: failed(.serverUnreachable, failure.advice)
        case .notHTTP: failed(.notAnExchange, startIt, .none)
        case .notUpgraded(let status):
            .rest(status: status ?? 0, body: nil, retryAfter: nil, traceID: nil, doing: activity)
        }
    }
}
