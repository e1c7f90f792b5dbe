public import SignalWire

/// A STUN or TURN server that clients receive.
public struct ICEServerConfiguration: Hashable, Sendable {
    /// How clients get in.
    public enum Access: Hashable, Sendable {
        /// Everybody does.
        case open
        /// With one name and password for all, for good: given to users, and never to guests.
        case fixed(username: String, credential: Redacted<String>)
        /// With a name and password of each client's own, for a while.
        case own(RelaySecret)
    }

    /// Its URLs, such as `turns:turn.example.org:5349`.
    public var urls: [String]
    /// How clients get in.
    public var access: Access

    /// Describes a server.
    public init(urls: [String], access: Access = .open) {
        self.urls = urls
        self.access = access
    }
}
