import Core
import ExchangeCore
import SignalWire

/// Where streams are found.
enum StreamPath: Hashable, Sendable {
    /// `/whip/USER` and `/whep/USER`: takes offers to a user.
    case endpoint(StreamKind, user: UserID)
    /// `/whip/session/ID` and `/whep/session/ID`.
    case session(StreamKind, StreamID)

    /// Reads a path; `nil` if it is none of these, or not well escaped.
    init?(_ path: String) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].isEmpty, let kind = StreamKind(rawValue: String(parts[1])) else { return nil }
        switch (parts.count, parts[2]) {
        case (4, "session") where !parts[3].isEmpty: self = .session(kind, String(parts[3]))
        case (3, let user):
            guard let user = PercentEscape.unescaped(user.utf8).flatMap({ try? UserID($0) }) else { return nil }
            self = .endpoint(kind, user: user)
        default: return nil
        }
    }

    /// The path; ids of sessions need no escapes.
    var text: String {
        switch self {
        case .endpoint(let kind, let user): "/\(kind.rawValue)/\(user)"
        case .session(let kind, let id): "/\(kind.rawValue)/session/\(id)"
        }
    }

    /// What it takes, for `Allow`.
    var methods: String {
        switch self {
        case .endpoint: "POST, OPTIONS"
        case .session: "PATCH, DELETE, OPTIONS"
        }
    }
}

/// What a `Bearer` authorization header holds (RFC 6750 §2.1).
struct BearerToken {
    let secret: Redacted<String>

    /// What it is found by.
    var digest: SecretDigest { SecretDigest(of: secret.secret) }

    /// - Parameter header: The header's value; `nil` or anything else than `Bearer TOKEN` gives `nil`.
    init?(_ header: String?) {
        guard let parts = header?.split(separator: " ", maxSplits: 1), parts.count == 2,
            parts[0].lowercased() == "bearer"
        else { return nil }
        secret = Redacted(parts[1].trimmed)
    }
}

extension Substring {
    /// Without the spaces around it.
    fileprivate var trimmed: String {
        var text = drop { $0 == " " }
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
