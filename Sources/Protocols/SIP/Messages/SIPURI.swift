internal import Core

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
            guard !user.isEmpty, SIPEscape.isValid(user, allowing: Self.isUser) else { return nil }
            self.user = user
            if let colon {
                let password = String(info[info.index(after: colon)...])
                guard SIPEscape.isValid(password, allowing: Self.isPassword) else { return nil }
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
    public var plainUser: String? { user.map(SIPEscape.plain) }

    /// A user part without its escapes.
    public static func plainUser(_ escaped: String) -> String { SIPEscape.plain(escaped) }

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
        guard !name.isEmpty, SIPEscape.isValid(name, allowing: allowed),
            value.map({ SIPEscape.isValid($0, allowing: allowed) }) ?? true
        else { return nil }
        return SIPParameters.Parameter(name: name, value: value)
    }

    /// The hash sign is not allowed, and some gateways send it.
    private static func isUser(_ byte: UInt8) -> Bool {
        SIPEscape.isUnreserved(byte) || "&=+$,;?/#".utf8.contains(byte)
    }

    private static func isPassword(_ byte: UInt8) -> Bool {
        SIPEscape.isUnreserved(byte) || "&=+$,".utf8.contains(byte)
    }

    private static func isParameter(_ byte: UInt8) -> Bool {
        SIPEscape.isUnreserved(byte) || "[]/:&+$".utf8.contains(byte)
    }

    private static func isHeader(_ byte: UInt8) -> Bool {
        SIPEscape.isUnreserved(byte) || "[]/?:+$".utf8.contains(byte)
    }
}

extension SIPURI {
    /// Whether both name the same resource (RFC 3261 §19.1.4). This is no equivalence: it is not transitive.
    public func isEquivalent(to other: SIPURI) -> Bool {
        guard isSecure == other.isSecure, SIPEscape.normal(user) == SIPEscape.normal(other.user),
            SIPEscape.normal(password) == SIPEscape.normal(other.password), host.isSame(as: other.host),
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
        switch (SIPEscape.normal(left), SIPEscape.normal(right)) {
        case (nil, nil): true
        case (let left?, let right?): left.isSame(as: right)
        case (nil, _), (_, nil): false
        }
    }
}

/// `%41` and the characters that need no escape (RFC 3261 §25.1).
enum SIPEscape {
    static func isUnreserved(_ byte: UInt8) -> Bool {
        TextScanner.isAlphanumeric(byte) || "-_.!~*'()".utf8.contains(byte)
    }

    /// Whether `text` has only allowed characters and whole escapes.
    static func isValid(_ text: String, allowing isAllowed: (UInt8) -> Bool) -> Bool {
        let bytes = Array(text.utf8)
        var index = 0
        while index < bytes.count {
            if bytes[index] == 0x25 {
                guard Hexadecimal.bytes(of: bytes[(index + 1)...].prefix(2))?.count == 1 else { return false }
                index += 3
            } else {
                guard isAllowed(bytes[index]) else { return false }
                index += 1
            }
        }
        return true
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
            if bytes[index] == 0x25, let value = Hexadecimal.bytes(of: bytes[(index + 1)...].prefix(2))?.first {
                if isResolved(value) { result.append(value) } else { result += PercentEscape.escape(value) }
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }
}
