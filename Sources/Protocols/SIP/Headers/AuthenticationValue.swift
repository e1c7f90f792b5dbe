/// A scheme with its parameters, as in `WWW-Authenticate`, `Authorization` and similar headers (RFC 3261 §20.7).
public struct AuthenticationValue: Hashable, Sendable, CustomStringConvertible {
    /// `Digest` or another.
    public var scheme: String
    /// Its parameters.
    public var parameters: SIPParameters

    /// Makes one.
    public init(scheme: String, parameters: SIPParameters = SIPParameters()) {
        self.scheme = scheme
        self.parameters = parameters
    }

    /// Reads one line: these headers are no comma lists (RFC 3261 §7.3.1).
    public init?(_ text: String) {
        var scanner = TextScanner(text)
        guard let scheme = scanner.token() else { return nil }
        self.scheme = scheme
        parameters = SIPParameters()
        scanner.skipSpace()
        while !scanner.isAtEnd {
            guard parameters.all.count < SIPLimits.parameters, let parameter = SIPParameters.parameter(&scanner) else {
                return nil
            }
            parameters.append(parameter)
            scanner.skipSpace()
            guard scanner.isAtEnd || scanner.separator(UInt8(ascii: ",")) else { return nil }
        }
    }

    /// The text.
    public var description: String {
        scheme + " " + parameters.all.map(SIPParameters.text).joined(separator: ", ")
    }
}
