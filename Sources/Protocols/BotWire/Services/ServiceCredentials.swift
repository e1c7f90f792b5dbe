internal import Core
internal import Cryptography

/// The credentials of a bot. Printing shows a mask.
public struct ServiceCredentials: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
    private enum Content: Equatable, Sendable {
        case none
        case basic(user: [UInt8], password: [UInt8])
        case bearer([UInt8])
    }

    private let content: Content
    private static let bytes = 4_096

    /// Reads the value of `Authorization`: `Basic` (RFC 7617) or `Bearer` (RFC 6750). Any other value counts as none.
    public init(authorization: String?) {
        content = authorization.flatMap(Self.content) ?? .none
    }

    private static func content(_ text: String) -> Content? {
        guard text.utf8.count <= bytes, let space = text.firstIndex(of: " ") else { return nil }
        let credentials = Array(text[space...].utf8.drop { $0 == UInt8(ascii: " ") })
        switch text[..<space].lowercased() {
        case "basic":
            guard let pair = Base64.bytes(of: credentials), let colon = pair.firstIndex(of: UInt8(ascii: ":")) else {
                return nil
            }
            return .basic(user: Array(pair[..<colon]), password: Array(pair[colon...].dropFirst()))
        case "bearer": return credentials.isEmpty ? nil : .bearer(credentials)
        default: return nil
        }
    }

    /// Whether there are none, so that nothing is tried with them.
    public var isEmpty: Bool { content == .none }

    /// Whether these are the user and the password, compared in a time that depends on their lengths alone.
    public func match(user: String, password: String) -> Bool {
        guard case .basic(let ownUser, let ownPassword) = content else { return false }
        let isUser = Digest.areEqual(ownUser, Array(user.utf8))
        let isPassword = Digest.areEqual(ownPassword, Array(password.utf8))
        return isUser && isPassword
    }

    /// Whether this is the key, compared in a time that depends on its length alone.
    public func match(key: String) -> Bool {
        guard case .bearer(let own) = content else { return false }
        return Digest.areEqual(own, Array(key.utf8))
    }

    /// A mask.
    public var description: String { "(credentials)" }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
