/// A dictionary that records its changes, so that the code that writes it to disk needs no notifications.
struct ChangeTrackingMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var byKey = PartedDictionary<Key, Value>()
    /// What was there before, for each key that was changed since ``takeChanges()``, in the order of the first change.
    private var changed: [(key: Key, before: Value?)] = []
    private var changedKeys: Set<Key> = []

    var count: Int { byKey.count }
    var keys: [Key] { byKey.keys }
    var values: [Value] { byKey.values }

    subscript(key: Key) -> Value? {
        get { byKey[key] }
        set {
            note(key)
            byKey[key] = newValue
        }
    }

    /// What is written to disk of a value changes, and the value does not.
    mutating func note(_ key: Key) {
        if changedKeys.insert(key).inserted { changed.append((key, byKey[key])) }
    }

    /// All values of which something holds, with their keys.
    func all(where holds: (Value) -> Bool) -> [(key: Key, value: Value)] {
        byKey.filter { holds($0.value) }
    }

    /// At most `count` keys whose values satisfy the predicate.
    func keys(atMost count: Int, where holds: (Value) -> Bool) -> [Key] {
        var keys: [Key] = []
        for (key, value) in byKey where holds(value) {
            guard keys.count < count else { break }
            keys.append(key)
        }
        return keys
    }

    /// Sets a value that is on disk already.
    mutating func restore(_ value: Value, for key: Key) { byKey[key] = value }

    /// What was changed since last asked, with what was there before.
    mutating func takeChanges() -> [(key: Key, before: Value?)] {
        guard !changed.isEmpty else { return [] }
        defer {
            changed = []
            changedKeys = []
        }
        return changed
    }
}
