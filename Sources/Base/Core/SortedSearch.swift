extension RandomAccessCollection {
    /// Where the elements begin that are behind a place in an order: those for which `isBehind` is true, of which none comes before one for
    /// which it is false. The end if there is none.
    ///
    /// - Complexity: Logarithmic.
    @inlinable
    public func sortedIndex(behind isBehind: (Element) throws -> Bool) rethrows -> Index {
        var (low, count) = (startIndex, self.count)
        while count > 0 {
            let half = count / 2
            let middle = index(low, offsetBy: half)
            if try isBehind(self[middle]) {
                count = half
            } else {
                low = index(after: middle)
                count -= half + 1
            }
        }
        return low
    }
}
