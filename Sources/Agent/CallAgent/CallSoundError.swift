/// The sound of a call cannot be changed as asked.
public struct CallSoundError: Error, Sendable, CustomStringConvertible {
    /// What is in the way. Later versions may add kinds.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// The call is not in a state in which this makes sense.
        public static let wrongState = Code(name: "wrongState")
        /// The file cannot be played, or not be recorded to.
        public static let file = Code(name: "file")
        /// The configuration does not provide for it.
        public static let notConfigured = Code(name: "notConfigured")
        /// The device could not do it.
        public static let failed = Code(name: "failed")
    }

    /// What is in the way.
    public let code: Code
    /// Why, and what to do.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    static let noProgram = CallSoundError(
        .notConfigured, "the configuration names no program or bot: set behaviour.attach to exec or bot")
}
