package import SignalWire

/// What a password is checked against.
public enum Credential: Hashable, Sendable {
    /// A hash of the password, as a configuration holds it.
    case hash(PasswordHash)
    /// A digest of a password that was read from a file or the environment at start.
    case digest(SecretDigest)

    /// Whether `password` is the one. May take a tenth of a second: not for an event loop.
    package func matches(_ password: Redacted<String>) -> Bool {
        switch self {
        case .hash(let hash): hash.matches(password.secret)
        case .digest(let digest): digest == SecretDigest(of: password.secret)
        }
    }
}
