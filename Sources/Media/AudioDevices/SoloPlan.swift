/// Which frames of what is played go to one channel of the card alone; all others go to both.
public struct SoloPlan: Equatable, Sendable {
    /// For the left channel, counted from the first frame of the signal.
    public var left: Range<Int>
    /// For the right channel; behind those for the left one.
    public var right: Range<Int>

    /// Makes a plan; without any ranges all goes to both.
    public init(left: Range<Int> = 0..<0, right: Range<Int> = 0..<0) { (self.left, self.right) = (left, right) }

    /// The target of the frame, and how many frames from it on have the same target, at most `most`.
    @_noAllocation @_noLocks
    func outputs(at frame: Int, most: Int) -> (outputs: CardOutputs, count: Int) {
        if left.contains(frame) { return (.left, min(most, left.upperBound - frame)) }
        if right.contains(frame) { return (.right, min(most, right.upperBound - frame)) }
        let next = frame < left.lowerBound && !left.isEmpty ? left : right
        return (.both, frame < next.lowerBound && !next.isEmpty ? min(most, next.lowerBound - frame) : most)
    }
}
