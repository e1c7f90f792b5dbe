/// Agreement on keys in the descriptions (RFC 4568 §5.1).
enum SDESAgreement {
    /// For our answer: the first of our suites that the offer has, and our key for it.
    ///
    /// Our order decides, because our first suite is the cheaper one; an offerer must accept the choice of any line.
    static func choose(
        _ section: MediaSection, ours: [SDESKey]
    ) throws(NegotiationError) -> (NegotiatedKeying, taken: SDESKey) {
        let offered = section.cryptoAttributes
        for key in ours {
            guard let theirs = offered.first(where: { $0.key.suite == key.suite }) else { continue }
            try requireDistinct(key, theirs.key)
            return (.sdes(send: key, receive: theirs.key), key)
        }
        throw failure(section, ours)
    }

    /// The line of our answer that takes one of the offer's, by its tag.
    static func line(taking key: SDESKey, of section: MediaSection) -> SDPAttribute? {
        section.cryptoAttributes.first { $0.key.suite == key.suite }.map {
            SDPAttribute("crypto", CryptoAttribute(tag: $0.tag, key: key).text)
        }
    }

    /// For the peer's answer to our offer, whose lines had the tags 1, 2, 3… in the order of our keys.
    ///
    /// Some peers number their own lines instead of repeating the tag. Each suite is offered once, so the suite also
    /// identifies the key that they have accepted; a line whose tag and suite agree comes first.
    static func accept(_ section: MediaSection, ours: [SDESKey]) throws(NegotiationError) -> NegotiatedKeying {
        let lines = section.cryptoAttributes.compactMap { theirs in
            ours.firstIndex { $0.suite == theirs.key.suite }.map { (isTagged: theirs.tag == $0 + 1, $0, theirs.key) }
        }
        guard let (_, index, theirs) = lines.first(where: \.isTagged) ?? lines.first else {
            throw failure(section, ours)
        }
        try requireDistinct(ours[index], theirs)
        return .sdes(send: ours[index], receive: theirs)
    }

    /// A key that protects both directions reveals the sum of both plaintexts (RFC 3711 §9.1).
    private static func requireDistinct(_ ours: SDESKey, _ theirs: SDESKey) throws(NegotiationError) {
        guard ours.material != theirs.material else {
            throw NegotiationError(
                .noAcceptableCrypto, "The peer has sent our own key back; it must choose one of its own.")
        }
    }

    private static func failure(_ section: MediaSection, _ ours: [SDESKey]) -> NegotiationError {
        let suites = ours.map(\.suite.rawValue).joined(separator: " or ")
        let lines = section.attributes.values("crypto")
        guard let first = lines.first else {
            return NegotiationError(
                .noAcceptableCrypto, "The peer's description has no \"crypto\" line; we have \(suites).")
        }
        let reason: String
        do throws(CryptoAttribute.ParseError) {
            _ = try CryptoAttribute(parsing: first)
            reason = "has none of our suites"
        } catch {
            reason = error.reason
        }
        return NegotiationError(
            .noAcceptableCrypto,
            "None of the peer's \(lines.count) keys can be used: its first line \(reason); we have \(suites).")
    }
}
