internal import CRealtime

/// The sockets of one thread, each in a numbered slot, to wait for together and to send through by number.
///
/// Sockets are made and freed by another thread, which also gives out the numbers and has the kernel watch them
/// (``SocketWatcher``): nothing here allocates. A number consists of an index below ``capacity`` and, in its upper
/// bits, how often that index was used before (``slot(at:round:)``). So a datagram that was received through a socket
/// now closed, and is still on its way through a ring, never counts for the next one.
@safe
public struct SocketSet: ~Copyable {
    /// The largest number of sockets: 1,023 calls with two each, one for each family of addresses.
    public static var capacity: Int {
        @_noAllocation @_noLocks get { 2_048 }
    }

    /// The slot of the socket that all calls share, one for each family of addresses.
    @_noAllocation @_noLocks
    public static func mainSlot(isIPv6: Bool) -> Int { isIPv6 ? 1 : 0 }

    /// The first slot, and the first place, for other sockets.
    public static var firstExtraSlot: Int {
        @_noAllocation @_noLocks get { 2 }
    }

    /// The slot of a place's next socket.
    ///
    /// - Parameters:
    ///   - place: 0..<``capacity``.
    ///   - round: Sockets that the index has had before. After 2 million the numbers start over.
    @_noAllocation @_noLocks
    public static func slot(at place: Int, round: Int) -> Int { place + (round & 0x1f_ffff) * capacity }

    /// Index of a slot's socket below ``capacity``.
    @_noAllocation @_noLocks
    public static func place(of slot: Int) -> Int { slot % capacity }

    /// Readable when one of the sockets is.
    public let descriptor: Int32
    @safe
    private struct Entry {
        let socket: UnsafeMutablePointer<UDPSocket>
        let slot: Int
    }

    /// By place.
    private let entries: UnsafeMutablePointer<Entry?>
    private let ready: UnsafeMutablePointer<handset_ready>
    /// No socket is in this place or above.
    private var end = 0
    /// Sockets in it.
    private var count = 0

    /// Makes an empty set.
    public init() throws(RealtimeError) {
        descriptor = handset_set_open()
        if descriptor < 0 { throw RealtimeError(doing: "opening a set of sockets (epoll)", errno: -descriptor) }
        unsafe entries = .allocate(capacity: Self.capacity)
        unsafe entries.initialize(repeating: nil, count: Self.capacity)
        unsafe ready = .allocate(capacity: Self.capacity)
        unsafe ready.initialize(repeating: handset_ready(), count: Self.capacity)
    }

    deinit {
        handset_close(descriptor)
        unsafe entries.deallocate()
        unsafe ready.deallocate()
    }

    /// Has the kernel watch sockets for this set, on behalf of another thread.
    public func makeWatcher() throws(RealtimeError) -> SocketWatcher { try SocketWatcher(set: descriptor) }

    /// Puts a socket, which stays where it is, into a slot whose place is free, and has the kernel watch it. For the thread that
    /// makes the set.
    public mutating func add(_ socket: UnsafeMutablePointer<UDPSocket>, at slot: Int) throws(RealtimeError) {
        unsafe try SocketWatcher.watch(socket.pointee, for: descriptor, slot: slot)
        unsafe insert(socket, at: slot)
    }

    /// Puts a socket, which stays where it is, into a slot whose place is free. A ``SocketWatcher`` watches it already.
    @_noAllocation @_noLocks
    public mutating func insert(_ socket: UnsafeMutablePointer<UDPSocket>, at slot: Int) {
        guard slot >= 0 else { return }
        let place = Self.place(of: slot)
        unsafe entries[place] = Entry(socket: socket, slot: slot)
        end = max(end, place + 1)
        count += 1
    }

    /// Takes the socket out of a slot; nil if there is none.
    @_noAllocation @_noLocks
    public mutating func remove(at slot: Int) -> UnsafeMutablePointer<UDPSocket>? {
        guard let socket = unsafe socket(in: slot) else { return nil }
        unsafe entries[Self.place(of: slot)] = nil
        count -= 1
        ignore(descriptor, unsafe socket.pointee.descriptor)
        return unsafe socket
    }

    /// Takes out one of the sockets that are left; nil if there is none.
    @_noAllocation @_noLocks
    public mutating func removeNext() -> UnsafeMutablePointer<UDPSocket>? {
        while end > 0 {
            end -= 1
            if let entry = unsafe entries[end] { return unsafe remove(at: entry.slot) }
        }
        return nil
    }

    @_noAllocation @_noLocks
    private func socket(in slot: Int) -> UnsafeMutablePointer<UDPSocket>? {
        guard slot >= 0, let entry = unsafe entries[Self.place(of: slot)], entry.slot == slot else { return nil }
        return unsafe entry.socket
    }

    /// Finds all sockets that have datagrams, without waiting.
    ///
    /// If a set has only one socket, that is always returned: reading it costs no more than asking.
    /// - Returns: How many; their slots are returned by ``readySlot(_:)``.
    @_noAllocation @_noLocks
    public mutating func findReady() -> Int {
        guard count > 1 else {
            for place in 0..<end {
                guard let entry = unsafe entries[place] else { continue }
                unsafe ready.pointee.token = UInt64(entry.slot)
                return 1
            }
            return 0
        }
        return max(0, Int(unsafe whichAreReady(descriptor, ready, Int32(Self.capacity))))
    }

    /// The slot of the socket that ``findReady()`` found at `index`.
    @_noAllocation @_noLocks
    public func readySlot(_ index: Int) -> Int { Int(truncatingIfNeeded: unsafe ready[index].token) }

    /// Copies the result of ``findReady()`` at `index` to `newIndex`, which is not above it: to gather sockets that may
    /// have more.
    @_noAllocation @_noLocks
    public mutating func keepReady(_ index: Int, at newIndex: Int) { unsafe ready[newIndex] = ready[index] }

    /// Replaces what `batch` holds with at most `limit` datagrams that wait at the socket in `slot`; see
    /// ``UDPSocket/receive(into:slot:limit:)``.
    @_noAllocation @_noLocks
    public func receive(from slot: Int, into batch: inout DatagramBatch, limit: Int) -> Int32 {
        guard let socket = unsafe socket(in: slot) else {
            batch.clear()
            return 0
        }
        return unsafe socket.pointee.receive(into: &batch, slot: slot, limit: limit)
    }

    /// Sends each datagram of `batch` through the socket that it is marked for, and empties it.
    ///
    /// - Returns: How many were not taken, by the kernel or for want of their socket; they are gone.
    @_noAllocation @_noLocks
    public func send(_ batch: inout DatagramBatch) -> Int {
        var dropped = 0
        var start = 0
        while start < batch.count {
            let slot = batch.socket(start)
            var next = start + 1
            while next < batch.count, batch.socket(next) == slot { next += 1 }
            if let socket = unsafe socket(in: slot) {
                dropped += unsafe socket.pointee.send(batch, start..<next)
            } else {
                dropped += next - start
            }
            start = next
        }
        batch.clear()
        return dropped
    }
}

// epoll_ctl(2): the thread's own set.
@_semantics("no_performance_analysis") @inline(__always)
private func ignore(_ set: Int32, _ socket: Int32) { _ = handset_set_remove(set, socket) }

// epoll_wait(2) that does not wait.
@_semantics("no_performance_analysis") @inline(__always)
private func whichAreReady(_ set: Int32, _ ready: UnsafeMutablePointer<handset_ready>, _ capacity: Int32) -> Int32 {
    unsafe handset_set_ready(set, ready, capacity)
}

/// Has the kernel watch sockets for a ``SocketSet``, on another thread than the set's, because that thread cannot
/// report why it fails.
///
/// A socket leaves by ``SocketSet/remove(at:)``, or by itself when it is closed.
public struct SocketWatcher: ~Copyable, Sendable {
    // A separate descriptor: the set's thread may close the set at any time.
    private let set: Int32

    /// Takes a descriptor of a set, which stays its owner's.
    init(set: Int32) throws(RealtimeError) {
        self.set = handset_duplicate(set)
        if self.set < 0 { throw RealtimeError(doing: "sharing a set of sockets (epoll)", errno: -self.set) }
    }

    deinit { handset_close(set) }

    /// Watches a socket as that of a slot, which is to be put there with ``SocketSet/insert(_:at:)`` next.
    public func watch(_ socket: borrowing UDPSocket, slot: Int) throws(RealtimeError) {
        try Self.watch(socket, for: set, slot: slot)
    }

    static func watch(_ socket: borrowing UDPSocket, for set: Int32, slot: Int) throws(RealtimeError) {
        let result = handset_set_watch(set, socket.descriptor, UInt64(slot), false, true)
        guard result == 0 else {
            throw RealtimeError(doing: "watching UDP socket \(socket.localAddress) (epoll)", errno: -result)
        }
    }
}
