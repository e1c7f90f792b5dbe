/// Blocks of a fixed size for packets' payloads: allocated once, freed with the owner.
///
/// Blocks have no value until written, and their pages, except the first few, take no memory until touched.
@safe
struct PayloadMemory: ~Copyable, @unchecked Sendable {
    // Not shared: the owner is non-copyable, so it may move between threads.
    private let base: UnsafeMutableRawPointer
    private let blockSize: Int
    private let blocks: Int

    init(blocks: Int, of blockSize: Int) {
        unsafe base = .allocate(byteCount: blocks * blockSize, alignment: 16)
        unsafe base.initializeMemory(as: UInt8.self, repeating: 0, count: min(blocks, 4) * blockSize)
        self.blockSize = blockSize
        self.blocks = blocks
    }

    deinit { unsafe base.deallocate() }

    /// Copies `payload`, which fits, to the front of a block. (Copying memory neither allocates nor locks.)
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func write(_ payload: RawSpan, to block: Int) {
        precondition(block >= 0 && block < blocks && payload.byteCount <= blockSize, "the payload fits its block")
        let target = unsafe base + block * blockSize
        unsafe payload.withUnsafeBytes { source in
            if let bytes = source.baseAddress { unsafe target.copyMemory(from: bytes, byteCount: source.count) }
        }
    }

    /// The first `length` bytes of a block, which have been written. (The checker takes making a span for an allocation.)
    @_lifetime(borrow self) @_semantics("no_performance_analysis") @inline(__always)
    func payload(_ block: Int, length: Int) -> RawSpan {
        precondition(block >= 0 && block < blocks && length >= 0 && length <= blockSize, "the payload is in its block")
        let span = unsafe RawSpan(_unsafeStart: base + block * blockSize, byteCount: length)
        return unsafe _overrideLifetime(span, borrowing: self)
    }
}
