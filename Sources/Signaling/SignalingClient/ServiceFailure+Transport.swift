internal import AsyncHTTPClient
internal import CallControl
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

extension ServiceFailure {
    /// What it means that bytes could not be got to `endpoint` or back.
    static func transport(_ error: any Error, to endpoint: Endpoint, doing activity: String) -> ServiceFailure {
        if let failure = error as? ServiceFailure { return failure }
        func failure(
            _ code: SignalingError.Code, _ cause: String, _ advice: String, _ remedy: Remedy = .retry(after: nil),
            isBurden: Bool = true
        ) -> ServiceFailure {
            ServiceFailure(
                SignalingError(code, activity: activity, cause: cause, advice: advice), remedy: remedy,
                isBurden: isBurden)
        }
        let place = endpoint.authority
        let startIt = "Check the address, and that the exchange runs there."
        switch error {
        case let error as NIOConnectionError:
            return failure(
                .serverUnreachable, Self.cause(of: error, at: place), startIt, isBurden: !Self.isNobodyThere(error))
        case is NIOSSLError, is BoringSSLError, is NIOSSLExtraError:
            return tls(error, at: place, doing: activity)
        case is HTTPParserError:
            return failure(.notAnExchange, "what \(place) sends is not HTTP", startIt, .none)
        case let error as ChannelError where error == .inputClosed || error == .inappropriateOperationForState,
            let error as ChannelError where error == .alreadyClosed || error == .ioOnClosedChannel || error == .eof:
            return closed(at: endpoint, doing: activity)
        case let error as HTTPClientError
        where error == .connectTimeout || error == .deadlineExceeded || error == .readTimeout
            || error == .tlsHandshakeTimeout || error == .getConnectionFromPoolTimeout:
            return failure(.serverUnreachable, "\(place) does not answer", startIt)
        case let error as HTTPClientError where error == .remoteConnectionClosed || error == .uncleanShutdown:
            return closed(at: endpoint, doing: activity)
        case ChannelError.connectTimeout:
            return failure(.serverUnreachable, "\(place) does not answer", startIt)
        case let error as IOError:
            return failure(
                .serverUnreachable, Self.cause(of: error, at: place), startIt, isBurden: !Self.isNobodyThere(error))
        default:
            return failure(.serverUnreachable, "\(error)", startIt)
        }
    }

    private static func closed(at endpoint: Endpoint, doing activity: String) -> ServiceFailure {
        let advice =
            endpoint.isSecure
            ? "If it does not speak TLS, use http and ws." : "If it speaks TLS, use https and wss."
        return ServiceFailure(
            SignalingError(
                .disconnected, activity: activity, cause: "\(endpoint.authority) closed the connection",
                advice: advice),
            remedy: .retry(after: nil))
    }

    /// TLS failures, told apart by BoringSSL's own words, which are all that NIOSSL passes on.
    private static func tls(_ error: any Error, at place: String, doing activity: String) -> ServiceFailure {
        let words = "\(error)"
        if words.contains("CERTIFICATE_VERIFY_FAILED") || words.contains("unableToValidateCertificate") {
            return ServiceFailure(
                SignalingError(
                    .certificateNotTrusted, activity: activity,
                    cause: "the certificate of \(place) is signed by nobody this machine trusts, or has expired",
                    advice: "If it is your own, name the file of the certificate that signed it as trust root."),
                remedy: .none)
        }
        if words.contains("failedToValidateHostname") || words.contains("HOSTNAME") {
            return ServiceFailure(
                SignalingError(
                    .certificateNotTrusted, activity: activity,
                    cause: "the certificate of \(place) is for another name",
                    advice: "Use the name that the certificate is for."),
                remedy: .none)
        }
        if words.contains("WRONG_VERSION_NUMBER") || words.contains("HTTP_REQUEST") {
            return ServiceFailure(
                SignalingError(
                    .notAnExchange, activity: activity, cause: "\(place) does not speak TLS",
                    advice: "Check the port. On this machine http and ws may be used."),
                remedy: .none)
        }
        return ServiceFailure(
            SignalingError(
                .serverUnreachable, activity: activity, cause: "the TLS handshake with \(place) failed: \(words)"),
            remedy: .retry(after: nil))
    }

    /// Whether no server has had anything to do with the attempt. One that is overrun does not answer in time.
    private static func isNobodyThere(_ error: NIOConnectionError) -> Bool {
        error.connectionErrors.allSatisfy { ($0.error as? IOError).map(isNobodyThere) ?? false }
    }

    private static func isNobodyThere(_ error: IOError) -> Bool {
        [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENETDOWN].contains(error.errnoCode)
    }

    private static func cause(of error: NIOConnectionError, at place: String) -> String {
        if error.connectionErrors.isEmpty, error.dnsAError != nil || error.dnsAAAAError != nil {
            return "the name \"\(error.host)\" is not known"
        }
        for single in error.connectionErrors {
            if let failure = single.error as? IOError { return cause(of: failure, at: place) }
        }
        return "\(place) does not answer"
    }

    private static func cause(of error: IOError, at place: String) -> String {
        error.errnoCode == ECONNREFUSED ? "nothing listens at \(place)" : "the way to \(place) is closed: \(error)"
    }
}
