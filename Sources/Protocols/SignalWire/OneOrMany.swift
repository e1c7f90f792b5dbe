/// One user, or a list of them: on the wire, a string is a list of one.
struct OneOrMany: Codable, Hashable, Sendable {
    var values: [UserID]

    init(_ values: [UserID]) { self.values = values }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if (try? container.decode(String.self)) != nil {
            values = [try container.decode(UserID.self)]
            return
        }
        do {
            values = try container.decode([UserID].self)
        } catch DecodingError.typeMismatch {
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
