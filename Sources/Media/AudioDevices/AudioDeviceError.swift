internal import CALSA
internal import Glibc

/// A sound card could not be opened, or has failed.
///
/// Match on `code`; print the error itself. The message says what was tried with which card, what the system said, and
/// what to try.
public struct AudioDeviceError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of failure. Later versions may add kinds.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// There is no card of that name.
        public static let notFound = Code(name: "notFound")
        /// Another program has it.
        public static let busy = Code(name: "busy")
        /// This user may not use it.
        public static let notAllowed = Code(name: "notAllowed")
        /// It has no format or rate that can be used.
        public static let unsupportedFormat = Code(name: "unsupportedFormat")
        /// The card was removed.
        public static let disconnected = Code(name: "disconnected")
        /// Another failure, which the message describes.
        public static let other = Code(name: "other")
    }

    /// What kind of failure it is.
    public let code: Code
    /// The card, as it was named.
    public let device: String
    /// Which way sound was to go.
    public let direction: SoundDirection
    /// The errno that libasound gave.
    public let errno: Int32
    private let step: String?

    /// Describes a failure.
    ///
    /// - Parameters:
    ///   - errno: A positive errno.
    ///   - step: What was being done with the card, such as "setting the rate"; nil for opening it.
    public init(device: String, direction: SoundDirection, errno: Int32, step: String? = nil) {
        self.device = device
        self.direction = direction
        self.errno = errno
        self.step = step
        code =
            switch errno {
            case ENOENT, ENXIO: .notFound
            case EBUSY: .busy
            case EACCES, EPERM: .notAllowed
            case EINVAL: .unsupportedFormat
            case ENODEV: .disconnected
            default: .other
            }
    }

    /// The whole message.
    public var description: String {
        let message = unsafe snd_strerror(-errno).map { unsafe String(cString: $0) } ?? "unknown error"
        let doing = step.map { " (\($0))" } ?? ""
        return "cannot use the sound card \"\(device)\" for \(direction)\(doing): \(message) (\(errno)). \(hint)"
    }

    private var hint: String {
        switch code {
        case .notFound: "`handset devices` lists those that are there."
        case .busy:
            "Another program has it: `fuser -v /dev/snd/*` names it. Or use one that is shared, such as \"default\"."
        case .notAllowed: "Add the user to the group audio."
        case .unsupportedFormat: "Put \"plug:\" before its name, and libasound converts; or choose another."
        case .disconnected: "It is used again once it is back."
        default: "`handset devices --test` shows more."
        }
    }
}
