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
}
