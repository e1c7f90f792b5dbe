/// The path's effect on the carrier besides delay: a short filter, fitted by least squares.
struct ChannelFilter: Equatable, Sendable {
    /// Taps on each side of the middle.
    static let reach = 8
    private(set) var taps: [Float]

    /// A way that changes the level only.
    init(gain: Float) {
        taps = [Float](repeating: 0, count: 2 * Self.reach + 1)
        taps[Self.reach] = gain
    }

    /// The filter that turns `expected` best into `captured`; nil if the spectrum of `expected` is not rich enough.
    ///
    /// `expected` begins ``reach`` samples before `captured` and ends as many behind it.
    init?(captured: [Float], expected: [Float]) {
        let size = 2 * Self.reach + 1
        precondition(expected.count == captured.count + 2 * Self.reach, "the expected samples surround the captured")
        var matrix = [[Double]](repeating: [Double](repeating: 0, count: size + 1), count: size)
        for row in 0..<size {
            for column in row..<size {
                let sum = Double(dotProduct(expected, row, expected, column, captured.count))
                matrix[row][column] = sum
                matrix[column][row] = sum
            }
            matrix[row][size] = Double(dotProduct(captured, 0, expected, row, captured.count))
        }
        // A small addition to the diagonal prevents arbitrary values in bands without carrier.
        let energy = matrix[Self.reach][Self.reach]
        guard energy > 0 else { return nil }
        for row in 0..<size { matrix[row][row] += energy * 1e-6 }
        guard let solution = Self.solve(&matrix) else { return nil }
        taps = solution.map { Float($0) }
    }

    /// What comes out for `expected`, which begins and ends ``reach`` samples further out.
    func output(for expected: [Float]) -> [Float] {
        var made = [Float](repeating: 0, count: expected.count - 2 * Self.reach)
        for index in made.indices { made[index] = dotProduct(expected, index, taps, 0, taps.count) }
        return made
    }

    /// Gauss's elimination; the matrix is symmetric and positive, so that the diagonal will do as pivots.
    private static func solve(_ matrix: inout [[Double]]) -> [Double]? {
        let size = matrix.count
        for pivot in 0..<size {
            guard matrix[pivot][pivot] > 0 else { return nil }
            for row in pivot + 1..<size {
                let factor = matrix[row][pivot] / matrix[pivot][pivot]
                for column in pivot...size { matrix[row][column] -= factor * matrix[pivot][column] }
            }
        }
        var solution = [Double](repeating: 0, count: size)
        for row in (0..<size).reversed() {
            var sum = matrix[row][size]
            for column in row + 1..<size { sum -= matrix[row][column] * solution[column] }
            solution[row] = sum / matrix[row][row]
        }
        return solution
    }
}
