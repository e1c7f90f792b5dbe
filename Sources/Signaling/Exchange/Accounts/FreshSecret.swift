internal import FoundationEssentials
public import SignalWire

/// Makes secrets.
public enum FreshSecret {
    /// 256 random bits from the system, in base64url: 43 characters.
    public static func make() -> Redacted<String> { Redacted(text(bytes: 32)) }

    /// Random bytes from the system, in base64url without padding.
    static func text(bytes count: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        return base64url((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    /// Bytes in base64url without padding (RFC 4648 §5).
    static func base64url(_ bytes: [UInt8]) -> String {
        let text = Data(bytes).base64EncodedString()
        return String(text.prefix { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
    }
}
