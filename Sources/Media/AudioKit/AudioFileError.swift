/// An audio file could not be read or written.
///
/// Match on `code`; print the error itself. The message says what was tried with which file, what was found or what the
/// system said, and what to try.
public struct AudioFileError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of failure. Later versions may add kinds.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// There is no such file, or no such folder to create it in.
        public static let notFound = Code(name: "notFound")
        /// The file is there and could not be opened or read.
        public static let unreadable = Code(name: "unreadable")
        /// The file is not of a kind that can be played.
        public static let notAudio = Code(name: "notAudio")
        /// The file is of a known kind, in a form that cannot be played.
        public static let unsupported = Code(name: "unsupported")
        /// The file begins well and is damaged further on.
        public static let damaged = Code(name: "damaged")
        /// The recording could not be created, or not be written for a reason other than space.
        public static let unwritable = Code(name: "unwritable")
        /// The recording would overwrite a file that is being played or recorded.
        public static let inUse = Code(name: "inUse")
        /// Its disk does not answer, or does not take sound as fast as it comes.
        public static let stalled = Code(name: "stalled")
        /// There is no space, or the file has reached the largest size allowed.
        public static let full = Code(name: "full")
    }

    /// What the file was being used for.
    public enum Purpose: Sendable {
        /// It was being read.
        case play
        /// It was being written.
        case record
    }

    /// What kind of failure it is.
    public let code: Code
    /// The file, as it was named.
    public let path: String
    /// What the file was being used for.
    public let purpose: Purpose
    /// What was found, or what the system said.
    public let reason: String
    /// `errno`, where the system failed.
    public let errno: Int32?

    init(_ code: Code, _ purpose: Purpose, path: String, reason: String, errno: Int32? = nil) {
        self.code = code
        self.purpose = purpose
        self.path = path
        self.reason = reason
        self.errno = errno
    }

    /// A recording whose sound cannot be encoded.
    package init(unencodable path: String, reason: String) {
        self.init(.unwritable, .record, path: path, reason: reason)
    }

    /// A file whose disk does not answer, or keeps up with too little.
    package init(stalled path: String, _ purpose: Purpose, reason: String) {
        self.init(.stalled, purpose, path: path, reason: reason)
    }

    /// A recording that may not take the place of what there is.
    package init(taken path: String) {
        self.init(.inUse, .record, path: path, reason: "there is such a file, or what is left of one")
    }

    /// The whole message.
    public var description: String {
        let task = purpose == .play ? "cannot play" : "cannot record to"
        let number = errno.map { " (\($0))" } ?? ""
        return "\(task) \"\(path)\": \(reason)\(number). \(hint)"
    }

    private var hint: String {
        switch code {
        case .notFound: "Check the path; it is taken from the working directory unless it begins with a slash."
        case .unreadable: "Check that it is a file and that this user may read it."
        case .notAudio, .unsupported, .damaged: "`sox IN -b 16 OUT.wav` makes a file that can be played."
        case .unwritable: "Check that this user may write there; a file that exists must be this user's own."
        case .inUse: "Record to another file; nothing in this one has changed."
        case .stalled: "Check its disk or network mount (`dmesg`, `mount`), or use another one; the call continues."
        case .full: "What was recorded before is intact; free some space or record elsewhere."
        default: "See the reason above."
        }
    }
}
