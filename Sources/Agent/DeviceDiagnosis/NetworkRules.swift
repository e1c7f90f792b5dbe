internal import CallDiagnosis
internal import Core

/// Judges names, servers, certificates, clocks and NATs.
enum NetworkRules {
    // MARK: - Names

    static func names(_ facts: [NameFacts]) -> DeviceStep {
        guard !facts.isEmpty else { return DeviceStep(.names, ["every server is named by its address"]) }
        return DeviceStep(.names, facts.map(line), facts.compactMap(name))
    }

    private static func line(_ facts: NameFacts) -> String {
        switch facts.result {
        case .found(let addresses): "\(facts.name): \(addresses.joined(separator: ", "))"
        case .unknown: "\(facts.name): no address"
        case .unanswered: "\(facts.name): no answer"
        }
    }

    private static func name(_ facts: NameFacts) -> DeviceFinding? {
        switch facts.result {
        case .found: nil
        case .unknown:
            DeviceFinding(
                .nameUnknown, .unclear, "The name \(facts.name) has no address.",
                because: "name servers and /etc/hosts know no address of \(facts.name)",
                advice: "Check how the configuration spells it; if it is right, the domain's owner must publish it.")
        case .unanswered:
            DeviceFinding(
                .namesUnanswered, .path, "No name server answered for \(facts.name).",
                because: "no answer to the question for the addresses of \(facts.name)",
                advice: "Look at the network, and at the name servers in /etc/resolv.conf (`resolvectl status`).")
        }
    }

    // MARK: - Connections

    static func connections(_ servers: [ServerFacts]) -> DeviceStep {
        guard servers.contains(where: { !$0.attempts.isEmpty }) else {
            return DeviceStep(.connections, skipped: "no server has a known address that is connected to")
        }
        return DeviceStep(.connections, servers.flatMap(lines), servers.compactMap(connection))
    }

    private static func lines(_ server: ServerFacts) -> [String] {
        server.attempts.map { attempt in "\(server.url): \(attempt.address) \(word(attempt.result))" }
    }

    private static func word(_ result: ServerFacts.Attempt.Result) -> String {
        switch result {
        case .open(let milliseconds): "answers within \(milliseconds) ms"
        case .refused: "refuses"
        case .silent(let seconds): "does not answer in \(seconds) s"
        case .unanswered(let seconds): "does not answer an OPTIONS in \(seconds) s"
        case .unreachable(let words): "cannot be reached: \(words)"
        }
    }

    private static func connection(_ server: ServerFacts) -> DeviceFinding? {
        guard !server.attempts.isEmpty else { return nil }
        return server.isReached ? answer(server) : unreached(server)
    }

    private static func unreached(_ server: ServerFacts) -> DeviceFinding {
        let evidence = server.attempts.map { "\($0.address) \(word($0.result))" }.joined(separator: "; ")
        let results = server.attempts.map(\.result)
        if results.contains(.refused) {
            return DeviceFinding(
                .connectionRefused, .service, "Nothing listens at \(server.url).", because: evidence,
                advice: "Check the port in the configuration, and that the server runs there.")
        }
        if results.contains(where: { if case .silent = $0 { true } else { false } }) {
            return DeviceFinding(
                .connectionTimeout, .path, "Nothing answers at \(server.url).", because: evidence,
                advice:
                    "Look whether that machine is up, and whether a firewall on the way drops connections to that port."
            )
        }
        if results.contains(where: { if case .unanswered = $0 { true } else { false } }) {
            return DeviceFinding(
                .sipSilent, .unclear, "The SIP server does not answer over UDP: \(server.url).", because: evidence,
                advice:
                    "Look whether it runs at that address and port, whether a firewall drops UDP, and whether it answers "
                    + "clients that are not registered.")
        }
        return DeviceFinding(
            .noRoute, .path, "No path leads from this machine to \(server.url).", because: evidence,
            advice: "Look at this machine's network: `ip address`, `ip route`, cable, Wi-Fi.")
    }

    private static func answer(_ server: ServerFacts) -> DeviceFinding? {
        switch server.answer {
        case .silent(let seconds)?:
            DeviceFinding(
                .serverSilent, .service, "\(server.url) takes connections and does not answer.",
                because: "a connection was made, and nothing came in \(seconds) s",
                advice: "Look at the server: it hangs, is overloaded, or another program has its port.")
        case .failed(let words)? where server.certificate?.isTrusted != false:
            DeviceFinding(
                .wrongProtocol, .unclear, "What answers at \(server.url) is not the server that is expected there.",
                because: words,
                advice: "Check scheme and port in the configuration: http:// and https:// are different ports.")
        case .failed?, .answered?, .notTried?, nil: nil
        }
    }

    // MARK: - Certificates

    /// A certificate that ends within this time is to be renewed: those of public authorities are renewed a month before.
    private static let renewal: Int64 = 14 * 86_400_000

    static func certificates(_ servers: [ServerFacts], at now: WallClock) -> DeviceStep {
        let shown = servers.filter { $0.certificate != nil }
        guard !shown.isEmpty else {
            let isNeeded = servers.contains(where: \.isSecure)
            return DeviceStep(
                .certificates,
                skipped: isNeeded ? "no server showed a certificate" : "no server is reached over TLS")
        }
        return DeviceStep(
            .certificates,
            shown.compactMap { server in server.certificate.map { "\(server.url): \(line($0, at: now))" } },
            shown.flatMap { server in server.certificate.map { certificate($0, of: server.url, at: now) } ?? [] })
    }

    private static func line(_ facts: CertificateFacts, at now: WallClock) -> String {
        "for \(facts.names.joined(separator: ", ")), signed by \(facts.issuer), until \(day(facts.notAfter)) "
            + "(\(days(from: now, to: facts.notAfter)) days)"
    }

    private static func certificate(
        _ facts: CertificateFacts, of url: String, at now: WallClock
    ) -> [DeviceFinding] {
        var findings: [DeviceFinding] = []
        if now > facts.notAfter {
            findings.append(
                DeviceFinding(
                    .certificateExpired, .service, "The certificate of \(url) has expired.",
                    because: "it was valid until \(facts.notAfter.rfc3339), and it is \(now.rfc3339) here",
                    advice: "Renew it at the server, and look why it was not renewed (docs/tls.md). Is this machine's "
                        + "clock right?"))
        }
        if now < facts.notBefore {
            findings.append(
                DeviceFinding(
                    .certificateEarly, .unclear, "The certificate of \(url) is not valid yet.",
                    because: "it is valid from \(facts.notBefore.rfc3339), and it is \(now.rfc3339) here",
                    advice:
                        "Set this machine's clock (`timedatectl set-ntp true`), or that of the machine that signed it.")
            )
        }
        if !facts.isForServer {
            findings.append(
                DeviceFinding(
                    .certificateWrongName, .unclear, "The certificate of \(url) is for another name.",
                    because: facts.names.isEmpty
                        ? "it has no name" : "it is for \(facts.names.joined(separator: ", "))",
                    advice: "Use one of its names in the configuration, or give the server a certificate for its name.")
            )
        }
        if findings.isEmpty, facts.isTrusted == false {
            findings.append(
                DeviceFinding(
                    .certificateUntrusted, .unclear,
                    "No authority that this device trusts has signed the certificate of \(url).",
                    because: "it is signed by \(facts.issuer)",
                    advice:
                        "If that is your own authority, name its certificate in account.trust_roots; if not, something on "
                        + "the way answers in the server's place."))
        }
        if findings.isEmpty, facts.notAfter.unixMilliseconds - now.unixMilliseconds < renewal {
            findings.append(
                DeviceFinding(
                    .certificateEndsSoon, .service, "The certificate of \(url) ends soon.",
                    because: "it is valid until \(facts.notAfter.rfc3339): \(days(from: now, to: facts.notAfter)) days",
                    advice: "Renew it at the server (docs/tls.md); devices cannot log in once it has expired."))
        }
        return findings
    }

    private static func days(from now: WallClock, to end: WallClock) -> Int64 {
        (end.unixMilliseconds - now.unixMilliseconds) / 86_400_000
    }

    private static func day(_ time: WallClock) -> String { String(time.rfc3339.prefix(10)) }

    // MARK: - The clock

    /// Above this, in milliseconds, clocks differ. A `Date` has whole seconds, and an answer may take five.
    private static let tolerance: Int64 = 60_000

    static func clock(_ servers: [ServerFacts], at now: WallClock) -> DeviceStep {
        let offsets = servers.compactMap { server -> (url: String, milliseconds: Int64)? in
            guard case .answered(_, let date?, let time)? = server.answer else { return nil }
            return (server.url, time.unixMilliseconds - date.unixMilliseconds)
        }
        guard !offsets.isEmpty else {
            return DeviceStep(.clock, skipped: "no server sent its time", ["\(now.rfc3339) here"])
        }
        let evidence = offsets.map { "\($0.url): \(difference($0.milliseconds))" }
        let wrong = offsets.filter { abs($0.milliseconds) > tolerance }
        guard let first = wrong.first else { return DeviceStep(.clock, evidence) }
        // Servers that agree with each other are right.
        let agree =
            wrong.count > 1 && wrong.count == offsets.count
            && wrong.allSatisfy { abs($0.milliseconds - first.milliseconds) <= tolerance }
        let finding = DeviceFinding(
            .clockOff, agree ? .ours : .unclear,
            agree ? "This machine's clock is wrong." : "The clocks of this machine and of \(first.url) differ.",
            because: wrong.map { "\(difference($0.milliseconds)) than that of \($0.url)" }.joined(separator: "; "),
            advice:
                "Compare both with a clock that is right, and have that one follow a time server: `timedatectl set-ntp true`. "
                + "Tokens and certificates depend on it.")
        return DeviceStep(.clock, evidence, [finding])
    }

    private static func difference(_ milliseconds: Int64) -> String {
        let seconds = abs(milliseconds) / 1_000
        return "this clock is \(seconds) s \(milliseconds < 0 ? "earlier" : "later")"
    }
}
