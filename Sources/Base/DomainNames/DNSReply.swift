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
        guard bytes.count >= 12 else { throw DNSParseError(reason: "it has no header") }
        var reader = DNSReader(bytes: bytes, position: 4)
        let questions = try reader.number()
        let answers = try reader.number()
        let authorities = try reader.number()
        reader.position = 12
        for _ in 0..<questions { try reader.skipQuestion() }
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
    private mutating func takeAuthority(_ reader: inout DNSReader) throws(DNSParseError) {
        let record = try reader.record()
        if record.type == 6 {
            _ = try reader.name()
            _ = try reader.name()
            for _ in 0..<4 { _ = try reader.seconds() }
            negativeLifetime = min(record.seconds, try reader.seconds())
        }
        try reader.end(record)
    }

    private mutating func take(_ reader: inout DNSReader) throws(DNSParseError) {
        let record = try reader.record()
        lifetime = min(lifetime, record.seconds)
        switch record.type {
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
        try reader.end(record)
    }
}
