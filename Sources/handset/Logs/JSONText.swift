internal import Logging

/// JSON of log metadata, put together without an encoder: a line of the log must not fail.
enum JSONText {
    static func object(_ metadata: Logger.Metadata) -> String {
        let members = metadata.sorted { $0.key < $1.key }.map { quoted($0.key) + ":" + value($0.value) }
        return "{" + members.joined(separator: ",") + "}"
    }

    /// `text` as a JSON string, with every control character escaped.
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case _ where isControl(scalar):
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }

    /// C0, DEL, C1, and the two separators that some readers take for line breaks.
    static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029: true
        default: false
        }
    }

    private static func value(_ value: Logger.MetadataValue) -> String {
        switch value {
        case .string(let text): quoted(text)
        case .stringConvertible(let number as any BinaryInteger): "\(number)"
        case .stringConvertible(let number as Double) where number.isFinite: "\(number)"
        case .stringConvertible(let flag as Bool): flag ? "true" : "false"
        case .stringConvertible(let other): quoted(other.description)
        case .array(let values): "[" + values.map(Self.value).joined(separator: ",") + "]"
        case .dictionary(let members): object(members)
        }
    }
}
