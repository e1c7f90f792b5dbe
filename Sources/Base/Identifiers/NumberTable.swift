/// What belongs to numbers, by patterns. Of several that match, the one with the most digits counts, then the one that gives the
/// number's length, then the first.
public struct NumberTable<Value: Sendable>: Sendable {
    private var entries: [(pattern: NumberPattern, value: Value)] = []

    /// Makes an empty table.
    public init() {}

    /// Whether there is nothing in it.
    public var isEmpty: Bool { entries.isEmpty }

    /// Adds an entry, unless one with that pattern is there.
    ///
    /// - Returns: Whether it was added.
    @discardableResult
    public mutating func add(_ pattern: NumberPattern, _ value: Value) -> Bool {
        guard !entries.contains(where: { $0.pattern == pattern }) else { return false }
        // In the order in which they count.
        let place = entries.firstIndex { $0.pattern.weight < pattern.weight } ?? entries.endIndex
        entries.insert((pattern, value), at: place)
        return true
    }

    /// The value of a number.
    public subscript(number: TelephoneNumber) -> Value? { entries.first { $0.pattern.matches(number) }?.value }
}
