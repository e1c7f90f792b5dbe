/// A text as a QR code's bits: five and a half a character if it is made of 45 certain ones, or else its bytes (§7.4).
struct QRSegment {
    private static let alphanumerics = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:".utf8)

    private let bytes: [UInt8]
    /// Places in the table of 45; `nil` if there is another character.
    private let places: [Int]?

    init(_ text: String) {
        bytes = Array(text.utf8)
        let places = bytes.compactMap { Self.alphanumerics.firstIndex(of: $0) }
        self.places = places.count == bytes.count ? places : nil
    }

    func bitCount(in version: QRVersion) -> Int {
        let count = bytes.count
        guard places != nil else { return 4 + version.byteCountBits + 8 * count }
        return 4 + version.alphanumericCountBits + count / 2 * 11 + count % 2 * 6
    }

    /// The bits, an end, and filling.
    func codewords(in version: QRVersion) -> [UInt8] {
        var bits: [Bool] = []
        func append(_ value: Int, _ count: Int) {
            for bit in stride(from: count - 1, through: 0, by: -1) { bits.append(value >> bit & 1 == 1) }
        }
        if let places {
            append(0b0010, 4)
            append(places.count, version.alphanumericCountBits)
            var index = 0
            while index + 1 < places.count {
                append(places[index] * 45 + places[index + 1], 11)
                index += 2
            }
            if index < places.count { append(places[index], 6) }
        } else {
            append(0b0100, 4)
            append(bytes.count, version.byteCountBits)
            for byte in bytes { append(Int(byte), 8) }
        }
        let capacity = version.dataCodewords * 8
        append(0, min(4, capacity - bits.count))
        append(0, (8 - bits.count % 8) % 8)
        var codewords = stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<start + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
        }
        var filler: UInt8 = 0xEC
        while codewords.count < version.dataCodewords {
            codewords.append(filler)
            filler ^= 0xEC ^ 0x11
        }
        return codewords
    }
}
