/// Checked reads of big-endian fields in a file that is held whole, off the media path.
extension [UInt8] {
    func uint8(at offset: Int) -> UInt8? { indices.contains(offset) ? self[offset] : nil }

    func uint16(at offset: Int) -> UInt16? {
        guard let high = uint8(at: offset), let low = uint8(at: offset + 1) else { return nil }
        return UInt16(high) << 8 | UInt16(low)
    }

    func uint32(at offset: Int) -> UInt32? {
        guard let high = uint16(at: offset), let low = uint16(at: offset + 2) else { return nil }
        return UInt32(high) << 16 | UInt32(low)
    }
}
