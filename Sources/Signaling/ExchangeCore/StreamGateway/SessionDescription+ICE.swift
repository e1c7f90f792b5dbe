import JSON
import SDP

/// What streams read of descriptions, and write into them. All sections share one transport (RFC 9725 §4.4.1).
extension SessionDescription {
    /// The section that carries the others' media, too: the first that is not refused.
    var carrier: MediaSection? { media.first { $0.port != 0 } ?? media.first }

    /// The carrier's credentials.
    package var credentials: ICEFragment.Credentials? {
        let own = carrier?.attributes ?? []
        guard let name = (own + attributes).first(where: { $0.name == "ice-ufrag" })?.value,
            let password = (own + attributes).first(where: { $0.name == "ice-pwd" })?.value
        else { return nil }
        return ICEFragment.Credentials(checking: name, password: password)
    }

    /// Whether it names a certificate's fingerprint, which keys for media come with.
    package var hasFingerprint: Bool {
        (attributes + (carrier?.attributes ?? [])).contains { $0.name == "fingerprint" }
    }

    /// What it says of its ICE, as words: `trickle`, `ice2`.
    var iceOptions: String? {
        ((carrier?.attributes ?? []) + attributes).first { $0.name == "ice-options" }?.value
    }

    /// Whether it has any candidate.
    var hasCandidates: Bool { media.contains { !$0.candidates.isEmpty } }

    /// Whether the description signals the end of candidates.
    var hasEnded: Bool {
        (attributes + (carrier?.attributes ?? [])).contains { $0.name == "end-of-candidates" }
    }

    /// The index of a candidate's media section: by name, by index, or the carrier's.
    func section(mid: String?, index: Int64?) -> Int? {
        if let mid, let found = media.firstIndex(where: { $0.mid == mid }) { return found }
        if let index, index >= 0, index < Int64(media.count) { return Int(index) }
        return media.firstIndex { $0.port != 0 }
    }

    /// Writes a candidate of a `candidate` signal into its section; an empty one is the end of them.
    ///
    /// - Returns: Whether it was the end.
    mutating func take(candidate data: JSONValue) -> Bool {
        guard var text = data["candidate"]?.string, text.utf8.count <= ICEFragment.maximumCandidateBytes,
            let place = section(mid: data["sdpMid"]?.string, index: data["sdpMLineIndex"]?.integer)
        else { return false }
        guard !text.isEmpty else {
            if !hasEnded { media[place].attributes.append(SDPAttribute("end-of-candidates")) }
            return true
        }
        for prefix in ["a=", "candidate:"] where text.hasPrefix(prefix) { text.removeFirst(prefix.count) }
        let line = SDPAttribute("candidate", text)
        let isNew = !media[place].attributes.contains(line)
        if isNew, media[place].candidates.count < ICEFragment.maximumCandidates {
            media[place].attributes.append(line)
        }
        return false
    }

    /// The same offer with other credentials and candidates: a restart of ICE (RFC 8839 §4.4.1.1.1).
    func restarted(by fragment: ICEFragment, with credentials: ICEFragment.Credentials) -> SessionDescription {
        var offer = self
        offer.origin.version = UInt64(origin.version).map { String($0 &+ 1) } ?? "2"
        offer.attributes = Self.renewed(attributes, credentials)
        for place in offer.media.indices {
            offer.media[place].attributes = Self.renewed(media[place].attributes, credentials)
        }
        for candidate in fragment.candidates {
            guard let place = section(mid: candidate.mid, index: nil) else { continue }
            offer.media[place].attributes.append(SDPAttribute("candidate", candidate.value))
        }
        if fragment.hasEnded, let place = section(mid: nil, index: nil) {
            offer.media[place].attributes.append(SDPAttribute("end-of-candidates"))
        }
        return offer
    }

    private static func renewed(_ lines: [SDPAttribute], _ credentials: ICEFragment.Credentials) -> [SDPAttribute] {
        lines.compactMap { line in
            switch line.name {
            case "candidate", "end-of-candidates": nil
            case "ice-ufrag": SDPAttribute(line.name, credentials.usernameFragment)
            case "ice-pwd": SDPAttribute(line.name, credentials.password)
            default: line
            }
        }
    }

    /// The same with media in one direction where it was in both.
    func oneWay(_ direction: MediaDirection) -> SessionDescription {
        var description = self
        for place in media.indices where (media[place].direction ?? self.direction) == .sendrecv {
            var lines = media[place].attributes
            lines.removeAll { MediaDirection(rawValue: $0.name) != nil }
            description.media[place].attributes = lines + [SDPAttribute(direction.rawValue)]
        }
        return description
    }

    /// The ICE of an answer, for the client that asked for a restart.
    var fragment: ICEFragment {
        let mid = carrier?.mid ?? "0"
        let candidates = (carrier?.candidates ?? []).map { ICEFragment.Candidate(mid: mid, value: $0) }
        return ICEFragment(credentials: credentials, candidates: candidates, hasEnded: hasEnded)
    }
}
