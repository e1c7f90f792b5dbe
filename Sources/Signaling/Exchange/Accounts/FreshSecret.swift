internal import FoundationEssentials
public import SignalWire

/// Makes secrets.
public enum FreshSecret {
    /// 256 random bits from the system, in base64url: 43 characters.
    public static func make() -> Redacted<String> {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let text = Data(bytes).base64EncodedString()
        return Redacted(String(text.prefix { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }))
    }
}
