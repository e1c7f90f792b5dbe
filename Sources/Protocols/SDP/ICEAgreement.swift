internal import Core

/// Reading the peer's ICE attributes, and choosing the address for our `m=` and `c=` lines.
enum ICEAgreement {
    /// The peer's parameters, or `nil` if it does not use ICE.
    static func remote(_ view: SectionView) throws(NegotiationError) -> RemoteICE? {
        let fragment = view.transportValue("ice-ufrag")
        let password = view.transportValue("ice-pwd")
        if fragment == nil, password == nil { return nil }
        guard let fragment, let password, isCredential(fragment, atLeast: 4), isCredential(password, atLeast: 22) else {
            throw NegotiationError(
                .malformedICE,
                "The peer's ICE needs both \"ice-ufrag\" of 4 to 256 characters and \"ice-pwd\" of 22 to 256.")
        }
        let options = view.transportValues("ice-options").flatMap {
            $0.split { $0 == " " || $0 == "," }.map(String.init)
        }
        let ended = view.transportHas("end-of-candidates")
        return RemoteICE(
            usernameFragment: fragment, password: password,
            candidates: Array(view.transportValues("candidate").prefix(maximumCandidates)), hasEnded: ended,
            trickles: options.contains("trickle"), isLite: view.description.attributes.has("ice-lite"),
            options: options)
    }

    /// No honest peer has as many, and each costs checks.
    private static let maximumCandidates = 100

    /// The grammar has letters, digits, `+` and `/` only. Other characters are accepted where they cannot be mistaken
    /// for the colon between two fragments.
    private static func isCredential(_ text: String, atLeast minimum: Int) -> Bool {
        let bytes = text.utf8
        return (minimum...256).contains(bytes.count)
            && bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
    }

    /// The default candidate (RFC 8839 §4.2.1.2), which a peer without ICE most likely reaches: relayed, else seen by a
    /// server, else our own. `nil` before one is known.
    static func defaultEndpoint(_ candidates: [String]) -> MediaEndpoint? {
        var best: (rank: Int, endpoint: MediaEndpoint)?
        for candidate in candidates {
            let fields = value(of: candidate).split(separator: " ", omittingEmptySubsequences: true)
            guard fields.count >= 8, fields[1] == "1", fields[2].lowercased() == "udp", fields[6] == "typ",
                SocketAddress(literal: fields[4]) != nil, let port = Digits.number(fields[5], upTo: 65_535), port > 0
            else { continue }
            let rank =
                switch fields[7] {
                case "relay": 3
                case "srflx": 2
                case "host": 1
                default: 0
                }
            // Of equals, an IPv4 address is more likely to be reached; then the one that was found first.
            let score = rank * 2 + (fields[4].contains(":") ? 0 : 1)
            guard score > best?.rank ?? -1 else { continue }
            best = (
                score, MediaEndpoint(address: String(fields[4]), port: UInt16(truncatingIfNeeded: port))
            )
        }
        return best?.endpoint
    }

    /// The attribute's value, without a name before it.
    static func value(of candidate: String) -> String {
        for prefix in ["a=candidate:", "candidate:"] where candidate.hasPrefix(prefix) {
            return String(candidate.dropFirst(prefix.count))
        }
        return candidate
    }

    /// The lines of our section.
    static func lines(_ ice: LocalICE) -> [SDPAttribute] {
        var lines = ice.candidates.map { SDPAttribute("candidate", value(of: $0)) }
        if ice.hasEnded { lines.append(.init("end-of-candidates")) }
        lines.append(.init("ice-ufrag", ice.usernameFragment))
        lines.append(.init("ice-pwd", ice.password))
        if !ice.options.isEmpty { lines.append(.init("ice-options", ice.options.joined(separator: " "))) }
        return lines
    }
}
