/// A fixed block of floating point numbers that a thread owns and computes in.
@safe
public struct FloatBuffer: ~Copyable, @unchecked Sendable {
    // Only the owner reaches the memory; it may move with its owner to another thread.
    private let base: UnsafeMutablePointer<Float>
    /// Numbers it holds.
    public let capacity: Int

    /// Takes memory for `capacity` numbers, all zero.
    public init(capacity: Int) {
        precondition(capacity > 0, "a buffer holds at least one number")
        self.capacity = capacity
        unsafe base = .allocate(capacity: capacity)
        unsafe base.initialize(repeating: 0, count: capacity)
    }

    deinit { unsafe base.deallocate() }

    /// The number at an index below ``capacity``.
    public subscript(index: Int) -> Float {
        @_noAllocation @_noLocks get {
            precondition(index >= 0 && index < capacity, "the buffer has that number")
            return unsafe base[index]
        }
        @_noAllocation @_noLocks set {
            precondition(index >= 0 && index < capacity, "the buffer has that number")
            unsafe base[index] = newValue
        }
    }

    /// Multiplies numbers of this buffer by a matrix of a table, and adds a bias to each of the results.
    ///
    /// It takes four inputs at a time. All results are independent, so that the compiler makes vectors of them.
    ///
    /// - Parameters:
    ///   - first: The first of the numbers.
    ///   - inputs: How many they are; a multiple of 4.
    ///   - matrix: Where in the table the matrix begins, `outputs` numbers for each input. The biases follow it.
    ///   - start: Where the results are written; not among the inputs.
    @_noAllocation @_noLocks
    public mutating func multiply(
        from first: Int, inputs: Int, by table: SharedTable, at matrix: Int, outputs: Int, into start: Int
    ) {
        let biases = matrix &+ inputs &* outputs
        precondition(
            first >= 0 && inputs >= 0 && inputs % 4 == 0 && first &+ inputs <= capacity, "the inputs are in the buffer")
        precondition(start >= 0 && outputs >= 0 && start &+ outputs <= capacity, "there is room for the results")
        precondition(start &+ outputs <= first || start >= first &+ inputs, "the results are written beside the inputs")
        precondition(matrix >= 0 && biases &+ outputs <= table.count, "the matrix is in the table")
        let sums = unsafe base + start
        for output in 0..<outputs { unsafe sums[output] = table.base[biases &+ output] }
        var index = 0
        while index < inputs {
            let input = unsafe base + (first &+ index)
            let (x0, x1, x2, x3) = unsafe (input[0], input[1], input[2], input[3])
            let row0 = unsafe table.base + (matrix &+ index &* outputs)
            let row1 = unsafe row0 + outputs
            let row2 = unsafe row1 + outputs
            let row3 = unsafe row2 + outputs
            for output in 0..<outputs {
                let added = unsafe x0 * row0[output] + x1 * row1[output] + (x2 * row2[output] + x3 * row3[output])
                unsafe sums[output] += added
            }
            index &+= 4
        }
    }
}
