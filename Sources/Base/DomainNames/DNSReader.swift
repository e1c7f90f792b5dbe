/// Bytes that are no message of the domain name system.
public struct DNSParseError: Error, Hashable, Sendable {
    /// What is wrong.
    public let reason: String
}

/// Reads a message of the domain name system from front to back (RFC 1035 §4). Nothing in the bytes can trap.
struct DNSReader {
    /// The fields before a record's data.
    struct Record {
        /// As in the message, in any bytes and case.
        let name: [ArraySlice<UInt8>]
        let type: UInt16
        let recordClass: UInt16
        /// Its lifetime.
        let seconds: UInt32
        /// Where its data is, within the message.
        let data: Range<Int>
    }

    let bytes: [UInt8]
    var position: Int

    mutating func byte() throws(DNSParseError) -> UInt8 {
        guard position < bytes.count else { throw DNSParseError(reason: "it ends too early") }
        position += 1
        return bytes[position - 1]
    }

    mutating func number() throws(DNSParseError) -> UInt16 { UInt16(try byte()) << 8 | UInt16(try byte()) }

    /// The highest bit counts as 0 seconds (RFC 2181 §8).
    mutating func seconds() throws(DNSParseError) -> UInt32 {
        let seconds = UInt32(try number()) << 16 | UInt32(try number())
        return seconds > 0x7FFF_FFFF ? 0 : seconds
    }

    mutating func skipQuestion() throws(DNSParseError) {
        _ = try labels()
        _ = try seconds()
    }

    /// Reads up to a record's data.
    mutating func record() throws(DNSParseError) -> Record {
        let name = try labels()
        let (type, recordClass) = (try number(), try number())
        let seconds = try seconds()
        let length = Int(try number())
        guard position + length <= bytes.count else { throw DNSParseError(reason: "a record ends too early") }
        return Record(
            name: name, type: type, recordClass: recordClass, seconds: seconds, data: position..<position + length)
    }

    /// Skips what is left of a record's data.
    mutating func end(_ record: Record) throws(DNSParseError) {
        guard position <= record.data.upperBound else { throw DNSParseError(reason: "a record is longer than it says") }
        position = record.data.upperBound
    }

    /// A character string (RFC 1035 §3.3); what is not ASCII is repaired.
    mutating func text() throws(DNSParseError) -> String {
        let length = Int(try byte())
        guard position + length <= bytes.count else { throw DNSParseError(reason: "a text ends too early") }
        position += length
        return String(decoding: bytes[position - length..<position], as: UTF8.self)
    }

    /// A name in lower case, empty for the root; nil if it has characters that no host's name has.
    mutating func name() throws(DNSParseError) -> String? {
        let labels = try labels().map { $0.map { (65...90).contains($0) ? $0 + 32 : $0 } }
        guard labels.allSatisfy({ $0.allSatisfy(Self.isPlain) }) else { return nil }
        return labels.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ".")
    }

    /// The labels of a name, none for the root. Its pointers lead backwards only, so that no name is endless (RFC 1035 §4.1.4).
    private mutating func labels() throws(DNSParseError) -> [ArraySlice<UInt8>] {
        var labels: [ArraySlice<UInt8>] = []
        var (length, place) = (0, position)
        var end: Int?
        while true {
            guard place < bytes.count else { throw DNSParseError(reason: "a name ends too early") }
            let size = Int(bytes[place])
            if size & 0xC0 == 0xC0 {
                guard place + 1 < bytes.count else { throw DNSParseError(reason: "a pointer ends too early") }
                let target = (size & 0x3F) << 8 | Int(bytes[place + 1])
                end = end ?? place + 2
                guard target < place else { throw DNSParseError(reason: "a pointer does not lead back") }
                place = target
                continue
            }
            guard size < 64, place + 1 + size <= bytes.count else {
                throw DNSParseError(reason: "a label ends too early")
            }
            place += 1
            if size == 0 { break }
            length += size + 1
            guard length < 255 else { throw DNSParseError(reason: "a name is too long") }
            labels.append(bytes[place..<place + size])
            place += size
        }
        position = end ?? place
        return labels
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        (97...122).contains(byte) || (48...57).contains(byte) || byte == 45 || byte == 95
    }
}
