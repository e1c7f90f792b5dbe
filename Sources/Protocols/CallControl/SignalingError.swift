/// A request to a signaling service failed.
///
/// Match on ``code``; print the error itself. It says what was being done and with which thing, what went wrong, and
/// what to try. No part of it holds a secret.
public struct SignalingError: Error, Hashable, Sendable {
    /// What kind of failure this is.
    public let code: Code
    /// What was being done, to be read after "cannot", such as `log in at https://example.org`.
    public let activity: String
    /// What the other side or the system said.
    public let cause: String
    /// What to try, a whole sentence; empty if nothing can be said.
    public let advice: String
    /// The service's trace id of the failed request, for its operator.
    public let traceID: String?

    /// Makes an error.
    public init(
        _ code: Code, activity: String, cause: String, advice: String = "", traceID: String? = nil
    ) {
        self.code = code
        self.activity = activity
        self.cause = cause
        self.advice = advice
        self.traceID = traceID
    }
}

extension SignalingError: CustomStringConvertible {
    /// The whole story in one line.
    public var description: String {
        // The service may have named it in its own words.
        let trace = traceID.map { cause.contains($0) ? "" : " (Trace-Id \($0))" } ?? ""
        // A cause that comes with advice of its own is whole sentences.
        let stop = trace.isEmpty && cause.hasSuffix(".") ? "" : "."
        return "cannot \(activity): \(cause)\(trace)\(stop)" + (advice.isEmpty ? "" : " \(advice)")
    }
}

extension SignalingError {
    /// A kind of failure. The list may grow.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The stable name.
        public let rawValue: String
        /// Makes a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The stable name.
        public var description: String { rawValue }
    }
}

extension SignalingError.Code {
    // Reaching the service.

    /// Nothing answers at the address.
    public static let serverUnreachable = Self(rawValue: "serverUnreachable")
    /// The server's certificate could not be verified.
    public static let certificateNotTrusted = Self(rawValue: "certificateNotTrusted")
    /// The address is not on this machine, and the connection would be without TLS.
    public static let plainTextRefused = Self(rawValue: "plainTextRefused")
    /// A setting cannot be used: an address that is none, a file that cannot be read.
    public static let badConfiguration = Self(rawValue: "badConfiguration")
    /// The other side does not speak this protocol.
    public static let notAnExchange = Self(rawValue: "notAnExchange")
    /// No answer in time.
    public static let timedOut = Self(rawValue: "timedOut")
    /// The server failed, or is overloaded.
    public static let serverError = Self(rawValue: "serverError")
    /// The connection is down or was closed before the answer came.
    public static let disconnected = Self(rawValue: "disconnected")

    // Who we are.

    /// Not logged in.
    public static let notAuthenticated = Self(rawValue: "notAuthenticated")
    /// The password, media token or app key was refused.
    public static let loginRefused = Self(rawValue: "loginRefused")
    /// The access token has expired.
    public static let tokenExpired = Self(rawValue: "tokenExpired")
    /// The access token is not one of the service's.
    public static let tokenRejected = Self(rawValue: "tokenRejected")
    /// This account may not do that.
    public static let notAllowed = Self(rawValue: "notAllowed")
    /// The device has not registered.
    public static let notRegistered = Self(rawValue: "notRegistered")

    // Invites, calls, rooms.

    /// No such user.
    public static let unknownUser = Self(rawValue: "unknownUser")
    /// No such invite.
    public static let unknownInvite = Self(rawValue: "unknownInvite")
    /// No such room.
    public static let unknownRoom = Self(rawValue: "unknownRoom")
    /// No such call.
    public static let unknownCall = Self(rawValue: "unknownCall")
    /// Another device has answered or declined.
    public static let alreadyHandled = Self(rawValue: "alreadyHandled")
    /// The invite has ended.
    public static let inviteEnded = Self(rawValue: "inviteEnded")
    /// The invite expired.
    public static let inviteTimedOut = Self(rawValue: "inviteTimedOut")
    /// The inviter took the invite back.
    public static let inviteCancelled = Self(rawValue: "inviteCancelled")
    /// Neither the inviter nor an invitee.
    public static let notYours = Self(rawValue: "notYours")
    /// Larger than the service carries.
    public static let tooLarge = Self(rawValue: "tooLarge")
    /// More than the service, or this device, holds at once.
    public static let tooManyRequests = Self(rawValue: "tooManyRequests")
    /// No device of the user is online.
    public static let noDeviceOnline = Self(rawValue: "noDeviceOnline")

    // Everything else.

    /// The service cannot parse the request, or does not accept a value in it.
    public static let invalidRequest = Self(rawValue: "invalidRequest")
    /// Media could not be set up.
    public static let mediaFailed = Self(rawValue: "mediaFailed")
    /// This program or the service has a fault.
    public static let internalError = Self(rawValue: "internalError")
}
