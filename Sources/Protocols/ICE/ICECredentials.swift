/// The name and the secret of one side for one generation of ICE (RFC 8445 §5.3).
public struct ICECredentials: Hashable, Sendable {
    /// Names the side in checks: 4 to 256 characters.
    public let usernameFragment: String
    /// Protects what is sent to the side: 22 to 256 characters.
    public let password: String

    /// Takes credentials from a description.
    ///
    /// - Returns: nil if either is too short, too long, or has characters that ICE does not allow.
    public init?(usernameFragment: String, password: String) {
        guard Candidate.isToken(usernameFragment, upTo: 256), usernameFragment.utf8.count >= 4,
            Candidate.isToken(password, upTo: 256), password.utf8.count >= 22
        else { return nil }
        self.usernameFragment = usernameFragment
        self.password = password
    }

    /// Draws new credentials: 48 and 144 random bits.
    public init(using generator: inout some RandomNumberGenerator) {
        usernameFragment = Self.token(8, &generator)
        password = Self.token(24, &generator)
    }

    private static func token(_ count: Int, _ generator: inout some RandomNumberGenerator) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        return String(decoding: (0..<count).map { _ in alphabet[Int(generator.next() >> 58)] }, as: UTF8.self)
    }
}
