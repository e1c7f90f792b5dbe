public import AudioKit

/// A call's media could not be started.
public struct MediaStartError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, and what to try.
    public let description: String
    /// The file that cannot be used, if that was the reason.
    public let file: AudioFileError?

    /// Makes an error.
    package init(_ description: String, file: AudioFileError? = nil) {
        self.description = description
        self.file = file
    }
}
