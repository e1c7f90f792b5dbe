/// One of the sizes of QR codes, at level M of error correction.
struct QRVersion {
    let number: Int
    /// Codewords of error correction in each block.
    private let correction: Int
    private let blocks: Int

    /// Of versions 1 to 20, from table 9 of ISO/IEC 18004.
    static let all: [QRVersion] = zip(
        [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26],
        [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16]
    ).enumerated().map { QRVersion(number: $0.offset + 1, correction: $0.element.0, blocks: $0.element.1) }

    var byteCountBits: Int { number < 10 ? 8 : 16 }
    var alphanumericCountBits: Int { number < 10 ? 9 : 11 }

    /// Codewords that fit, data and correction.
    var codewords: Int {
        var modules = (16 * number + 128) * number + 64
        if number >= 2 {
            let lines = number / 7 + 2
            modules -= (25 * lines - 10) * lines - 55
            if number >= 7 { modules -= 36 }
        }
        return modules / 8
    }

    var dataCodewords: Int { codewords - correction * blocks }

    /// Where the centres of alignment patterns are, in both directions (annex E).
    var alignmentCentres: [Int] {
        guard number >= 2 else { return [] }
        let count = number / 7 + 2
        let step = (number * 4 + count * 2 + 1) / (count * 2 - 2) * 2
        let last = 4 * number + 10
        return [6] + (0..<count - 1).map { last - step * (count - 2 - $0) }
    }

    /// Adds error correction to each block, and shuffles the blocks (§7.5, §7.6).
    func interleave(_ data: [UInt8]) -> [UInt8] {
        let short = data.count / blocks
        let longBlocks = data.count % blocks
        let generator = QRField.generator(correction)
        var parts: [[UInt8]] = []
        var corrections: [[UInt8]] = []
        var start = 0
        for block in 0..<blocks {
            let length = short + (block >= blocks - longBlocks ? 1 : 0)
            let part = Array(data[start..<start + length])
            start += length
            parts.append(part)
            corrections.append(QRField.remainder(of: part, by: generator))
        }
        var result: [UInt8] = []
        for index in 0...short { for part in parts where index < part.count { result.append(part[index]) } }
        for index in 0..<correction { for part in corrections { result.append(part[index]) } }
        return result
    }
}

/// Reed and Solomon's codes over 256 elements, with the polynomial 0x11D (annex A).
enum QRField {
    static func multiply(_ left: UInt8, _ right: UInt8) -> UInt8 {
        var result = 0
        for bit in stride(from: 7, through: 0, by: -1) {
            result = result << 1 ^ (result >> 7 * 0x11D)
            if right >> UInt8(bit) & 1 == 1 { result ^= Int(left) }
        }
        return UInt8(truncatingIfNeeded: result)
    }

    /// The coefficients of a generator, the highest power's, which is 1, left out.
    static func generator(_ degree: Int) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: degree - 1) + [1]
        var root: UInt8 = 1
        for _ in 0..<degree {
            for index in 0..<degree {
                result[index] = multiply(result[index], root)
                if index + 1 < degree { result[index] ^= result[index + 1] }
            }
            root = multiply(root, 2)
        }
        return result
    }

    static func remainder(of data: [UInt8], by generator: [UInt8]) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: generator.count)
        for byte in data {
            let factor = byte ^ result.removeFirst()
            result.append(0)
            for (index, coefficient) in generator.enumerated() { result[index] ^= multiply(coefficient, factor) }
        }
        return result
    }
}
