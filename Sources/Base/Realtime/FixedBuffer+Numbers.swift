// Loops that the compiler makes vectors of: no result depends on another.
extension FixedBuffer where Element == Float {
    /// Multiplies numbers of this buffer by a matrix of a table, and adds a bias to each of the results.
    ///
    /// It takes four inputs at a time.
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

    /// Multiplies all numbers by a factor.
    @_noAllocation @_noLocks
    public mutating func scale(by factor: Float) {
        var index = 0
        while index < capacity {
            unsafe base[index] *= factor
            index &+= 1
        }
    }

    /// Adds as many of another's numbers as there are here, those from `start` on, each multiplied by a factor.
    @_noAllocation @_noLocks
    public mutating func add(_ other: borrowing FloatBuffer, from start: Int, times factor: Float) {
        precondition(start >= 0 && start <= other.capacity - capacity, "the numbers are in the other buffer")
        let source = unsafe other.base + start
        var index = 0
        while index < capacity {
            unsafe base[index] += factor * source[index]
            index &+= 1
        }
    }

    /// Moves all except the first `places` that far to the front; the last ones must then be rewritten.
    @_noAllocation @_noLocks
    public mutating func shift(by places: Int) {
        precondition(places >= 0 && places <= capacity, "no further than the buffer is long")
        var index = places
        while index < capacity {
            unsafe base[index &- places] = base[index]
            index &+= 1
        }
    }
}
