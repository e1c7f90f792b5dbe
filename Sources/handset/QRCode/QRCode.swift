// QRCode: short texts as QR codes (ISO/IEC 18004), for terminals and as PNG pictures.

/// A QR code: which modules of a square are dark.
public struct QRCode: Sendable {
    /// Modules on a side, without the quiet zone.
    public let size: Int
    private var dark: [Bool]
    /// Modules that are no data: finders, timing, alignment, format and version.
    private var isFunction: [Bool]

    /// Makes the smallest code that holds a text, with error correction M: 15 % of it may be damaged.
    ///
    /// - Returns: `nil` if the text is too long: about 660 bytes, or 970 capital letters, digits and ` $%*+-./:`.
    public init?(_ text: String) {
        let segment = QRSegment(text)
        guard let version = QRVersion.all.first(where: { segment.bitCount(in: $0) <= $0.dataCodewords * 8 }) else {
            return nil
        }
        size = 17 + 4 * version.number
        dark = Array(repeating: false, count: size * size)
        isFunction = dark
        drawFunctions(version)
        drawData(version.interleave(segment.codewords(in: version)))
        let plain = self
        var best: (code: QRCode, penalty: Int)?
        for mask in 0..<8 {
            var code = plain
            code.applyMask(mask)
            code.drawFormat(mask)
            let penalty = code.penalty
            if best.map({ penalty < $0.penalty }) ?? true { best = (code, penalty) }
        }
        if let best { dark = best.code.dark }
    }

    /// Whether a module is dark; all outside are light.
    public subscript(column: Int, row: Int) -> Bool {
        guard (0..<size).contains(column), (0..<size).contains(row) else { return false }
        return dark[row * size + column]
    }

    // MARK: - Drawing

    private mutating func set(_ column: Int, _ row: Int, _ isDark: Bool) {
        guard (0..<size).contains(column), (0..<size).contains(row) else { return }
        dark[row * size + column] = isDark
        isFunction[row * size + column] = true
    }

    private mutating func drawFunctions(_ version: QRVersion) {
        for index in 0..<size {
            set(6, index, index % 2 == 0)
            set(index, 6, index % 2 == 0)
        }
        for (column, row) in [(3, 3), (size - 4, 3), (3, size - 4)] { drawFinder(column, row) }
        let centres = version.alignmentCentres
        for (i, row) in centres.enumerated() {
            for (j, column) in centres.enumerated() {
                let last = centres.count - 1
                // Not where finders are.
                if (i == 0 && j == 0) || (i == 0 && j == last) || (i == last && j == 0) { continue }
                for y in -2...2 { for x in -2...2 { set(column + x, row + y, max(abs(x), abs(y)) != 1) } }
            }
        }
        drawFormat(0)  // Reserves the place.
        drawVersion(version.number)
    }

    private mutating func drawFinder(_ column: Int, _ row: Int) {
        for y in -4...4 {
            for x in -4...4 {
                let distance = max(abs(x), abs(y))
                set(column + x, row + y, distance != 2 && distance != 4)
            }
        }
    }

    /// Two copies of level and mask, with error correction (§7.9).
    private mutating func drawFormat(_ mask: Int) {
        // Level M is 00.
        var rest = mask << 10
        for bit in stride(from: 14, through: 10, by: -1) where rest >> bit & 1 == 1 { rest ^= 0x537 << (bit - 10) }
        let bits = (mask << 10 | rest) ^ 0x5412
        for index in 0..<15 {
            let isDark = bits >> index & 1 == 1
            // Beside the upper left finder.
            switch index {
            case 0...5: set(8, index, isDark)
            case 6: set(8, 7, isDark)
            case 7: set(8, 8, isDark)
            case 8: set(7, 8, isDark)
            default: set(14 - index, 8, isDark)
            }
            // Beside the other two.
            if index < 8 { set(size - 1 - index, 8, isDark) } else { set(8, size - 15 + index, isDark) }
        }
        set(8, size - 8, true)
    }

    /// Two copies of the version, from 7 on (§7.10).
    private mutating func drawVersion(_ number: Int) {
        guard number >= 7 else { return }
        var rest = number << 12
        for bit in stride(from: 17, through: 12, by: -1) where rest >> bit & 1 == 1 { rest ^= 0x1F25 << (bit - 12) }
        let bits = number << 12 | rest
        for index in 0..<18 {
            let isDark = bits >> index & 1 == 1
            let (long, short) = (size - 11 + index % 3, index / 3)
            set(long, short, isDark)
            set(short, long, isDark)
        }
    }

    /// Two columns at a time, from the right, up and down by turns (§7.7.3).
    private mutating func drawData(_ codewords: [UInt8]) {
        var bit = 0
        var isUpward = true
        var right = size - 1
        while right > 0 {
            if right == 6 { right = 5 }  // The timing column.
            for step in 0..<size {
                let row = isUpward ? size - 1 - step : step
                for column in [right, right - 1] where !isFunction[row * size + column] {
                    if bit < codewords.count * 8 {
                        dark[row * size + column] = codewords[bit / 8] >> UInt8(7 - bit % 8) & 1 == 1
                    }
                    bit += 1
                }
            }
            isUpward.toggle()
            right -= 2
        }
    }

    private mutating func applyMask(_ mask: Int) {
        for row in 0..<size {
            for column in 0..<size where !isFunction[row * size + column] && Self.isFlipped(mask, column, row) {
                dark[row * size + column].toggle()
            }
        }
    }

    /// Table 10 of §7.8.2.
    private static func isFlipped(_ mask: Int, _ x: Int, _ y: Int) -> Bool {
        switch mask {
        case 0: (x + y) % 2 == 0
        case 1: y % 2 == 0
        case 2: x % 3 == 0
        case 3: (x + y) % 3 == 0
        case 4: (x / 3 + y / 2) % 2 == 0
        case 5: x * y % 2 + x * y % 3 == 0
        case 6: (x * y % 2 + x * y % 3) % 2 == 0
        default: ((x + y) % 2 + x * y % 3) % 2 == 0
        }
    }

    // MARK: - Choosing a mask

    /// How hard the code is to read (§7.8.3).
    private var penalty: Int {
        var penalty = 0
        for line in 0..<size {
            penalty += Self.runPenalty((0..<size).map { self[$0, line] })
            penalty += Self.runPenalty((0..<size).map { self[line, $0] })
        }
        for row in 0..<size - 1 {
            for column in 0..<size - 1 {
                let first = self[column, row]
                if first == self[column + 1, row], first == self[column, row + 1], first == self[column + 1, row + 1] {
                    penalty += 3
                }
            }
        }
        let count = dark.lazy.filter { $0 }.count
        return penalty + abs(count * 20 - dark.count * 10) / dark.count * 10
    }

    /// Of one line: long runs, and what looks like a finder.
    private static func runPenalty(_ line: [Bool]) -> Int {
        var (penalty, run) = (0, 0)
        for (index, isDark) in line.enumerated() {
            run = index > 0 && line[index - 1] == isDark ? run + 1 : 1
            if run == 5 { penalty += 3 } else if run > 5 { penalty += 1 }
        }
        let finder = [true, false, true, true, true, false, true]
        let light = [Bool](repeating: false, count: 4)
        for pattern in [finder + light, light + finder] where line.count >= pattern.count {
            for start in 0...(line.count - pattern.count) where Array(line[start..<start + pattern.count]) == pattern {
                penalty += 40
            }
        }
        return penalty
    }
}

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
