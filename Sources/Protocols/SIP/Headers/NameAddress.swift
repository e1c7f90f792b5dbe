/// An address with its display name and parameters: `From`, `To`, `Contact`, `Route`, `Refer-To` and others
/// (RFC 3261 §20.10).
public struct NameAddress: Hashable, Sendable, CustomStringConvertible {
    /// The display name, without quotation marks. Hostile text: never a command, a path or markup.
    public var displayName: String?
    /// The URI.
    public var uri: AnyURI
    /// The header's parameters, such as `tag`, `expires` and `q`.
    public var parameters = SIPParameters()

    /// Makes an address.
    public init(_ uri: AnyURI, displayName: String? = nil, parameters: SIPParameters = SIPParameters()) {
        self.uri = uri
        self.displayName = displayName
        self.parameters = parameters
    }

    /// Reads one address that fills all of `text`.
    ///
    /// Strict where RFC 4475 §3.1.2 permits it: no space within the brackets, no display name that is neither quoted
    /// nor of tokens, and no comma or question mark in a URI without brackets.
    public init?(_ text: String) {
        var scanner = TextScanner(text)
        scanner.skipSpace()
        var isBracketed = false
        if scanner.peek == UInt8(ascii: "\"") {
            guard let name = scanner.quotedString() else { return nil }
            displayName = name
            scanner.skipSpace()
            guard scanner.take(UInt8(ascii: "<")) else { return nil }
            isBracketed = true
        } else if scanner.take(UInt8(ascii: "<")) {
            isBracketed = true
        } else if let bracket = text.utf8.firstIndex(of: UInt8(ascii: "<")),
            !text.utf8[..<bracket].contains(UInt8(ascii: ";"))
        {
            let name = scanner.run { TextScanner.isToken($0) || $0 == 0x20 || $0 == 0x09 }
            guard scanner.take(UInt8(ascii: "<")) else { return nil }
            displayName = TextScanner.trimmed(Array(name.utf8)[...])
            isBracketed = true
        }
        let end = isBracketed ? ">" : ";,? \t"
        guard let uri = AnyURI(scanner.run { !end.utf8.contains($0) }) else { return nil }
        self.uri = uri
        if isBracketed, !scanner.take(UInt8(ascii: ">")) { return nil }
        guard let parameters = SIPParameters(&scanner) else { return nil }
        self.parameters = parameters
    }

    /// `tag=`.
    public var tag: String? {
        get { parameters["tag"] }
        set { parameters["tag"] = newValue }
    }

    /// `expires=` in seconds, if it is a number; bounded by ``SIPLimits/seconds``.
    public var expires: UInt32? {
        parameters["expires"].flatMap { text in
            var scanner = TextScanner(text)
            return scanner.number().map { min($0, SIPLimits.seconds) }
        }
    }

    /// The text, always with brackets.
    public var description: String {
        let name = displayName.map { $0.isEmpty ? "" : TextScanner.quoted($0) + " " } ?? ""
        return name + "<\(uri)>" + parameters.text
    }
}
