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
        func count(at offset: Int) -> Int { Int(bytes[offset]) << 8 | Int(bytes[offset + 1]) }
        var reader = Reader(bytes: bytes, offset: 12)
        for _ in 0..<min(count(at: 4), maximumRecords) {
            guard reader.name() != nil, reader.skip(4) else { return [] }
        }
        let records = count(at: 6) + count(at: 8) + count(at: 10)
        var answers: [Answer] = []
        for _ in 0..<min(records, maximumRecords) {
            guard let name = reader.name(), let type = reader.uint16(), let recordClass = reader.uint16(),
                reader.skip(4), let length = reader.uint16(), let data = reader.bytes(Int(length))
            else { break }
            // The top bit of the class makes caches drop other records (RFC 6762 §10.2); there is no cache here.
            guard recordClass & 0x7FFF == 1, let known = RecordType(rawValue: type),
                data.count == (known == .a ? 4 : 16), let address = SocketAddress(addressBytes: data, port: 0)
            else { continue }
            answers.append(Answer(name: name, address: address))
        }
        return answers
    }

    /// Reads a message from front to back.
    private struct Reader {
        let bytes: [UInt8]
        var offset: Int

        mutating func skip(_ count: Int) -> Bool { self.bytes(count) != nil }

        mutating func uint16() -> UInt16? {
            guard let pair = self.bytes(2), let first = pair.first, let last = pair.last else { return nil }
            return UInt16(first) << 8 | UInt16(last)
        }

        mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
            guard count >= 0, bytes.count - offset >= count else { return nil }
            defer { offset += count }
            return bytes[offset..<(offset + count)]
        }

        /// Reads a name, following its pointers, which lead backwards only, so that there is an end (RFC 1035 §4.1.4).
        mutating func name() -> String? {
            var labels: [String] = []
            var position = offset
            var end: Int?
            var length = 0
            while position < bytes.count {
                let size = Int(bytes[position])
                switch size {
                case 0:
                    offset = end ?? position + 1
                    return labels.joined(separator: ".").lowercased()
                case 1...63:
                    length += size + 1
                    guard length <= 255, position + 1 + size <= bytes.count else { return nil }
                    labels.append(String(decoding: bytes[(position + 1)..<(position + 1 + size)], as: UTF8.self))
                    position += 1 + size
                case 0xC0...:
                    guard position + 1 < bytes.count else { return nil }
                    let target = (size & 0x3F) << 8 | Int(bytes[position + 1])
                    guard target < position else { return nil }
                    end = end ?? position + 2
                    position = target
                default: return nil
                }
            }
            return nil
        }
    }
}
