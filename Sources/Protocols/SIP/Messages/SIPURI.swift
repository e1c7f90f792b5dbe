/// A `sip:` or `sips:` URI (RFC 3261 §19.1). Its parts keep their escapes, so that it is written as it was read.
public struct SIPURI: Hashable, Sendable, CustomStringConvertible {
    /// `sips:`: every hop is protected.
    public var isSecure = false
    /// The part before `@` and its password, escaped.
    public var user: String?
    /// The password in the URI, escaped. RFC 3261 advises against its use.
    public var password: String?
    /// The host.
    public var host: SIPHost
    /// The port, if one is given.
    public var port: UInt16?
    /// `;transport=tcp;lr` and others, escaped.
    public var parameters = SIPParameters()
    /// `?Subject=…&…`, escaped.
    public var headers = SIPParameters()

    /// Makes a URI. The user is escaped as needed.
    public init(user: String? = nil, host: SIPHost, port: UInt16? = nil, isSecure: Bool = false) {
        self.user = user.map { PercentEscape.escaped($0, allowing: Self.isUser) }
        self.host = host
        self.port = port
        self.isSecure = isSecure
    }

    /// Reads what follows `sip:` or `sips:`.
    init?(rest: String, isSecure: Bool) {
        self.isSecure = isSecure
        var rest = Substring(rest)
        if let at = rest.firstIndex(of: "@") {
            let info = rest[..<at]
            rest = rest[rest.index(after: at)...]
            let colon = info.firstIndex(of: ":")
            let user = String(info[..<(colon ?? info.endIndex)])
            guard !user.isEmpty, PercentEscape.isValid(user, allowing: Self.isUser) else { return nil }
            self.user = user
            if let colon {
                let password = String(info[info.index(after: colon)...])
                guard PercentEscape.isValid(password, allowing: Self.isPassword) else { return nil }
                self.password = password
            }
        }
        var query: Substring?
        if let mark = rest.firstIndex(of: "?") {
            query = rest[rest.index(after: mark)...]
            rest = rest[..<mark]
        }
        let pieces = rest.split(separator: ";", omittingEmptySubsequences: false)
        guard let (host, port) = SIPHost.hostAndPort(String(pieces[0])) else { return nil }
        self.host = host
        self.port = port
        guard pieces.count <= SIPLimits.parameters + 1 else { return nil }
        for piece in pieces.dropFirst() {
            guard let parameter = Self.pair(piece, Self.isParameter), parameter.value?.isEmpty != true else {
                return nil
            }
            parameters.append(parameter)
        }
        guard let query else { return }
        let fields = query.split(separator: "&", omittingEmptySubsequences: false)
        guard fields.count <= SIPLimits.parameters else { return nil }
        for field in fields {
            guard let header = Self.pair(field, Self.isHeader), header.value != nil else { return nil }
            headers.append(header)
        }
    }

    /// The user without escapes.
    public var plainUser: String? { user.map(PercentEscape.plain) }

    /// A user part without its escapes.
    public static func plainUser(_ escaped: String) -> String { PercentEscape.plain(escaped) }

    /// The address without parameters, headers and password, which identifies a user.
    public var addressOfRecord: SIPURI {
        var uri = self
        uri.parameters = SIPParameters()
        uri.headers = SIPParameters()
        uri.password = nil
        return uri
    }

    /// `transport=`, in lower case.
    public var transport: String? { parameters["transport"]?.lowercased() }

    /// The URI's text.
    public var description: String {
        var text = isSecure ? "sips:" : "sip:"
        if let user { text += user + (password.map { ":" + $0 } ?? "") + "@" }
        text += host.description
        if let port { text += ":\(port)" }
        text += parameters.text
        if !headers.isEmpty { text += "?" + headers.all.map(SIPParameters.text).joined(separator: "&") }
        return text
    }

    private static func pair(_ text: Substring, _ allowed: (UInt8) -> Bool) -> SIPParameters.Parameter? {
        let equals = text.firstIndex(of: "=")
        let name = String(text[..<(equals ?? text.endIndex)])
        let value = equals.map { String(text[text.index(after: $0)...]) }
        guard !name.isEmpty, PercentEscape.isValid(name, allowing: allowed),
            value.map({ PercentEscape.isValid($0, allowing: allowed) }) ?? true
        else { return nil }
        return SIPParameters.Parameter(name: name, value: value)
    }

    /// The hash sign is not allowed, and some gateways send it.
    private static func isUser(_ byte: UInt8) -> Bool {
        PercentEscape.isUnreserved(byte) || "&=+$,;?/#".utf8.contains(byte)
    }

    private static func isPassword(_ byte: UInt8) -> Bool {
        PercentEscape.isUnreserved(byte) || "&=+$,".utf8.contains(byte)
    }

    private static func isParameter(_ byte: UInt8) -> Bool {
        PercentEscape.isUnreserved(byte) || "[]/:&+$".utf8.contains(byte)
    }

    private static func isHeader(_ byte: UInt8) -> Bool {
        PercentEscape.isUnreserved(byte) || "[]/?:+$".utf8.contains(byte)
    }
}

extension SIPURI {
    /// Whether both name the same resource (RFC 3261 §19.1.4). This is no equivalence: it is not transitive.
    public func isEquivalent(to other: SIPURI) -> Bool {
        guard isSecure == other.isSecure, PercentEscape.normal(user) == PercentEscape.normal(other.user),
            PercentEscape.normal(password) == PercentEscape.normal(other.password), host.isSame(as: other.host),
            port == other.port
        else { return false }
        // These parameters never match their absence, even by their default; `gr` names another instance (RFC 5627
        // §4.5).
        for name in ["transport", "user", "ttl", "method", "maddr", "gr"]
        where parameters.contains(name) != other.parameters.contains(name) { return false }
        for parameter in parameters.all {
            guard let match = other.parameters.parameter(parameter.name) else { continue }
            guard Self.areSame(parameter.value, match.value) else { return false }
        }
        return Self.contains(headers, other.headers) && Self.contains(other.headers, headers)
    }

    private static func contains(_ left: SIPParameters, _ right: SIPParameters) -> Bool {
        left.all.allSatisfy { header in
            right.all.contains { $0.name.isSame(as: header.name) && areSame($0.value, header.value) }
        }
    }

    private static func areSame(_ left: String?, _ right: String?) -> Bool {
        switch (PercentEscape.normal(left), PercentEscape.normal(right)) {
        case (nil, nil): true
        case (let left?, let right?): left.isSame(as: right)
        case (nil, _), (_, nil): false
        }
    }
}

/// `%41` and the characters that need no escape (RFC 3261 §25.1).
enum PercentEscape {
    static func isUnreserved(_ byte: UInt8) -> Bool {
        TextScanner.isAlphanumeric(byte) || "-_.!~*'()".utf8.contains(byte)
    }

    /// Whether `text` has only allowed characters and whole escapes.
    static func isValid(_ text: String, allowing isAllowed: (UInt8) -> Bool) -> Bool {
        let bytes = Array(text.utf8)
        var index = 0
        while index < bytes.count {
            if bytes[index] == 0x25 {
                guard index + 2 < bytes.count, hex(bytes[index + 1]) != nil, hex(bytes[index + 2]) != nil else {
                    return false
                }
                index += 3
            } else {
                guard isAllowed(bytes[index]) else { return false }
                index += 1
            }
        }
        return true
    }

    static func escaped(_ text: String, allowing isAllowed: (UInt8) -> Bool) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if isAllowed(byte) {
                bytes.append(byte)
            } else {
                bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Without escapes.
    static func plain(_ text: String) -> String { String(decoding: bytes(text) { _ in true }, as: UTF8.self) }

    /// With the escapes of unreserved characters resolved and the others in upper case, so that equal values have equal
    /// texts.
    static func normal(_ text: String?) -> String? {
        guard let text, text.utf8.contains(0x25) else { return text }
        return String(decoding: bytes(text, resolving: isUnreserved), as: UTF8.self)
    }

    private static func bytes(_ text: String, resolving isResolved: (UInt8) -> Bool) -> [UInt8] {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == 0x25, index + 2 < bytes.count, let high = hex(bytes[index + 1]),
                let low = hex(bytes[index + 2])
            {
                let value = high << 4 | low
                if isResolved(value) { result.append(value) } else { result += escape(value) }
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    private static func escape(_ value: UInt8) -> String.UTF8View {
        let hex = String(value, radix: 16, uppercase: true)
        return ("%" + (hex.count == 1 ? "0" : "") + hex).utf8
    }

    private static func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x37
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }
}
