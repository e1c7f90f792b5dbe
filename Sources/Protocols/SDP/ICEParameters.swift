/// Our parameters for ICE (RFC 8839 §5). The password is not printed.
public struct LocalICE: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
    /// 4…256 letters, digits, `+` and `/`; at least 24 random bits (RFC 8839 §5.4). New ones restart ICE.
    public var usernameFragment: String
    /// 22…256 letters, digits, `+` and `/`; at least 128 random bits.
    public var password: String
    /// Candidates found so far: values of `candidate` attributes, with or without the leading `candidate:`.
    public var candidates: [String]
    /// No more candidates will come (RFC 8840 §8.2).
    public var hasEnded: Bool
    /// Values of `ice-options`; `trickle` announces that candidates come later too (RFC 8840 §4.1).
    public var options: [String]

    /// Brings credentials, and candidates if some are known.
    public init(usernameFragment: String, password: String, candidates: [String] = [], hasEnded: Bool = false) {
        self.usernameFragment = usernameFragment
        self.password = password
        self.candidates = candidates
        self.hasEnded = hasEnded
        options = ["trickle", "ice2"]
    }

    /// Everything but the password.
    public var description: String { "ICE \(usernameFragment), \(candidates.count) candidates" }
    /// Shows the same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["text": description]) }
}

/// The peer's parameters for ICE (RFC 8839 §5). The password is not printed.
public struct RemoteICE: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The peer's user name fragment.
    public var usernameFragment: String
    /// The peer's password.
    public var password: String
    /// Values of the peer's `candidate` attributes, unparsed: later lines may have kinds that we do not know.
    public var candidates: [String]
    /// The peer has signaled the end of candidates.
    public var hasEnded: Bool
    /// The peer may send candidates later (RFC 8840).
    public var trickles: Bool
    /// The peer only answers checks (RFC 8445 §2.5).
    public var isLite: Bool
    /// Its `ice-options`, all of them.
    public var options: [String]

    /// Makes a peer's parameters.
    public init(
        usernameFragment: String, password: String, candidates: [String] = [], hasEnded: Bool = false,
        trickles: Bool = false, isLite: Bool = false, options: [String] = []
    ) {
        self.usernameFragment = usernameFragment
        self.password = password
        self.candidates = candidates
        self.hasEnded = hasEnded
        self.trickles = trickles
        self.isLite = isLite
        self.options = options
    }

    /// Everything but the password.
    public var description: String {
        "ICE \(usernameFragment), \(candidates.count) candidates\(isLite ? ", lite" : "")"
    }
    /// Shows the same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["text": description]) }
}

/// The agreement about ICE.
public struct NegotiatedICE: Equatable, Sendable {
    /// The peer's part.
    public var remote: RemoteICE
    /// We nominate: we offered first, or the peer is lite (RFC 8445 §6.1.1).
    public var isControlling: Bool

    /// Makes one.
    public init(remote: RemoteICE, isControlling: Bool) {
        self.remote = remote
        self.isControlling = isControlling
    }
}
