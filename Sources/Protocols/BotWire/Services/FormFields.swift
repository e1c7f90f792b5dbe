internal import Core

/// The fields of a form, in order (`application/x-www-form-urlencoded`).
public struct FormFields: Hashable, Sendable {
    /// One field.
    public struct Field: Hashable, Sendable {
        /// Its name.
        public let name: String
        /// Its value.
        public let value: String

        /// Makes one.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The fields; a name may come several times.
    public var fields: [Field]

    /// Makes a form.
    public init(_ fields: [Field] = []) { self.fields = fields }

    /// Reads a body: any bytes, of up to ``WireLimits/requestBytes`` and ``WireLimits/fields``.
    ///
    /// - Returns: `nil` if there is more, or an escape sequence is broken, or what comes out is not UTF-8.
    public init?(body: [UInt8]) {
        guard body.count <= WireLimits.requestBytes else { return nil }
        fields = []
        for piece in body.split(separator: UInt8(ascii: "&")) {
            guard fields.count < WireLimits.fields else { return nil }
            let equals = piece.firstIndex(of: UInt8(ascii: "=")) ?? piece.endIndex
            guard let name = Self.decoded(piece[..<equals]), let value = Self.decoded(piece[equals...].dropFirst())
            else { return nil }
            fields.append(Field(name, value))
        }
    }

    /// The values of a name, in order.
    public func values(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    /// The body, with all but letters, digits and `*-._` escaped.
    public var body: [UInt8] {
        var body: [UInt8] = []
        for field in fields {
            if !body.isEmpty { body.append(UInt8(ascii: "&")) }
            Self.append(field.name, to: &body)
            body.append(UInt8(ascii: "="))
            Self.append(field.value, to: &body)
        }
        return body
    }

    private static func append(_ text: String, to body: inout [UInt8]) {
        let escaped = PercentEscape.escaped(text) { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "*"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: " "):
                true
            default: false
            }
        }
        body += escaped.utf8.map { $0 == UInt8(ascii: " ") ? UInt8(ascii: "+") : $0 }
    }

    private static func decoded(_ text: ArraySlice<UInt8>) -> String? {
        PercentEscape.unescaped(text.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
    }
}
