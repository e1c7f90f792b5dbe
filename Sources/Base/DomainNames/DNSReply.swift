/// Bytes that are no reply of a name server.
public struct DNSParseError: Error, Hashable, Sendable {
    /// What is wrong.
    public let reason: String
}

/// The SRV and NAPTR records of a name server's reply (RFC 1035 §4, RFC 2782, RFC 3403).
public struct DNSReply: Equatable, Sendable {
    /// Records that are read at most; the others are left out.
    public static let mostRecords = 64

    /// Its SRV records.
    public private(set) var services: [SRVRecord] = []
    /// Its NAPTR records.
    public private(set) var rules: [NAPTRRecord] = []
    /// The shortest lifetime of any record of the answer, aliases among them, in seconds.
    public private(set) var lifetime: UInt32 = 86_400
    /// How long the absence of records may be kept, in seconds, from the zone's SOA record (RFC 2308 §5); 0 without
    /// one.
    public private(set) var negativeLifetime: UInt32 = 0

    /// Reads a reply. Records with names that no host has are left out.
    ///
    /// - Parameter bytes: Any bytes; nothing in them can trap.
    /// - Complexity: O(n); a name takes at most 128 labels, with any pointers.
    public init(parsing bytes: [UInt8]) throws(DNSParseError) {
        var reader = Reader(bytes: bytes, position: 4)
        let questions = try reader.number()
        let answers = try reader.number()
        let authorities = try reader.number()
        reader.position = 12
        guard bytes.count >= 12 else { throw DNSParseError(reason: "it has no header") }
        for _ in 0..<questions {
            _ = try reader.name()
            reader.position += 4
        }
        for _ in 0..<min(Int(answers), Self.mostRecords) { try take(&reader) }
        guard answers <= Self.mostRecords else { return }
        do throws(DNSParseError) {
            for _ in 0..<min(Int(authorities), Self.mostRecords) { try takeAuthority(&reader) }
        } catch {
            // The answers are good without it.
            negativeLifetime = 0
        }
    }

    /// Reads the SOA record of a zone, and passes over others (RFC 1035 §3.3.13).
    private mutating func takeAuthority(_ reader: inout Reader) throws(DNSParseError) {
        let (type, seconds, end) = try reader.recordHeader()
        if type == 6 {
            _ = try reader.name()
            _ = try reader.name()
            for _ in 0..<4 { _ = try reader.seconds() }
            negativeLifetime = min(seconds, try reader.seconds())
            guard reader.position <= end else { throw DNSParseError(reason: "a record is longer than it says") }
        }
        reader.position = end
    }

    private mutating func take(_ reader: inout Reader) throws(DNSParseError) {
        let (type, seconds, end) = try reader.recordHeader()
        lifetime = min(lifetime, seconds)
        switch type {
        case 33:
            let (priority, weight, port) = (try reader.number(), try reader.number(), try reader.number())
            if let target = try reader.name() {
                services.append(SRVRecord(priority: priority, weight: weight, port: port, target: target))
            }
        case 35:
            let (order, preference) = (try reader.number(), try reader.number())
            let (flags, service) = (try reader.text(), try reader.text())
            _ = try reader.text()
            if let replacement = try reader.name() {
                rules.append(
                    NAPTRRecord(
                        order: order, preference: preference, flags: flags, service: service,
                        replacement: replacement))
            }
        default: break
        }
        guard reader.position <= end else { throw DNSParseError(reason: "a record is longer than it says") }
        reader.position = end
    }

    private struct Reader {
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

        /// The fields before each record's data: its type, its lifetime, and where its data ends.
        mutating func recordHeader() throws(DNSParseError) -> (type: UInt16, seconds: UInt32, end: Int) {
            _ = try name()
            let type = try number()
            _ = try number()
            let seconds = try seconds()
            let end = Int(try number()) + position
            guard end <= bytes.count else { throw DNSParseError(reason: "a record ends too early") }
            return (type, seconds, end)
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
            var labels: [[UInt8]] = []
            var (length, place) = (0, position)
            var hasJumped = false
            var isPlain = true
            while true {
                guard place < bytes.count else { throw DNSParseError(reason: "a name ends too early") }
                let size = Int(bytes[place])
                if size & 0xC0 == 0xC0 {
                    guard place + 1 < bytes.count else { throw DNSParseError(reason: "a pointer ends too early") }
                    let target = (size & 0x3F) << 8 | Int(bytes[place + 1])
                    if !hasJumped { position = place + 2 }
                    hasJumped = true
                    // Backwards only, so that no name is endless.
                    guard target < place else { throw DNSParseError(reason: "a pointer does not lead back") }
                    place = target
                    continue
                }
                guard size < 64, place + 1 + size <= bytes.count else {
                    throw DNSParseError(reason: "a label ends too early")
                }
                if size == 0 { break }
                length += size + 1
                guard length < 255 else { throw DNSParseError(reason: "a name is too long") }
                let label = bytes[place + 1..<place + 1 + size].map { (65...90).contains($0) ? $0 + 32 : $0 }
                isPlain = isPlain && label.allSatisfy(Self.isPlain)
                labels.append(label)
                place += 1 + size
            }
            if !hasJumped { position = place + 1 }
            return isPlain ? labels.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ".") : nil
        }

        private static func isPlain(_ byte: UInt8) -> Bool {
            (97...122).contains(byte) || (48...57).contains(byte) || byte == 45 || byte == 95
        }
    }
}
