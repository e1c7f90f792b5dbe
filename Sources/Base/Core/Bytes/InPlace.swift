import Synchronization

/// A field without content that makes the compiler pass its struct by address.
///
/// Swift 6.3 copies a large `~Copyable` struct for each of its methods and getters that only reads it, if caller and callee are
/// in different modules or the callee is not inlined, and an `InlineArray` in it for each element that is read. It does not
/// if the struct has a field whose address is part of what it is, such as an atomic. So the structs of
/// the media path have one that `scripts/copies` has found to be copied; a struct that contains one of those needs none.
public struct InPlace: ~Copyable, Sendable {
    private let anchor = Atomic<UInt8>(0)

    /// Does nothing.
    @_noAllocation @_noLocks
    public init() {}
}
