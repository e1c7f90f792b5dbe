internal import CallControl
internal import HTTPTransport

extension HTTPEndpoint {
    /// Takes apart an address of the service.
    static func of(_ text: String) throws(SignalingError) -> HTTPEndpoint {
        do throws(Malformed) { return try HTTPEndpoint(text) } catch {
            throw SignalingError(
                .badConfiguration, activity: "use the address \"\(error.text)\"", cause: error.cause,
                advice: "It should look like https://exchange.example:8443.")
        }
    }

    /// Refuses to send secrets in the clear to another machine, unless that was asked for by name.
    func check(_ plainText: HandsetServiceConfiguration.PlainText, for activity: String) throws(SignalingError) {
        guard !isSecure, !isLoopback, plainText == .loopbackOnly else { return }
        throw SignalingError(
            .plainTextRefused, activity: activity,
            cause: "\(authority) is another machine and its address asks for no TLS",
            advice: "Use https, or set allow_plain_text: true if no one can listen on the network between.")
    }
}

extension TLSTrust {
    /// Trusts what the system trusts, and the certificates of the trust root file if one is given.
    static func of(_ trustRootFile: String?) throws(SignalingError) -> TLSTrust {
        do throws(Unreadable) { return try TLSTrust(trustRootFile: trustRootFile) } catch {
            throw SignalingError(
                .badConfiguration, activity: "read the trust root file \"\(error.path)\"",
                cause: error.cause,
                advice: "It should hold the certificate of the authority that signed the exchange's.")
        }
    }
}
