/// Which ownership of a shared database an exchange answered under: of two answers the one with the newer epoch is the owner's of now.
///
/// Its text is `TIMELINE.NUMBER`: the database's timeline, which changes with each promotion of a replica, in eight hexadecimal digits, and
/// how often an exchange has taken the database, in decimal digits.
public struct OwnerEpoch: Comparable, Hashable, Sendable, LosslessStringConvertible {
    /// The header of HTTP answers that has it. Exchanges whose database is their own send none.
    public static let header = "Exchange-Epoch"

    private let timeline: UInt32
    private let number: UInt64

    /// Reads the two parts as a database keeps them; nil if they are none.
    ///
    /// - Parameters:
    ///   - timeline: In hexadecimal digits.
    ///   - number: 0 or more.
    public init?(timeline: some StringProtocol, number: Int64) {
        guard (1...8).contains(timeline.utf8.count), timeline.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }),
            let timeline = UInt32(timeline, radix: 16), let number = UInt64(exactly: number)
        else { return nil }
        (self.timeline, self.number) = (timeline, number)
    }

    /// Reads the text of a header; nil if it is none.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains),
            let number = Int64(parts[1])
        else { return nil }
        self.init(timeline: parts[0], number: number)
    }

    /// `TIMELINE.NUMBER`.
    public var description: String {
        let digits = String(timeline, radix: 16, uppercase: true)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits + ".\(number)"
    }

    /// A later timeline is newer, with any number.
    public static func < (one: OwnerEpoch, other: OwnerEpoch) -> Bool {
        (one.timeline, one.number) < (other.timeline, other.number)
    }
}
