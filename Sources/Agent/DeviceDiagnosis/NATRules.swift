internal import CallDiagnosis
internal import Core

extension NetworkRules {
    /// Judges whether UDP passes, and what a NAT makes of this machine's ports (RFC 5780 §4.3).
    static func nat(_ servers: [STUNFacts]) -> DeviceStep {
        let asked = servers.filter { if case .notTried = $0.answer { false } else { true } }
        guard !asked.isEmpty else {
            return DeviceStep(.nat, skipped: "no STUN or TURN server is asked over UDP", servers.map(line))
        }
        let silent = asked.filter { if case .silent = $0.answer { true } else { false } }
        let findings = silent.count == asked.count ? [blocked(silent)] : silent.map(quiet)
        let (mapping, dependent) = mapping(of: asked)
        return DeviceStep(.nat, servers.map(line) + mapping, findings + dependent)
    }

    private static func line(_ server: STUNFacts) -> String {
        switch server.answer {
        case .mapped(let address):
            "\(server.url): sees \(address)" + (server.local.map { ", sent from \($0)" } ?? "")
        case .relays: "\(server.url): answers, and asks for a login"
        case .refused(let code): "\(server.url): answers with error \(code)"
        case .unusable: "\(server.url): answers without an address"
        case .silent(let seconds): "\(server.url): no answer in \(seconds) s"
        case .notTried(let reason): "\(server.url): \(reason)"
        }
    }

    /// No server answered.
    private static func blocked(_ silent: [STUNFacts]) -> DeviceFinding {
        let evidence = "no answer from " + silent.map(\.url).joined(separator: ", ")
        guard silent.count > 1 else {
            return DeviceFinding(
                .stunSilent, .unclear, "The only STUN or TURN server that was asked does not answer.",
                because: evidence,
                advice:
                    "Look whether it runs, and whether a firewall drops UDP; a second server in media.ice_servers would "
                    + "distinguish both.")
        }
        return DeviceFinding(
            .udpBlocked, .path, "No STUN or TURN server answers: UDP does not seem to pass.", because: evidence,
            advice:
                "Allow UDP in the firewall here or on the way; without it, calls need a TURN server over TCP or TLS.")
    }

    /// One does not, and others do.
    private static func quiet(_ server: STUNFacts) -> DeviceFinding {
        DeviceFinding(
            .stunSilent, .service, "\(server.url) does not answer.",
            because: "\(line(server)), while another server answered over UDP",
            advice: "Look whether it runs at that address and port; until then, remove it: calls wait for it.")
    }

    /// What the answers say of a NAT: evidence, and a finding if its mapping depends on the endpoint and no TURN server answers.
    private static func mapping(of servers: [STUNFacts]) -> ([String], [DeviceFinding]) {
        let seen = servers.compactMap { server -> (url: String, place: String, address: SocketAddress)? in
            guard case .mapped(let address) = server.answer, let place = server.address else { return nil }
            return (server.url, "\(place)", address)
        }
        guard let first = seen.first else { return ([], []) }
        let isDirect = servers.contains { server in
            if case .mapped(let address) = server.answer { server.local == address } else { false }
        }
        if isDirect { return (["no NAT: a server sees this machine's own address and port"], []) }
        let others = seen.filter { $0.place != first.place && $0.address.isIPv6 == first.address.isIPv6 }
        guard !others.isEmpty else { return (["a NAT; its mapping is not clear from one STUN server alone"], []) }
        guard let other = others.first(where: { $0.address != first.address }) else {
            return (["a NAT with endpoint-independent mapping (RFC 5780): servers see one address and port"], [])
        }
        let evidence = "\(first.url) sees \(first.address), \(other.url) sees \(other.address), from one socket"
        let words = "a NAT with endpoint-dependent mapping (RFC 5780)"
        // Calls go through the relay then.
        if servers.contains(where: { $0.answer == .relays }) { return ([words + "; a TURN server answers"], []) }
        return (
            [words],
            [
                DeviceFinding(
                    .mappingDependent, .path,
                    "The NAT here uses another port for each peer (endpoint-dependent mapping), so that many peers find no direct "
                        + "path.", because: evidence,
                    advice:
                        "Configure a TURN server (media.ice_servers, or ice_servers of the exchange), or a NAT with "
                        + "endpoint-independent mapping.")
            ]
        )
    }
}
