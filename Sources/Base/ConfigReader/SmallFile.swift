internal import Core
internal import Glibc
internal import Files

/// Reading of the small text files that configurations are made of, and of the process environment.
public enum SmallFile {
    /// Why a file could not be read, as text for its user.
    public struct Failure: Error {
        /// What is wrong with the file; never its contents.
        public let message: String
        /// Where, 1-based; 0 if the file as a whole is meant.
        public internal(set) var line = 0
    }

    /// Secret files longer than this are refused.
    static let maximumSecretBytes = 65_536

    /// The secret in a file that holds it and nothing else; a newline at its end does not count.
    public static func secret(path: String) -> Result<Secret, Failure> {
        if let failure = unreadable(path) { return .failure(failure) }
        return bytes(path: path, maximumBytes: maximumSecretBytes).flatMap { bytes in
            var bytes = bytes
            defer { bytes.wipe() }
            guard (try? UTF8Span(validating: bytes.span)) != nil else { return .failure(notText(bytes)) }
            var end = bytes.count
            while let newline = newlines.first(where: { bytes[..<end].suffix($0.count).elementsEqual($0) }) {
                end -= newline.count
            }
            guard end > 0 else {
                return .failure(Failure(message: "it is empty; it must hold the secret and nothing else"))
            }
            return .success(Secret(bytes[..<end]))
        }
    }

    /// Line breaks of Unicode, as UTF-8.
    private static let newlines: [[UInt8]] = [
        [0x0A], [0x0B], [0x0C], [0x0D], [0xC2, 0x85], [0xE2, 0x80, 0xA8], [0xE2, 0x80, 0xA9],
    ]

    /// Whether a text can be the name of an environment variable: letters, digits and _.
    public static func isVariableName(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// The value of an environment variable of this process.
    public static let environmentVariable: @Sendable (String) -> String? = { name in
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// What is wrong with a name of which no environment variable is set, to be read after what gives the name.
    ///
    /// Someone may have put the secret itself there. So only what is written as variables are is shown: capitals with
    /// underscores, or capitals alone.
    public static func unsetVariable(_ name: String) -> String {
        let isTold =
            name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"): true
                case UInt8(ascii: "0")...UInt8(ascii: "9"): name.contains("_")
                default: false
                }
            } && name.first?.isNumber == false
        return isTold
            ? "names the environment variable \(name), which is not set or is empty"
            : "names an environment variable that is not set or is empty"
    }

    /// The text of a file.
    public static func read(path: String, maximumBytes: Int) -> Result<String, Failure> {
        bytes(path: path, maximumBytes: maximumBytes).flatMap { bytes in
            String(validating: bytes, as: UTF8.self).map { .success($0) } ?? .failure(notText(bytes))
        }
    }

    private static func notText(_ bytes: [UInt8]) -> Failure {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let line = lines.firstIndex { String(validating: $0, as: UTF8.self) == nil }.map { $0 + 1 }
        return Failure(message: "it is not UTF-8 text", line: line ?? 0)
    }

    /// The bytes of a file, of which one that is longer than 16 KB leaves copies behind.
    public static func bytes(path: String, maximumBytes: Int) -> Result<[UInt8], Failure> {
        do throws(SystemError) {
            guard let bytes = try OpenFile(path, O_RDONLY | O_NONBLOCK).readAll(maximumBytes: maximumBytes) else {
                return .failure(Failure(message: "it is longer than the \(maximumBytes) bytes allowed"))
            }
            return .success(bytes)
        } catch {
            return .failure(Failure(message: "\(error)"))
        }
    }

    /// Why the file at `path` cannot be read; nil if it is a regular file that can be.
    static func unreadable(_ path: String) -> Failure? {
        do throws(RegularFileError) {
            _ = try RegularFile.open(path, O_RDONLY)
            return nil
        } catch {
            return Failure(message: error.message)
        }
    }
}
