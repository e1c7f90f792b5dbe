/// Builds one JSON object, its members in the order in which they are added.
struct JSONText {
    private var members: [String] = []

    /// The object as text, on one line.
    var text: String { "{" + members.joined(separator: ", ") + "}" }

    /// Adds a number; nil, and what JSON has no number for, is null.
    mutating func add(_ key: String, _ value: Double?) {
        let text = value.flatMap { $0.isFinite ? ($0 == $0.rounded() && abs($0) < 1e15 ? "\(Int64($0))" : "\($0)") : nil }
        members.append("\(Self.quoted(key)): \(text ?? "null")")
    }

    /// Adds a text; nil is null.
    mutating func add(_ key: String, _ value: String?) {
        members.append("\(Self.quoted(key)): \(value.map(Self.quoted) ?? "null")")
    }

    /// Adds an object.
    mutating func add(_ key: String, object: JSONText) { members.append("\(Self.quoted(key)): \(object.text)") }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

extension Double {
    /// This number to so many decimal places.
    func rounded(toPlaces places: Int) -> Double {
        var factor = 1.0
        for _ in 0..<places { factor *= 10 }
        return (self * factor).rounded() / factor
    }
}

extension String {
    /// This text with spaces behind it up to `width`.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
