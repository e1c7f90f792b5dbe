/// A telephone key in an INFO: `application/dtmf-relay`, as Cisco's gateways and most telephones send it, or `application/dtmf`,
/// whose body is the key alone.
struct InfoDigit: Equatable, Sendable {
    /// `0`…`9`, `*`, `#`, `A`…`D`, or `!` for the flash of the hook.
    let digit: Character
    let milliseconds: Int

    /// How long a key is held if its INFO does not say.
    private static let usualMilliseconds = 160

    init?(_ digit: Character, milliseconds: Int) {
        guard "0123456789*#ABCD!".contains(digit) else { return nil }
        self.digit = digit
        self.milliseconds = min(max(milliseconds, 40), 5_000)
    }

    /// Reads the first part of a request's body that has a key.
    init?(_ request: SIPRequest) {
        let parts = SIPMessage.request(request).parts ?? []
        let keys = parts.lazy.filter { [MediaType.dtmfRelay.name, MediaType.dtmf.name].contains($0.type.name) }
        guard let found = keys.compactMap({ InfoDigit(body: $0.bytes) }).first else { return nil }
        self = found
    }

    /// Reads `Signal=5` and `Duration=160`, or `5`; either type is found with either body.
    init?(body: [UInt8]) {
        var fields: [String: String] = [:]
        for line in body.prefix(1_024).split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else {
                let bare = TextScanner.trimmed(line[...])
                if !bare.isEmpty, fields["signal"] == nil { fields["signal"] = bare }
                continue
            }
            fields[TextScanner.trimmed(line[..<equals]).lowercased()] = TextScanner.trimmed(line[(equals + 1)...])
        }
        guard let signal = fields["signal"], let key = Self.key(signal) else { return nil }
        self.init(key, milliseconds: fields["duration"].flatMap { Int($0) } ?? Self.usualMilliseconds)
    }

    /// A key by its character, or by the number of its telephone event (RFC 4733 §3.2), of which one digit is itself.
    private static func key(_ text: String) -> Character? {
        if text.count == 1 { return text.uppercased().first }
        switch text {
        case "10": return "*"
        case "11": return "#"
        case "12": return "A"
        case "13": return "B"
        case "14": return "C"
        case "15": return "D"
        case "16": return "!"
        default: return nil
        }
    }

    /// As it is sent; the flash has a number, because not every gateway knows a character for it.
    var body: [UInt8] {
        Array("Signal=\(digit == "!" ? "16" : String(digit))\r\nDuration=\(milliseconds)\r\n".utf8)
    }
}
