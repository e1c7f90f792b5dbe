/// A media type, as in `Content-Type` and `Accept`.
public struct MediaType: Hashable, Sendable, CustomStringConvertible {
    /// `application/sdp`, in lower case.
    public var name: String
    /// `boundary`, `charset` and others.
    public var parameters = SIPParameters()

    /// Session descriptions.
    public static let sdp = MediaType(name: "application/sdp")
    /// Pieces of SIP messages, as a NOTIFY of a transfer has (RFC 3420).
    public static let sipfrag = MediaType(name: "message/sipfrag")
    /// Digits in INFO, as many telephones send them.
    public static let dtmfRelay = MediaType(name: "application/dtmf-relay")
    /// A digit in INFO without its duration.
    public static let dtmf = MediaType(name: "application/dtmf")
    /// What waits in a mailbox (RFC 3842).
    public static let messageSummary = MediaType(name: "application/simple-message-summary")

    private init(name: String) { self.name = name }

    /// Reads one.
    public init?(_ text: String) {
        var scanner = TextScanner(text)
        guard let type = scanner.token(), scanner.separator(UInt8(ascii: "/")), let subtype = scanner.token(),
            let parameters = SIPParameters(&scanner)
        else { return nil }
        name = type.lowercased() + "/" + subtype.lowercased()
        self.parameters = parameters
    }

    /// The text.
    public var description: String { name + parameters.text }
}

/// One part of a multipart body (RFC 2046 §5.1), or a body that has only one.
public struct BodyPart: Equatable, Sendable {
    /// The part's own headers.
    public var headers: SIPHeaders
    /// Its bytes.
    public var bytes: [UInt8]

    /// Its type; text if none is given.
    public var type: MediaType { headers.contentType ?? MediaType("text/plain") ?? .sdp }

    /// Whether a receiver that does not know the type may ignore it (`handling=optional`).
    public var isOptional: Bool { disposition?.parameters["handling"]?.isSame(as: "optional") ?? false }

    /// Whether a receiver that does not know the type must refuse the message (`handling=required`).
    public var isRequired: Bool { disposition?.parameters["handling"]?.isSame(as: "required") ?? false }

    private var disposition: TokenWithParameters? { headers["Content-Disposition"].flatMap(TokenWithParameters.init) }

    /// Whether it describes the session, and not additional early media (RFC 3959).
    var describesSession: Bool {
        type.name == MediaType.sdp.name && !(disposition?.token.isSame(as: "early-session") ?? false)
    }
}

extension SIPMessage {
    /// The parts of the body: none if it is empty, one if it is no multipart, and `nil` if it is a malformed one or has
    /// more than ``SIPLimits/parts``. A nested multipart is replaced by its parts.
    public var parts: [BodyPart]? { BodyParts.parts(headers, body) }

    /// The first part that describes the session.
    public var sessionDescription: [UInt8]? { parts?.first(where: \.describesSession)?.bytes }
}

enum BodyParts {
    /// How deep multiparts may be within each other.
    private static let mostNested = 4

    static func parts(_ headers: SIPHeaders, _ body: [UInt8], depth: Int = 1) -> [BodyPart]? {
        guard !body.isEmpty else { return [] }
        guard let type = headers.contentType else { return nil }
        guard type.name.hasPrefix("multipart/") else {
            var own = SIPHeaders()
            own.append("Content-Type", type.description)
            if let disposition = headers["Content-Disposition"] { own.append("Content-Disposition", disposition) }
            return [BodyPart(headers: own, bytes: body)]
        }
        guard let boundary = type.parameters["boundary"], !boundary.isEmpty, boundary.utf8.count <= 70 else {
            return nil
        }
        guard depth <= mostNested, let parts = split(body, at: Array("--\(boundary)".utf8)) else { return nil }
        var flat: [BodyPart] = []
        for part in parts {
            if part.type.name.hasPrefix("multipart/") {
                guard let inner = Self.parts(part.headers, part.bytes, depth: depth + 1) else { return nil }
                flat += inner
            } else {
                flat.append(part)
            }
        }
        return flat.count <= SIPLimits.parts ? flat : nil
    }

    private static func split(_ body: [UInt8], at delimiter: [UInt8]) -> [BodyPart]? {
        var parts: [BodyPart] = []
        var start: Int?
        var index = 0
        while index < body.count {
            let isLineStart = index == 0 || body[index - 1] == 10
            guard isLineStart, body[index...].starts(with: delimiter) else {
                index += 1
                continue
            }
            if let start {
                guard parts.count < SIPLimits.parts, let part = part(body[start..<max(start, index)]) else {
                    return nil
                }
                parts.append(part)
            }
            index += delimiter.count
            if body[index...].starts(with: [0x2D, 0x2D]) { return parts }
            guard let end = body[index...].firstIndex(of: 10) else { return nil }
            index = end + 1
            start = index
        }
        return nil
    }

    private static func part(_ bytes: ArraySlice<UInt8>) -> BodyPart? {
        var headers = SIPHeaders()
        var rest = bytes
        while true {
            guard let end = rest.firstIndex(of: 10) else { return nil }
            var line = rest[..<end]
            rest = rest[(end + 1)...]
            if line.last == 13 { line = line.dropLast() }
            if line.isEmpty { break }
            guard headers.all.count < SIPLimits.headers, let colon = line.firstIndex(of: 0x3A) else { return nil }
            headers.append(
                SIPHeaderName(TextScanner.trimmed(line[..<colon])), TextScanner.trimmed(line[(colon + 1)...]))
        }
        // The line break in front of the delimiter belongs to the delimiter.
        if rest.last == 10 { rest = rest.dropLast() }
        if rest.last == 13 { rest = rest.dropLast() }
        return BodyPart(headers: headers, bytes: Array(rest))
    }
}
