internal import Logging

/// Builds one JSON object, its members in the order in which they are added.
struct JSONObjectText {
    private var members: [String] = []

    /// The object as text, on one line.
    var text: String { "{" + members.joined(separator: ", ") + "}" }

    /// Adds a number; nil, and what JSON has no number for, is null.
    mutating func add(_ key: String, _ value: Double?) {
        let text = value.flatMap {
            $0.isFinite ? ($0 == $0.rounded() && abs($0) < 1e15 ? "\(Int64($0))" : "\($0)") : nil
        }
        members.append("\(JSONText.quoted(key)): \(text ?? "null")")
    }

    /// Adds a whole number.
    mutating func add(_ key: String, _ value: Int) { members.append("\(JSONText.quoted(key)): \(value)") }

    /// Adds true or false.
    mutating func add(_ key: String, _ value: Bool) { members.append("\(JSONText.quoted(key)): \(value)") }

    /// Adds a text; nil is null.
    mutating func add(_ key: String, _ value: String?) {
        members.append("\(JSONText.quoted(key)): \(value.map(JSONText.quoted) ?? "null")")
    }

    /// Adds a list of texts.
    mutating func add(_ key: String, texts: [String]) {
        members.append("\(JSONText.quoted(key)): [\(texts.map(JSONText.quoted).joined(separator: ", "))]")
    }

    /// Adds a list of objects.
    mutating func add(_ key: String, objects: [JSONObjectText]) {
        members.append("\(JSONText.quoted(key)): [\(objects.map(\.text).joined(separator: ", "))]")
    }

    /// Adds an object.
    mutating func add(_ key: String, object: JSONObjectText) {
        members.append("\(JSONText.quoted(key)): \(object.text)")
    }
}

extension Double {
    /// This number to `places` decimal places; never a zero with a minus sign.
    func rounded(toPlaces places: Int) -> Double {
        var factor = 1.0
        for _ in 0..<places { factor *= 10 }
        let result = (self * factor).rounded() / factor
        return result == 0 ? 0 : result
    }
}

extension String {
    /// This text with spaces behind it up to `width`.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }

    func leftPadded(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}

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
