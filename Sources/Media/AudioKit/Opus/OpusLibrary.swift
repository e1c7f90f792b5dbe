internal import COpus

/// The libopus that this process runs with.
public enum OpusLibrary {
    /// Its name and version, such as `libopus 1.3.1`.
    public static var version: String { unsafe String(cString: opus_get_version_string()) }
}

/// libopus refused to make an encoder or a decoder.
public struct OpusError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The object that could not be made: "encoder" or "decoder".
    public let what: String
    /// libopus's error number, always negative: −7 is out of memory, −1 a bad argument.
    public let code: Int

    /// One line for a person.
    public var description: String {
        let reason =
            switch code {
            case -1: "an argument is out of range (channels must be 1 or 2)"
            case -7: "out of memory"
            default: "libopus error \(code)"
            }
        return "cannot make an Opus \(what): \(reason)."
    }
}
