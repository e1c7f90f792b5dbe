internal import CallControl
internal import HTTPTransport

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
        case .nobodyThere: failed(.serverUnreachable, startIt, isBurden: false)
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
