/// A challenge that we can meet.
struct DigestChallenge: Equatable, Sendable {
    let realm: String
    let nonce: String
    let opaque: String?
    let algorithm: DigestAlgorithm
    let isSession: Bool
    let quality: DigestComputation.Quality?
    let isStale: Bool

    /// Reads a challenge; `nil` if its scheme, algorithm or quality of protection is not supported.
    init?(_ value: AuthenticationValue) {
        guard value.scheme.isSame(as: "Digest"), let realm = value.parameters["realm"],
            let nonce = value.parameters["nonce"], !nonce.isEmpty
        else { return nil }
        var name = (value.parameters["algorithm"] ?? DigestAlgorithm.md5.rawValue).uppercased()
        isSession = name.hasSuffix("-SESS")
        if isSession { name.removeLast(5) }
        guard let algorithm = DigestAlgorithm(rawValue: name), algorithm.isAllowed else { return nil }
        self.realm = realm
        self.nonce = nonce
        self.algorithm = algorithm
        opaque = value.parameters["opaque"]
        isStale = value.parameters["stale"]?.isSame(as: "true") ?? false
        guard let qualities = value.parameters["qop"] else {
            quality = nil
            return
        }
        // The body may be changed in transit, so `auth-int` is used only if it is demanded.
        let offered = qualities.split(separator: ",").map { TextScanner.trimmed(Array($0.utf8)[...]).lowercased() }
        guard let quality = [DigestComputation.Quality.auth, .authInt].first(where: { offered.contains($0.rawValue) })
        else { return nil }
        self.quality = quality
    }
}
