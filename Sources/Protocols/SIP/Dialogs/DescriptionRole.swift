/// The DTLS role in a session description: the only difference between an offer and an answer of the same session
/// (RFC 5763 §5). All else in descriptions passes through unchanged.
public enum DescriptionRole {
    private static let name = Array("a=setup:".utf8)

    /// Our description as an offer: the role is open again.
    public static func asOffer(_ description: [UInt8]) -> [UInt8] {
        replacing(in: description) { _ in "actpass" }
    }

    /// Our description, which was an offer, as the answer to an offer that repeats the peer's answer: the roles stay.
    public static func asAnswer(_ description: [UInt8], to theirs: [UInt8]) -> [UInt8] {
        let mine = first(theirs) == "active" ? "passive" : "active"
        return replacing(in: description) { $0 == "actpass" ? mine : $0 }
    }

    private static func first(_ description: [UInt8]) -> String? {
        description.split(whereSeparator: { $0 == 10 || $0 == 13 }).first { $0.starts(with: name) }
            .map { String(decoding: $0.dropFirst(name.count), as: UTF8.self) }
    }

    private static func replacing(in description: [UInt8], _ role: (String) -> String) -> [UInt8] {
        let lines = description.split(separator: 10, omittingEmptySubsequences: false).map { line -> [UInt8] in
            guard line.starts(with: name) else { return Array(line) }
            let hasReturn = line.last == 13
            let old = String(decoding: line.dropFirst(name.count).dropLast(hasReturn ? 1 : 0), as: UTF8.self)
            return name + Array(role(old).utf8) + (hasReturn ? [13] : [])
        }
        return Array(lines.joined(separator: [10]))
    }
}
