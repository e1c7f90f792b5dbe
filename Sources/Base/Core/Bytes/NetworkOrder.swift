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

/// The same reads in an array, off the media path.
extension [UInt8] {
    /// The byte at `offset`.
    package func uint8(at offset: Int) -> UInt8? { unsafe span.bytes.uint8(at: offset) }
    /// The two bytes at `offset`.
    package func uint16(at offset: Int) -> UInt16? { unsafe span.bytes.uint16(at: offset) }
    /// The four bytes at `offset`.
    package func uint32(at offset: Int) -> UInt32? { unsafe span.bytes.uint32(at: offset) }
    /// The eight bytes at `offset`.
    package func uint64(at offset: Int) -> UInt64? { unsafe span.bytes.uint64(at: offset) }
}

/// Writes big-endian fields into a buffer of fixed size, one after the other.
///
/// A write that does not fit writes nothing and sets ``overflowed``, so that a caller may check once at the end.
/// Allocates nothing.
@frozen
public struct ByteWriter: ~Copyable, ~Escapable {
    private var bytes: MutableRawSpan
    /// Bytes written so far.
    public private(set) var count = 0
    /// A write did not fit: what was written is incomplete and must not be used.
    public private(set) var overflowed = false

    /// Starts writing at the front of `bytes`.
    @_noAllocation @_noLocks
    @_lifetime(copy bytes)
    public init(_ bytes: consuming MutableRawSpan) {
        self.bytes = bytes
    }

    /// Appends one byte.
    @_noAllocation @_noLocks
    @_lifetime(self: copy self)
    public mutating func write(_ value: UInt8) {
        guard reserve(1) else { return }
        unsafe bytes.storeBytes(of: value, toUncheckedByteOffset: count, as: UInt8.self)
        count += 1
    }

    /// Appends two bytes.
    @_noAllocation @_noLocks
    @_lifetime(self: copy self)
    public mutating func write(_ value: UInt16) {
        guard reserve(2) else { return }
        unsafe bytes.storeBytes(of: value.bigEndian, toUncheckedByteOffset: count, as: UInt16.self)
        count += 2
    }

    /// Appends the low three bytes of `value`.
    @_noAllocation @_noLocks
    @_lifetime(self: copy self)
    public mutating func writeUInt24(_ value: UInt32) {
        guard reserve(3) else { return }
        write(UInt16(truncatingIfNeeded: value >> 8))
        write(UInt8(truncatingIfNeeded: value))
    }

    /// Appends four bytes.
    @_noAllocation @_noLocks
    @_lifetime(self: copy self)
    public mutating func write(_ value: UInt32) {
        guard reserve(4) else { return }
        unsafe bytes.storeBytes(of: value.bigEndian, toUncheckedByteOffset: count, as: UInt32.self)
        count += 4
    }

    /// Appends eight bytes.
    @_noAllocation @_noLocks
    @_lifetime(self: copy self)
    public mutating func write(_ value: UInt64) {
        guard reserve(8) else { return }
        unsafe bytes.storeBytes(of: value.bigEndian, toUncheckedByteOffset: count, as: UInt64.self)
        count += 8
    }

    /// Appends a run of bytes.
    @_noAllocation @_noLocks
    @_lifetime(self: copy self)
    public mutating func write(_ run: RawSpan) {
        guard reserve(run.byteCount) else { return }
        for index in 0..<run.byteCount {
            let byte = unsafe run.unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self)
            unsafe bytes.storeBytes(of: byte, toUncheckedByteOffset: count + index, as: UInt8.self)
        }
        count += run.byteCount
    }

    /// Overwrites two bytes that were written before, such as a length known only at the end.
    @_noAllocation @_noLocks
    @_lifetime(self: copy self)
    public mutating func patch(_ value: UInt16, at offset: Int) {
        guard offset >= 0, offset + 2 <= count else { return }
        unsafe bytes.storeBytes(of: value.bigEndian, toUncheckedByteOffset: offset, as: UInt16.self)
    }

    @_noAllocation @_noLocks
    private mutating func reserve(_ size: Int) -> Bool {
        guard !overflowed, bytes.byteCount - count >= size else {
            overflowed = true
            return false
        }
        return true
    }
}
