public import AudioKit

/// A call's media could not be started.
public struct MediaStartError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, and what to try.
    public let description: String
    /// The file that cannot be used, if that was the reason.
    public let file: AudioFileError?
    /// Other calls have all that there is; there is room again once one ends.
    public let isFull: Bool

    /// Makes an error.
    package init(_ description: String, file: AudioFileError? = nil, isFull: Bool = false) {
        self.description = description
        self.file = file
        self.isFull = isFull
    }
}
