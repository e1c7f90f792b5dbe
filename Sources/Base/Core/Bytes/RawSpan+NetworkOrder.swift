// Bytes: reading and writing network byte order with every bound checked, on memory that stays where it is.

/// Checked reads of big-endian fields: past the end they return `nil`. They never allocate.
extension RawSpan {
    /// The byte at `offset`.
    @_noAllocation @_noLocks
    public func uint8(at offset: Int) -> UInt8? {
        guard offset >= 0, offset < byteCount else { return nil }
        return unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }

    /// The two bytes at `offset`.
    @_noAllocation @_noLocks
    public func uint16(at offset: Int) -> UInt16? {
        guard offset >= 0, offset <= byteCount - 2 else { return nil }
        return UInt16(bigEndian: unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt16.self))
    }

    /// The three bytes at `offset`, as a number below 2²⁴.
    @_noAllocation @_noLocks
    public func uint24(at offset: Int) -> UInt32? {
        guard let high = uint16(at: offset), let low = uint8(at: offset + 2) else { return nil }
        return UInt32(high) << 8 | UInt32(low)
    }

    /// The four bytes at `offset`.
    @_noAllocation @_noLocks
    public func uint32(at offset: Int) -> UInt32? {
        guard offset >= 0, offset <= byteCount - 4 else { return nil }
        return UInt32(bigEndian: unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt32.self))
    }

    /// The eight bytes at `offset`.
    @_noAllocation @_noLocks
    public func uint64(at offset: Int) -> UInt64? {
        guard offset >= 0, offset <= byteCount - 8 else { return nil }
        return UInt64(bigEndian: unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
    }
}
