/// Finds what someone may have meant by a name that is not known.
public enum NearestName {
    /// The candidate that the fewest edits turn `name` into; `nil` if even that one is too different to be a typing
    /// error.
    public static func find(_ name: String, among candidates: [String]) -> String? {
        let written = Array(normalised(name).utf8)
        let allowed = max(1, written.count / 3)
        return
            candidates
            .map { (name: $0, edits: distance(written, Array(normalised($0).utf8))) }
            .filter { $0.edits <= allowed }
            .min { $0.edits < $1.edits }?
            .name
    }

    /// `Max-Delay` and `max_delay` are the same slip away from nothing.
    private static func normalised(_ name: String) -> String {
        String(name.lowercased().map { $0 == "-" ? "_" : $0 })
    }

    /// Edit distance with neighbours swapped counting once (optimal string alignment).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var before: [Int] = []
        var previous = Array(0...right.count)
        for row in left.indices {
            var current = [row + 1]
            for column in right.indices {
                let same = left[row] == right[column]
                var best = min(previous[column] + (same ? 0 : 1), previous[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    best = min(best, before[column - 1] + 1)
                }
                current.append(best)
            }
            before = previous
            previous = current
        }
        return previous[right.count]
    }
}
