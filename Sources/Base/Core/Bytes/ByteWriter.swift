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
