/// What happened in a call, and when: an entry of its record.
public struct CallMoment: Codable, Hashable, Sendable {
    /// What happened.
    public enum Kind: String, Codable, CaseIterable, Hashable, Sendable {
        case answered, established
        /// The other side's first packet came.
        case firstPacket = "first_packet"
        /// Sound flows in both directions, as the other side's reports confirm.
        case flowing
        /// The other side changed the direction of sound; the text is `inactive`, `recvonly`, `sendonly` or `sendrecv`, seen from here.
        case direction
        /// Nothing comes on any path; another one is looked for.
        case pathLost = "path_lost"
        case pathBack = "path_back"
        /// A new description of the other side cannot be used; the text says why.
        case descriptionRefused = "description_refused"
        /// The program or bot failed; the text says how.
        case programFailed = "program_failed"
        /// The program or bot is behind with reading.
        case programBehind = "program_behind"
        /// A file that the call plays or records failed; the text says how.
        case fileFailed = "file_failed"
        /// The connection to the signaling service was lost.
        case serviceLost = "service_lost"
        case serviceBack = "service_back"
        /// The device is being shut down, and ends its calls.
        case shutDown = "shut_down"
    }

    /// Milliseconds since 1970, by this machine's clock.
    public let at: Int64
    /// What happened.
    public let kind: Kind
    /// More of it, 240 Unicode scalars at most; nil if there is nothing more to say.
    public let text: String?

    /// The longest text, in scalars: a character may have any number of them.
    static let longestText = 240

    /// What happened at a time.
    public init(_ kind: Kind, at: Int64, text: String? = nil) {
        self.kind = kind
        self.at = at
        self.text = text.map { String($0.unicodeScalars.prefix(Self.longestText)) }
    }
}

/// The moments of a call in their order: the first 48, and the last 16. Those between are dropped.
public struct CallMoments: Hashable, Sendable {
    /// Moments at most.
    public static let most = 64
    private static let last = 16

    /// What is kept.
    public private(set) var kept: [CallMoment] = []

    /// Nothing has happened.
    public init() {}

    /// Notes a moment.
    public mutating func note(_ moment: CallMoment) {
        if kept.count == Self.most { kept.remove(at: Self.most - Self.last) }
        kept.append(moment)
    }
}
