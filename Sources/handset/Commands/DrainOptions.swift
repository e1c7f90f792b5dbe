internal import ArgumentParser

/// The options of a command whose calls may continue after SIGTERM.
struct DrainOptions: ParsableArguments {
    /// A day.
    private static let longestSeconds = 86_400

    @Option(
        help: """
            Seconds for which calls continue after SIGTERM, while new ones are refused as busy; with 0 they are hung up at \
            once. A second signal ends the process.
            """)
    var drain = 0

    func validate() throws {
        guard (0...Self.longestSeconds).contains(drain) else {
            throw ValidationError("--drain \(drain) is not a number of seconds from 0 to \(Self.longestSeconds).")
        }
    }
}
