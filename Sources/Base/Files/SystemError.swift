internal import Glibc

/// An error number of the system (`errno`), and its text.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The number, such as `ENOENT`.
    public let code: Int32

    /// The error with this number.
    public init(_ code: Int32) { self.code = code }

    /// The error of the call that has just failed on this thread.
    public static var last: SystemError { SystemError(errno) }

    /// The system's text, such as "No such file or directory".
    public var description: String { unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)" }
}
