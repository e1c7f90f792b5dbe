/// Numbers in network order, in arrays of bytes.
extension FixedWidthInteger where Self: UnsignedInteger {
    /// The value's bytes in network order.
    var networkBytes: [UInt8] {
        var rest = UInt64(truncatingIfNeeded: self)
        var bytes = [UInt8](repeating: 0, count: Self.bitWidth / 8)
        var index = bytes.count
        while index > 0 {
            index -= 1
            bytes[index] = UInt8(truncatingIfNeeded: rest)
            rest >>= 8
        }
        return bytes
    }
}

/// Checked reads: past the end they return `nil`.
extension [UInt8] {
    func uint16(at offset: Int) -> UInt16? { number(at: offset, size: 2).map { UInt16(truncatingIfNeeded: $0) } }
    func uint32(at offset: Int) -> UInt32? { number(at: offset, size: 4).map { UInt32(truncatingIfNeeded: $0) } }
    func uint64(at offset: Int) -> UInt64? { number(at: offset, size: 8) }

    private func number(at offset: Int, size: Int) -> UInt64? {
        guard offset >= 0, offset <= count - size else { return nil }
        var value: UInt64 = 0
        for index in offset..<(offset + size) { value = value << 8 | UInt64(self[index]) }
        return value
    }
}
