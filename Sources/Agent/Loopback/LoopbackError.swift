internal import AudioDevices
internal import Files

/// A measurement could not be made, or could not continue.
public struct LoopbackError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of failure. Later versions may add kinds.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// The card could not be opened, or is unusable.
        public static let cardUnusable = Code(name: "cardUnusable")
        /// The card went away during the measurement.
        public static let cardLost = Code(name: "cardLost")
        /// The call and the measurement want the same card.
        public static let cardsNotApart = Code(name: "cardsNotApart")
        /// A file could not be written.
        public static let fileNotWritten = Code(name: "fileNotWritten")
    }

    /// What kind of failure it is.
    public let code: Code
    /// What was being done, what went wrong, and what to try.
    public let description: String

    /// A failure with the whole of its message.
    public init(_ code: Code, _ description: String) { (self.code, self.description) = (code, description) }

    init(_ error: AudioDeviceError) {
        code = .cardUnusable
        description = "\(error)"
    }

    init(_ code: Code, _ configuration: AudioDeviceConfiguration, _ errno: Int32) {
        self.code = code
        let names = Set([configuration.playback, configuration.capture].compactMap(\.self)).sorted()
        let cards = names.map { "\"\($0)\"" }.joined(separator: " and ")
        let message = SystemError(errno)
        description =
            code == .cardLost
            ? "the sound card went away while it was measured: \(cards): \(message) (\(errno)). Plug it in again, and look "
                + "at its cable and the power of its port; `handset loopback soak` continues when it is back."
            : "cannot measure the sound card \(cards): \(message) (\(errno)). `handset devices --test` shows more."
    }
}
