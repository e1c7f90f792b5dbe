/// A dictionary in parts, each of which grows by itself.
///
/// A dictionary that grows moves all that is in it at once: with 50,000 invites everybody waits 25 ms for that. The parts
/// grow one after the other, and each moves little.
struct PartedDictionary<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// A power of two.
    private static var partCount: Int { 128 }
    private var parts = [[Key: Value]](repeating: [:], count: Self.partCount)
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// The keys, in no order.
    var keys: [Key] { parts.flatMap(\.keys) }
    /// The values, in no order.
    var values: [Value] { parts.flatMap(\.values) }

    subscript(key: Key) -> Value? {
        get { parts[Self.part(of: key)][key] }
        set {
            let part = Self.part(of: key)
            let before = parts[part].count
            parts[part][key] = newValue
            count += parts[part].count - before
        }
    }

    private static func part(of key: Key) -> Int { key.hashValue & (partCount - 1) }
}

extension PartedDictionary: Sequence {
    func makeIterator() -> FlattenSequence<[[Key: Value]]>.Iterator { parts.joined().makeIterator() }
}

extension PartedDictionary: Equatable where Value: Equatable {}
