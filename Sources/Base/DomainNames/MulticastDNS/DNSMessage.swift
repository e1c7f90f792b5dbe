public import Core
// Multicast DNS: addresses of names that exist on the local link only (RFC 6762), as browsers have them that hide their
// addresses. Asks for host names, and does nothing else.

/// Queries and answers: the part of DNS messages that host names need (RFC 1035 §4).
public enum DNSMessage {
    /// The address of a name.
    public struct Answer: Equatable, Sendable {
        /// In lower case, without a dot at the end.
        public let name: String
        /// Its port is 0.
        public let address: SocketAddress

        /// Makes an answer.
        public init(name: String, address: SocketAddress) {
            self.name = name
            self.address = address
        }
    }

    /// The type of a record.
    public enum RecordType: UInt16, Sendable {
        /// An IPv4 address.
        case a = 1
        /// An IPv6 address.
        case aaaa = 28
    }

    /// Records that are read of one message; more are left out.
    public static let maximumRecords = 64
    /// Longer messages than an Ethernet frame's are not read (RFC 6762 §17 allows them; host names need none).
    public static let maximumBytes = 1_500

    /// A query for one name and type; only one, because some responders read no more.
    ///
    /// - Returns: nil if `name` is no name: labels of 1…63 bytes, at most 253 in all.
    public static func query(for name: String, _ type: RecordType) -> [UInt8]? {
        let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard name.utf8.count <= 253, labels.allSatisfy({ (1...63).contains($0.count) }) else { return nil }
        // No ID and no flags (RFC 6762 §18); one question.
        var bytes: [UInt8] = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        for label in labels {
            bytes.append(UInt8(truncatingIfNeeded: label.count))
            bytes.append(contentsOf: label)
        }
        return bytes + [0, 0, UInt8(truncatingIfNeeded: type.rawValue), 0, 1]
    }

    /// The addresses in a message, in order, from any section.
    ///
    /// - Returns: The addresses before the message's end, or before its first error. None if it is not an answer.
    public static func answers(in bytes: [UInt8]) -> [Answer] {
        guard bytes.count <= maximumBytes, bytes.count >= 12 else { return [] }
        // An answer to a standard query, without error (RFC 6762 §18.2 to §18.11); the truncation bit is ignored.
        guard bytes[2] & 0xF8 == 0x80, bytes[3] & 0x0F == 0 else { return [] }
        var reader = DNSReader(bytes: bytes, position: 4)
        var answers: [Answer] = []
        do throws(DNSParseError) {
            let questions = Int(try reader.number())
            let records = Int(try reader.number()) + Int(try reader.number()) + Int(try reader.number())
            for _ in 0..<min(questions, maximumRecords) { try reader.skipQuestion() }
            for _ in 0..<min(records, maximumRecords) {
                let record = try reader.record()
                try reader.end(record)
                if let answer = answer(record, bytes) { answers.append(answer) }
            }
        } catch {
            return answers
        }
        return answers
    }

    private static func answer(_ record: DNSReader.Record, _ bytes: [UInt8]) -> Answer? {
        // The top bit of the class makes caches drop other records (RFC 6762 §10.2); there is no cache here.
        guard record.recordClass & 0x7FFF == 1, let type = RecordType(rawValue: record.type),
            record.data.count == (type == .a ? 4 : 16),
            let address = SocketAddress(addressBytes: bytes[record.data], port: 0)
        else { return nil }
        let name = record.name.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ".")
        return Answer(name: name.lowercased(), address: address)
    }
}
