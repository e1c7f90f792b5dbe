extension QRCode {
    /// Modules of the light border that readers need (§5.3.8).
    private static let quietZone = 4

    /// For a terminal: two modules a character, dark on light under any colours of the terminal.
    public var terminalText: String {
        let range = -Self.quietZone..<size + Self.quietZone
        var text = ""
        for row in stride(from: range.lowerBound, to: range.upperBound, by: 2) {
            text += "\u{1B}[30;107m"
            for column in range {
                switch (self[column, row], row + 1 < range.upperBound && self[column, row + 1]) {
                case (true, true): text += "█"
                case (true, false): text += "▀"
                case (false, true): text += "▄"
                case (false, false): text += " "
                }
            }
            text += "\u{1B}[0m\n"
        }
        return text
    }

    /// As a PNG picture (RFC 2083) in black and white.
    ///
    /// - Parameter scale: Pixels on a module's side, from 1 to 64.
    public func png(scale: Int = 8) -> [UInt8] {
        let scale = min(max(scale, 1), 64)
        let side = (size + 2 * Self.quietZone) * scale
        var rows: [UInt8] = []
        for y in 0..<side {
            rows.append(0)  // No filter.
            for start in stride(from: 0, to: side, by: 8) {
                rows.append(
                    (0..<8).reduce(UInt8(0)) { byte, bit in
                        let x = start + bit
                        let isDark = self[x / scale - Self.quietZone, y / scale - Self.quietZone]
                        return byte << 1 | (x < side && !isDark ? 1 : 0)
                    })
            }
        }
        let header = Self.bigEndian(UInt32(side)) + Self.bigEndian(UInt32(side)) + [1, 0, 0, 0, 0]
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + Self.chunk("IHDR", header)
            + Self.chunk("IDAT", Self.zlib(rows)) + Self.chunk("IEND", [])
    }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
    }

    private static func chunk(_ kind: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(kind.utf8) + data
        return bigEndian(UInt32(data.count)) + body + bigEndian(crc(body))
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
        }
        return ~crc
    }

    /// Stored blocks (RFC 1950, RFC 1951 §3.2.4): the picture has a few kilobytes.
    private static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = [0x78, 0x01]
        var start = 0
        repeat {
            let count = min(65_535, bytes.count - start)
            let isLast = start + count == bytes.count
            let length = UInt16(count)
            for word in [length, ~length] { result += [UInt8(truncatingIfNeeded: word), UInt8(word >> 8)] }
            result.insert(isLast ? 1 : 0, at: result.count - 4)
            result += bytes[start..<start + count]
            start += count
        } while start < bytes.count
        var (low, high): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            low = (low + UInt32(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return result + bigEndian(high << 16 | low)
    }
}
