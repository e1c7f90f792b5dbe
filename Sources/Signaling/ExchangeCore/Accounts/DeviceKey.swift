public import Enrollment

/// A key by which a device logs in to an account (contract AUTH-13): the public half.
public struct DeviceKey: Hashable, Sendable {
    /// Keys that one account may have.
    public static let perAccount = 64

    /// The public key.
    public let key: DeviceKeyText
    /// The exchange's unpredictable id of the enrolment, so that a signature is valid only for this exchange and this
    /// key.
    public let enrollment: String

    /// Takes both.
    ///
    /// - Returns: `nil` if the enrolment's name is none of 22 to 64 characters of base64url.
    public init?(key: DeviceKeyText, enrollment: String) {
        guard (22...64).contains(enrollment.utf8.count), enrollment.utf8.allSatisfy(Self.isPlain) else { return nil }
        self.key = key
        self.enrollment = enrollment
    }

    /// Reads what ``text`` writes.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "ed25519", let key = DeviceKeyText(parts[1]) else { return nil }
        self.init(key: key, enrollment: String(parts[2]))
    }

    /// The entry's text in a users file.
    public var text: String { "ed25519.\(key.text).\(enrollment)" }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
