internal import Core
public import SignalWire

/// Makes secrets.
public enum FreshSecret {
    /// 256 random bits from the system, in base64url: 43 characters.
    public static func make() -> Redacted<String> { Redacted(text(bytes: 32)) }

    /// Random bytes from the system, in base64url without padding.
    package static func text(bytes count: Int) -> String {
        Base64URL.text(bytes(count))
    }

    /// Random bytes from the system.
    package static func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
