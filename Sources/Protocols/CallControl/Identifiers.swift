// CallControl: connection, login, invite and call machines, pure and the same for every signaling service.

/// A name that a service gave to something: opaque text, compared byte for byte.
public protocol TextIdentifier: RawRepresentable<String>, Hashable, Sendable, ExpressibleByStringLiteral,
    CustomStringConvertible
{
    /// Makes the identifier from its text; any text will do.
    init(rawValue: String)
}

extension TextIdentifier {
    /// Makes the identifier from its text.
    public init(_ text: String) { self.init(rawValue: text) }
    /// Makes the identifier from a literal.
    public init(stringLiteral value: String) { self.init(rawValue: value) }
    /// The text.
    public var description: String { rawValue }
}

/// Names one invite, and the call that comes of it; given by the exchange and unique there.
public struct InviteID: TextIdentifier {
    /// The text.
    public let rawValue: String
    /// Makes the identifier from its text.
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// Names a user, by its id or by one of its public ids such as `alice@example.org`.
public struct UserID: TextIdentifier {
    /// The text.
    public let rawValue: String
    /// Makes the identifier from its text.
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// Names one logged-in device of a user.
public struct DeviceID: TextIdentifier {
    /// The text.
    public let rawValue: String
    /// Makes the identifier from its text.
    public init(rawValue: String) { self.rawValue = rawValue }
}
