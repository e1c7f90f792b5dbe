/// Numbers in network order, in arrays of bytes.
extension FixedWidthInteger {
    /// The value's bytes in network order.
    var networkBytes: [UInt8] {
        stride(from: Self.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> Self($0)) }
    }
}

/// Checked reads: past the end they return `nil`.
extension [UInt8] {
    func uint16(at offset: Int) -> UInt16? { number(at: offset) }
    func uint32(at offset: Int) -> UInt32? { number(at: offset) }
    func uint64(at offset: Int) -> UInt64? { number(at: offset) }

    private func number<Number: FixedWidthInteger>(at offset: Int) -> Number? {
        let size = Number.bitWidth / 8
        guard offset >= 0, offset <= count - size else { return nil }
        return self[offset..<(offset + size)].reduce(0) { $0 << 8 | Number($1) }
    }
}
