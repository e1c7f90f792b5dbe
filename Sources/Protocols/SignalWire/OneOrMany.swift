/// One name, or a list of them: on the wire a string stands for a list of one.
struct OneOrMany: Codable, Hashable, Sendable {
    var values: [String]

    init(_ values: [String]) { self.values = values }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let one = try? container.decode(String.self) {
            values = [one]
        } else if let many = try? container.decode([String].self) {
            values = many
        } else {
            throw DecodingError.typeMismatch(
                Self.self, .init(codingPath: decoder.codingPath, debugDescription: "neither a string nor strings"))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if values.count == 1, let one = values.first {
            try container.encode(one)
        } else {
            try container.encode(values)
        }
    }
}
