/// Numbers that are computed once and only read from then on, by any thread. Their memory is never freed, so a real-time thread
/// keeps and copies the table without counting references.
@safe
public struct SharedTable: BitwiseCopyable, @unchecked Sendable {
    // Sendable: no thread writes the memory after `init`.
    let base: UnsafePointer<Float>
    /// How many they are.
    public let count: Int

    /// Takes memory for these numbers, for the rest of the process.
    public init(_ numbers: [Float]) {
        precondition(!numbers.isEmpty, "a table holds at least one number")
        count = numbers.count
        let memory = UnsafeMutablePointer<Float>.allocate(capacity: numbers.count)
        for index in numbers.indices { unsafe (memory + index).initialize(to: numbers[index]) }
        unsafe base = UnsafePointer(memory)
    }

    /// The number at an index below ``count``.
    public subscript(index: Int) -> Float {
        @_noAllocation @_noLocks get {
            precondition(index >= 0 && index < count, "the table has that number")
            return unsafe base[index]
        }
    }
}
