/// A copy of a datagram that is processed in place, in case that fails and it must be processed otherwise.
public struct DatagramCopy: ~Copyable {
    private var bytes = InlineArray<1_536, UInt8>(repeating: 0)

    /// The longest datagram that is copied: a slot of a ``DatagramBatch``.
    public static var capacity: Int {
        @_noAllocation @_noLocks get { 1_536 }
    }

    /// Copies a datagram of up to ``capacity`` bytes.
    @_noAllocation @_noLocks
    public init(_ datagram: inout MutableRawSpan) { keep(datagram, in: &bytes) }

    /// Restores the datagram in the same memory.
    @_noAllocation @_noLocks
    public mutating func restore(_ datagram: inout MutableRawSpan) { putBack(&bytes, into: &datagram) }
}

// The two below copy memory, which neither allocates nor locks.

@_semantics("no_performance_analysis") @inline(__always)
private func keep(_ datagram: borrowing MutableRawSpan, in copy: inout InlineArray<1_536, UInt8>) {
    for index in 0..<min(datagram.byteCount, DatagramCopy.capacity) {
        copy[index] = unsafe datagram.unsafeLoad(fromByteOffset: index, as: UInt8.self)
    }
}

@_semantics("no_performance_analysis") @inline(__always)
private func putBack(_ copy: inout InlineArray<1_536, UInt8>, into datagram: inout MutableRawSpan) {
    for index in 0..<min(datagram.byteCount, DatagramCopy.capacity) {
        datagram.storeBytes(of: copy[index], toByteOffset: index, as: UInt8.self)
    }
}
