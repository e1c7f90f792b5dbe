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
    /// Strict where RFC 4475 §3.1.2 permits it: no space within the brackets, and no comma or question mark in a URI
    /// without brackets. A display name that is neither quoted nor of tokens is read, because many telephones and servers
    /// send such names (RFC 4475 §3.1.2.15).
    public init?(_ text: String) {
        guard let address = Self(strictly: text) ?? Self(behindAnyName: text) else { return nil }
        self = address
    }

    /// Reads an address behind a name of any characters, such as `Bell, Alexander [home] <sip:a@b>`.
    ///
    /// A name that begins with a quotation mark or bracket has to end as these do, and a semicolon may be the end of an
    /// address without brackets. The URI of the first brackets that have one counts, so that a name holds no second address.
    private init?(behindAnyName text: String) {
        let bytes = Array(text.utf8)
        let first = bytes.first { $0 != 0x20 && $0 != 0x09 }
        guard first != UInt8(ascii: "\""), first != UInt8(ascii: "<") else { return nil }
        let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        for bracket in 0..<end where bytes[bracket] == UInt8(ascii: "<") {
            let inner = bytes[(bracket + 1)...].prefix { $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "<") }
            guard AnyURI(String(decoding: inner, as: UTF8.self)) != nil else { continue }
            guard var address = Self(strictly: String(decoding: bytes[bracket...], as: UTF8.self)) else { return nil }
            address.displayName = TextScanner.trimmed(bytes[..<bracket])
            self = address
            return
        }
        return nil
    }

    private init?(strictly text: String) {
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
