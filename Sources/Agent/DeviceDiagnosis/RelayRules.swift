internal import CallDiagnosis
internal import Core

extension NetworkRules {
    /// Judges whether TURN servers relay for the login that the device has (RFC 8656 §7).
    static func relays(_ servers: [RelayFacts]) -> DeviceStep {
        let asked = servers.filter { if case .notTried = $0.result { false } else { true } }
        guard !asked.isEmpty else {
            return DeviceStep(
                .relays, skipped: servers.isEmpty ? "there is no TURN server" : "no TURN server is asked",
                servers.map(line))
        }
        return DeviceStep(.relays, servers.map(line), asked.compactMap(finding))
    }

    private static func line(_ server: RelayFacts) -> String {
        let words =
            switch server.result {
            case .relayed(let address): "relays at \(address)"
            case .unauthorized(let words): "refuses the login: \(words)"
            case .refused(let words): "gives no address: \(words)"
            case .redirected(let address): "names another server, at \(address)"
            case .unreachable(let words): "cannot be reached: \(words)"
            case .silent(let seconds): "no address in \(seconds) s"
            case .notTried(let reason): reason
            }
        return "\(server.url): \(words)"
    }

    private static func finding(_ server: RelayFacts) -> DeviceFinding? {
        let advice = "Check its address, port and transport, and what a firewall drops; calls wait for it until then."
        return switch server.result {
        case .relayed, .redirected, .notTried: nil
        case .unauthorized(let words):
            DeviceFinding(
                .relayUnauthorized, server.isConfigured ? .ours : .service,
                "The TURN server refuses the login: \(server.url).", because: words,
                advice: server.isConfigured
                    ? "Check username and credential in media.ice_servers; passwords that are made for a time expire."
                    : "Compare the secret of the exchange's ice_servers with the TURN server's, and both clocks.")
        case .refused(let words):
            DeviceFinding(
                .relayRefused, .service, "The TURN server gives no relayed address: \(server.url).", because: words,
                advice: "Look at its log, its quotas, and the ports that it may relay at.")
        case .unreachable(let words):
            DeviceFinding(
                .relayUnreachable, .unclear, "The TURN server cannot be reached: \(server.url).", because: words,
                advice: advice)
        case .silent(let seconds):
            DeviceFinding(
                .relayUnreachable, .unclear, "The TURN server does not answer: \(server.url).",
                because: "no relayed address in \(seconds) s", advice: advice)
        }
    }
}
