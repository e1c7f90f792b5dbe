/// Presses keys one after the other, in the order in which a caller's thread gives them.
struct KeyPresses: Sendable {
    private let keys: AsyncStream<Character>.Continuation

    /// - Parameter press: Presses a key; the next one waits for it.
    init(_ press: @escaping @Sendable (Character) async -> Void) {
        // A key takes a fifth of a second, so few ever wait.
        let (given, keys) = AsyncStream.makeStream(of: Character.self, bufferingPolicy: .bufferingOldest(1_024))
        self.keys = keys
        Task { for await key in given { await press(key) } }
    }

    func press(_ key: Character) { keys.yield(key) }

    /// No key follows.
    func finish() { keys.finish() }
}
