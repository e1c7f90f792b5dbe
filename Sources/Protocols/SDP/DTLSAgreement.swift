internal import Core

/// Agrees on the DTLS roles, and on the fingerprints that identify the ends (RFC 8842 §5).
enum DTLSAgreement {
    /// An association that is there already.
    struct Association {
        var remote: [Fingerprint]
        var role: DTLSRole
    }

    /// The roles of our answer: we are active, unless the offerer asks to be active.
    ///
    /// An association continues while the peer's session and certificate stay the same, and keeps its roles (RFC 8842
    /// §5.3). That applies even to peers that write other roles after an ICE restart, which by §3.1 would begin a new
    /// association.
    static func choose(
        _ view: SectionView, preferring preference: DTLSRole, current: Association?
    ) throws(NegotiationError) -> (remote: [Fingerprint], role: DTLSRole) {
        let fingerprints = try fingerprints(view)
        if let current, current.remote == fingerprints { return (fingerprints, current.role) }
        // An offerer without `setup` is active (RFC 4145 §4.1).
        switch view.transportValue("setup")?.lowercased() ?? "active" {
        case "actpass": return (fingerprints, preference)
        case "active": return (fingerprints, .passive)
        case "passive": return (fingerprints, .active)
        case let other:
            throw NegotiationError(.noAcceptableCrypto, "The peer offers DTLS with the setup \(quoted(other)).")
        }
    }

    /// The roles from the peer's answer to our offer of `actpass`. A peer that names no role is active, as browsers
    /// assume; RFC 4145 §4.1 would make it passive.
    static func accept(
        _ view: SectionView, current: Association?
    ) throws(NegotiationError) -> (remote: [Fingerprint], role: DTLSRole) {
        let fingerprints = try fingerprints(view)
        if let current, current.remote == fingerprints { return (fingerprints, current.role) }
        switch view.transportValue("setup")?.lowercased() ?? "active" {
        case "active": return (fingerprints, .passive)
        case "passive": return (fingerprints, .active)
        case let other:
            throw NegotiationError(
                .answerDoesNotFit, "The peer's answer must have the setup active or passive, not \(quoted(other)).")
        }
    }

    /// The name of the peer's end of the association (RFC 8842 §4), if it has one.
    static func name(in view: SectionView) -> String? {
        view.transportValue("tls-id").flatMap { (20...255).contains($0.utf8.count) ? $0 : nil }
    }

    /// Whether two names mean two associations; without names they cannot be distinguished.
    static func differs(_ old: String?, _ new: String?) -> Bool {
        guard let old, let new else { return false }
        return old != new
    }

    /// The lines of our section.
    static func lines(_ fingerprints: [Fingerprint], setup: String) -> [SDPAttribute] {
        fingerprints.map { SDPAttribute("fingerprint", $0.description) } + [SDPAttribute("setup", setup)]
    }

    private static func fingerprints(_ view: SectionView) throws(NegotiationError) -> [Fingerprint] {
        let lines = view.transportValues("fingerprint")
        guard let first = lines.first else {
            throw NegotiationError(
                .noFingerprint, "The peer asks for DTLS and gives no fingerprint of its certificate.")
        }
        let fingerprints = lines.prefix(8).compactMap(Fingerprint.init(parsing:))
        guard !fingerprints.isEmpty else {
            throw NegotiationError(
                .noFingerprint,
                "The peer's fingerprint \(quoted(first)) cannot be used; it takes a whole sha-256 or stronger.")
        }
        return fingerprints
    }
}

/// A certificate's fingerprint, which identifies an end of a DTLS association (RFC 8122 §5).
public struct Fingerprint: Equatable, Hashable, Sendable, CustomStringConvertible {
    /// The hash function's name in lower case, such as `sha-256`.
    public var algorithm: String
    /// The digest.
    public var bytes: [UInt8]

    /// Makes a fingerprint.
    public init(algorithm: String, bytes: [UInt8]) {
        self.algorithm = algorithm.lowercased()
        self.bytes = bytes
    }

    /// Bytes of a digest, for each trusted function. MD5 must not be trusted (RFC 8122 §5), and SHA-1 is not.
    private static let sizes = ["sha-224": 28, "sha-256": 32, "sha-384": 48, "sha-512": 64]

    /// Reads `sha-256 AB:CD:…`; `nil` for other functions, and for a digest that is not of the function's size.
    init?(parsing value: String) {
        let fields = value.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count == 2, let size = Self.sizes[fields[0].lowercased()] else { return nil }
        guard let bytes = Hexadecimal.bytes(ofPairs: fields[1].utf8), bytes.count == size else { return nil }
        self.init(algorithm: fields[0].lowercased(), bytes: bytes)
    }

    /// The attribute's value.
    public var description: String { "\(algorithm) \(Hexadecimal.pairs(bytes))" }
}

/// The role in the DTLS handshake (RFC 4145 §4, RFC 8842 §5).
public enum DTLSRole: String, Equatable, Hashable, Sendable {
    /// We send the first handshake message: we are the client.
    case active
    /// We wait for it: we are the server.
    case passive

    /// The other side's part.
    public var opposite: DTLSRole { self == .active ? .passive : .active }
}
