/// A TURN server's challenge, and the client's key for it (RFC 8489 §9.2).
struct TURNCredentials: Equatable, Sendable {
    let username: String
    let realm: String
    let nonce: String
    let algorithm: STUNKey.Algorithm
    /// The server's list of algorithms, to be sent back so that an attacker cannot have shortened it.
    let offeredAlgorithms: [UInt8]?
    let key: STUNKey

    /// Answers a challenge (401 or 438).
    ///
    /// - Returns: nil if the challenge lacks realm or nonce, or an attacker has removed the list of algorithms.
    init?(challenge: STUNMessage, username: String, password: String, realm knownRealm: String? = nil) {
        guard let realm = challenge.text(.realm) ?? knownRealm, let nonce = challenge.text(.nonce),
            realm.utf8.count <= 763, nonce.utf8.count <= 763
        else { return nil }
        let offered = challenge.passwordAlgorithms()
        if Self.announcesAlgorithms(nonce), offered == nil { return nil }
        let chosen = offered?.lazy.compactMap(STUNKey.Algorithm.init(rawValue:)).first
        if offered != nil, chosen == nil { return nil }
        self.username = username
        self.realm = realm
        self.nonce = nonce
        algorithm = chosen ?? .md5
        offeredAlgorithms = challenge.value(.passwordAlgorithms).map(Array.init)
        key = STUNKey(longTerm: username, realm: realm, password: password, algorithm: algorithm)
    }

    /// Which attribute protects messages made with these.
    var integrity: STUNIntegrity { offeredAlgorithms == nil ? .sha1 : .sha256 }

    func append(to builder: inout STUNBuilder) {
        builder.append(.username, username)
        builder.append(.realm, realm)
        builder.append(.nonce, nonce)
        guard let offeredAlgorithms else { return }
        builder.append(.passwordAlgorithms, offeredAlgorithms)
        builder.append(.passwordAlgorithm, [0, UInt8(truncatingIfNeeded: algorithm.rawValue), 0, 0])
    }

    /// Whether the nonce announces that the server lists algorithms: "obMatJos2", then 24 bits in Base64 of which the
    /// first is set (RFC 8489 §9.2, §18.1).
    private static func announcesAlgorithms(_ nonce: String) -> Bool {
        let prefix = "obMatJos2"
        guard nonce.hasPrefix(prefix), nonce.utf8.count >= prefix.utf8.count + 4 else { return false }
        // The first bit of the first digit: values 32 to 63 are "g" to "z", the digits, "+" and "/".
        guard let digit = nonce.dropFirst(prefix.count).utf8.first else { return false }
        switch digit {
        case UInt8(ascii: "g")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"),
            UInt8(ascii: "/"):
            return true
        default: return false
        }
    }
}
