/// What a run of `handset setup` has changed so far, and how to take each of it back.
struct SetupUndo: ~Copyable {
    private var steps: [(name: String, takeBack: () throws -> Void)] = []

    /// Notes a change that was made.
    ///
    /// - Parameter name: What was made, to be read after "removed again:".
    mutating func add(_ name: String, _ takeBack: @escaping () throws -> Void) { steps.append((name, takeBack)) }

    /// Takes everything back, the newest first. A step that fails does not keep the others from it.
    mutating func takeBack(_ progress: ProgressLines) {
        for step in steps.reversed() {
            do {
                try step.takeBack()
                progress.say("Removed again: \(step.name)")
            } catch {
                progress.warn("Not removed: \(step.name): \(error)")
            }
        }
        steps = []
    }

    /// Keeps what was made until now, also after later failures.
    mutating func keep() { steps = [] }
}
