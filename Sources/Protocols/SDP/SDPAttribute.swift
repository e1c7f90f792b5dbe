/// One `a=` line (RFC 8866 §5.13).
public struct SDPAttribute: Equatable, Hashable, Sendable, CustomStringConvertible {
    /// The text before the colon. Names are case-sensitive.
    public var name: String
    /// After the colon; `nil` for a flag such as `rtcp-mux`.
    public var value: String?

    /// Makes an attribute.
    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }

    /// The line for logs: keys and passwords are left out. ``SessionDescription/serialized()`` has them.
    public var description: String {
        guard let value else { return "a=\(name)" }
        return Self.secretNames.contains(name) ? "a=\(name):(secret)" : "a=\(name):\(value)"
    }

    private static let secretNames: Set<String> = ["crypto", "ice-pwd", "key-mgmt"]
}

extension SDPAttribute: CustomReflectable {
    /// Shows what ``description`` shows, so that `dump` reveals no secret either.
    public var customMirror: Mirror { Mirror(self, children: ["line": description]) }
}

extension [SDPAttribute] {
    /// The first attribute's value of this name; the empty text for a flag.
    func value(_ name: String) -> String? { first { $0.name == name }.map { $0.value ?? "" } }

    /// All values of this name, in order.
    func values(_ name: String) -> [String] { filter { $0.name == name }.map { $0.value ?? "" } }

    /// Whether the name is there, with a value or without.
    func has(_ name: String) -> Bool { contains { $0.name == name } }

    /// The direction, if one is given.
    var direction: MediaDirection? {
        for attribute in self where attribute.value == nil {
            if let direction = MediaDirection(rawValue: attribute.name) { return direction }
        }
        return nil
    }
}
