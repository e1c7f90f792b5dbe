internal import Glibc

/// A file through which a program and this process hand something over, readable only by its owner. It ends with its value.
///
/// It is in the folder that TMPDIR names, or in /tmp.
public struct TemporaryFile: ~Copyable, Sendable {
    /// Its path.
    public let path: String
    private let file: OpenFile

    /// Names that are tried.
    private static let mostNames = 100

    /// Makes an empty file.
    ///
    /// - Parameters:
    ///   - purpose: The beginning of its name.
    ///   - ending: The end of its name, such as `.wav`.
    public init(_ purpose: String, ending: String = "") throws(SystemError) {
        let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
        var tries = 0
        while true {
            let name = "\(folder)/\(purpose)-\(String(UInt64.random(in: 0 ... .max), radix: 36))\(ending)"
            tries += 1
            do throws(SystemError) {
                // No other user's file or link is opened.
                file = try OpenFile(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
                path = name
                return
            } catch {
                guard error.code == EEXIST, tries < Self.mostNames else { throw error }
            }
        }
    }

    deinit { _ = unsafe unlink(path) }

    /// Replaces what is at its beginning.
    public func write(_ bytes: [UInt8]) throws(SystemError) {
        if let error = file.write(bytes, at: 0).error { throw error }
    }
}
