/// Puts packets of one stream into Ogg pages (RFC 3533). Each packet is on one page.
struct OggPages {
    private let serial: UInt32
    private var sequence: UInt32 = 0
    private var lacing: [UInt8] = []
    private var body: [UInt8] = []
    private var granule: UInt64 = 0

    enum Flags: UInt8 {
        case none = 0
        case first = 2
        case last = 4
    }

    private static let maximumSegments = 255

    init(serial: UInt32) { self.serial = serial }

    /// Whether a packet waits for its page.
    var isEmpty: Bool { lacing.isEmpty }

    /// Whether a packet of `byteCount` bytes fits into the current page.
    func hasRoom(for byteCount: Int) -> Bool { lacing.count + byteCount / 255 + 1 <= Self.maximumSegments }

    /// Adds a packet.
    ///
    /// - Parameter granule: Samples up to its end, which the page has if the packet is its last one.
    mutating func add(_ packet: [UInt8], granule: UInt64) {
        lacing += [UInt8](repeating: 255, count: packet.count / 255) + [UInt8(packet.count % 255)]
        body += packet
        self.granule = granule
    }

    /// Gives the last page another position, so that a reader leaves out samples at its end.
    mutating func setGranule(_ granule: UInt64) { self.granule = granule }

    /// Takes the page that is begun.
    mutating func takePage(_ flags: Flags = .none) -> [UInt8] {
        var page: [UInt8] = Array("OggS".utf8) + [0, flags.rawValue]
        page.reserveCapacity(27 + lacing.count + body.count)
        page.append(little: granule, bytes: 8)
        page.append(little: UInt64(serial), bytes: 4)
        page.append(little: UInt64(sequence), bytes: 4)
        let checksumOffset = page.count
        page += [0, 0, 0, 0, UInt8(lacing.count)] + lacing + body
        let checksum = Self.checksum(page)
        for index in 0..<4 { page[checksumOffset + index] = UInt8(truncatingIfNeeded: checksum >> (8 * index)) }
        sequence &+= 1
        (lacing, body) = ([], [])
        return page
    }

    /// The polynomial 0x04C11DB7, most significant bit first, without inversions (RFC 3533 §6).
    static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = 0
        for byte in bytes { sum = sum << 8 ^ table[Int(UInt8(truncatingIfNeeded: sum >> 24) ^ byte)] }
        return sum
    }

    private static let table: [UInt32] = (0..<256).map { (index: UInt32) in
        var value = index << 24
        for _ in 0..<8 { value = value & 0x8000_0000 != 0 ? value << 1 ^ 0x04C1_1DB7 : value << 1 }
        return value
    }
}

extension [UInt8] {
    mutating func append(little value: UInt64, bytes: Int) {
        for index in 0..<bytes { append(UInt8(truncatingIfNeeded: value >> UInt64(8 * index))) }
    }
}
