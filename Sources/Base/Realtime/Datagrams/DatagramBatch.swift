internal import CRealtime
public import Core

/// A fixed number of datagram slots: filled by one receive, or collected for one send.
///
/// All memory is taken at creation; slots that are never used stay untouched and cost no resident memory.
@safe
public struct DatagramBatch: ~Copyable {
    /// Bytes a slot holds: an Ethernet frame's UDP payload and some slack to notice larger ones.
    public static var slotBytes: Int {
        @_noAllocation @_noLocks get { 1536 }
    }
    /// Slots in a batch.
    public static var capacity: Int {
        @_noAllocation @_noLocks get { 64 }
    }

    let datagrams: UnsafeMutablePointer<handset_datagram>
    private let memory: UnsafeMutableRawPointer
    /// Slots in use.
    public internal(set) var count = 0

    /// Makes an empty batch.
    public init() {
        unsafe memory = .allocate(byteCount: Self.capacity * Self.slotBytes, alignment: 64)
        unsafe datagrams = .allocate(capacity: Self.capacity)
        unsafe datagrams.initialize(repeating: handset_datagram(), count: Self.capacity)
        for index in 0..<Self.capacity {
            unsafe datagrams[index].bytes = (memory + index * Self.slotBytes).assumingMemoryBound(to: UInt8.self)
        }
    }

    deinit {
        unsafe datagrams.deallocate()
        unsafe memory.deallocate()
    }

    /// Whether another datagram fits.
    public var isFull: Bool {
        @_noAllocation @_noLocks get { count == Self.capacity }
    }

    /// When the kernel took in datagram `index`.
    @_noAllocation @_noLocks
    public func arrival(_ index: Int) -> Instant { Instant(nanoseconds: unsafe datagrams[index].arrival_ns) }

    /// The sender of datagram `index`, or its receiver.
    @_noAllocation @_noLocks
    public func address(_ index: Int) -> SocketAddress { SocketAddress(unsafe datagrams[index].address) }

    /// The address of this machine that datagram `index` came to; nil if its socket is bound to one address alone.
    ///
    /// Its port is 0.
    @_noAllocation @_noLocks
    public func localAddress(_ index: Int) -> SocketAddress? {
        guard unsafe datagrams[index].local.family != 0 else { return nil }
        return SocketAddress(unsafe datagrams[index].local)
    }

    /// The owner's socket that datagram `index` came through, or is to leave through.
    @_noAllocation @_noLocks
    public func socket(_ index: Int) -> Int { unsafe Int(datagrams[index].socket) }

    /// Whether datagram `index` was longer than its slot, so that its end is missing.
    @_noAllocation @_noLocks
    public func isTruncated(_ index: Int) -> Bool { unsafe datagrams[index].truncated }

    /// The bytes of datagram `index`.
    @_noAllocation @_noLocks
    @_lifetime(&self)
    public mutating func bytes(_ index: Int) -> MutableRawSpan {
        let span = unsafe MutableRawSpan(
            _unsafeStart: datagrams[index].bytes, byteCount: Int(datagrams[index].length))
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// The next free slot behind its first `prefixBytes`, to be written and then kept with ``commit(byteCount:by:)``, which
    /// counts those, too.
    ///
    /// The caller has checked ``isFull``.
    @_noAllocation @_noLocks
    @_lifetime(&self)
    public mutating func freeSlot(after prefixBytes: Int = 0) -> MutableRawSpan {
        precondition(prefixBytes >= 0 && prefixBytes <= Self.slotBytes, "a prefix must lie within the slot")
        let span = unsafe MutableRawSpan(
            _unsafeStart: datagrams[count].bytes + prefixBytes, byteCount: Self.slotBytes - prefixBytes)
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// Keeps the slot that ``freeSlot()`` gave as a datagram of `byteCount` bytes on `path`.
    @_noAllocation @_noLocks
    public mutating func commit(byteCount: Int, by path: DatagramPath) {
        unsafe datagrams[count].length = UInt32(truncatingIfNeeded: byteCount)
        unsafe datagrams[count].address = path.remote.raw
        unsafe datagrams[count].socket = UInt32(truncatingIfNeeded: path.socket)
        if let local = path.local {
            unsafe datagrams[count].local = local.raw
        } else {
            unsafe datagrams[count].local.family = 0
        }
        count += 1
    }

    /// Has the memory of the slots there that are used unless there is a flood; an empty batch's.
    @_noAllocation @_noLocks
    public mutating func touch() {
        guard count == 0 else { return }
        var offset = 0
        while offset < 16 * Self.slotBytes {
            unsafe memory.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self)
            offset += 4_096
        }
    }

    /// Forgets all datagrams.
    @_noAllocation @_noLocks
    public mutating func clear() { count = 0 }
}

/// The path of a datagram: its owner's socket, the address of this machine, and the target.
@frozen
public struct DatagramPath: Hashable, BitwiseCopyable, Sendable {
    /// A slot of a ``SocketSet``.
    public var socket: Int
    /// The local address that the peer knows; nil lets the socket, or the route, choose. The port is not used.
    public var local: SocketAddress?
    /// The destination.
    public var remote: SocketAddress

    /// Makes a path.
    @_noAllocation @_noLocks
    public init(socket: Int, local: SocketAddress?, remote: SocketAddress) {
        self.socket = socket
        self.local = local
        self.remote = remote
    }

    /// The default path to an address: through its family's main socket, from the local address that the route selects.
    @_noAllocation @_noLocks
    public init(to remote: SocketAddress) {
        self.init(socket: SocketSet.mainSlot(isIPv6: remote.isIPv6), local: nil, remote: remote)
    }
}

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
