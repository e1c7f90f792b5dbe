/// A whole session description (RFC 8866).
public struct SessionDescription: Equatable, Sendable {
    /// Its creator and version.
    public var origin: Origin
    /// `s=`; a single dash if there is no name.
    public var name: String
    /// Address for media of sections that have none.
    public var connection: ConnectionAddress?
    /// Values of the `t=` lines; `0 0` is a session without bounds.
    public var times: [String]
    /// Lines that we keep and do not read: `i u e p b r z k`, in their order.
    public var otherLines: [Line]
    /// Attributes of the whole session.
    public var attributes: [SDPAttribute]
    /// The media sections, in their order, by which offer and answer are matched.
    public var media: [MediaSection]

    /// Longest text that is read, in bytes: far above any description of a call.
    public static var maximumSize: Int { 65_536 }

    /// Makes a description without media.
    public init(origin: Origin, name: String = "-", connection: ConnectionAddress? = nil) {
        self.origin = origin
        self.name = name
        self.connection = connection
        times = ["0 0"]
        otherLines = []
        attributes = []
        media = []
    }

    /// A line that is kept unchanged.
    public struct Line: Equatable, Sendable {
        /// The letter before the equals sign.
        public var type: Character
        /// The text after it.
        public var value: String

        /// Makes a line.
        public init(type: Character, value: String) {
            self.type = type
            self.value = value
        }
    }

    /// An `o=` line (RFC 8866 §5.2).
    public struct Origin: Equatable, Sendable {
        /// A dash where there is none.
        public var username: String
        /// Identifies the session together with the other fields; a number, kept as text because its size is not
        /// bounded.
        public var sessionID: String
        /// Rises by one when a description of the session is changed (RFC 3264 §8).
        public var version: String
        /// The maker's address.
        public var address: ConnectionAddress

        /// Makes an origin.
        public init(username: String = "-", sessionID: String, version: String, address: ConnectionAddress) {
            self.username = username
            self.sessionID = sessionID
            self.version = version
            self.address = address
        }
    }

    /// Direction of sections that have none.
    public var direction: MediaDirection { attributes.direction ?? .sendrecv }
}

extension SessionDescription: CustomStringConvertible, CustomReflectable {
    /// The description for logs: keys and passwords are left out.
    public var description: String { text { $0.description } }

    /// Shows what ``description`` shows, so that `dump` reveals no secret either.
    public var customMirror: Mirror { Mirror(self, children: ["text": description]) }
}
