/// The method of a request. Methods are compared with case.
public struct SIPMethod: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The method's token.
    public let rawValue: String

    /// Any token is a method.
    public init?(rawValue: String) {
        guard TextScanner.isToken(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    private init(_ name: String) { rawValue = name }

    /// The method's token.
    public var description: String { rawValue }

    /// RFC 3261.
    public static let invite = SIPMethod("INVITE")
    /// RFC 3261.
    public static let ack = SIPMethod("ACK")
    /// RFC 3261.
    public static let bye = SIPMethod("BYE")
    /// RFC 3261.
    public static let cancel = SIPMethod("CANCEL")
    /// RFC 3261.
    public static let register = SIPMethod("REGISTER")
    /// RFC 3261.
    public static let options = SIPMethod("OPTIONS")
    /// RFC 3262.
    public static let prack = SIPMethod("PRACK")
    /// RFC 3311.
    public static let update = SIPMethod("UPDATE")
    /// RFC 6086.
    public static let info = SIPMethod("INFO")
    /// RFC 3515.
    public static let refer = SIPMethod("REFER")
    /// RFC 6665.
    public static let notify = SIPMethod("NOTIFY")
    /// RFC 6665.
    public static let subscribe = SIPMethod("SUBSCRIBE")
    /// RFC 3428.
    public static let message = SIPMethod("MESSAGE")
    /// RFC 3903.
    public static let publish = SIPMethod("PUBLISH")

    /// Methods that some element may serve: a refusal of one of these is a 405, and of any other a 501.
    static let known: Set<SIPMethod> = [
        .invite, .ack, .bye, .cancel, .register, .options, .prack, .update, .info, .refer, .notify, .subscribe,
        .message,
        .publish,
    ]
}
