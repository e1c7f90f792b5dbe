/// The bytes are no SIP message, or one that no element may process.
public struct SIPParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The status of the answer to a request with this fault; `nil` if it was no request, so that it is dropped.
    public let status: Int?
    /// What was expected, as a sentence without a full stop.
    public let message: String
    /// The whole answer, if the request had enough to answer it: a `Via` to send it to, and not the method ACK.
    public let answer: SIPResponse?

    /// A sentence for logs.
    public var description: String { "SIP message: " + message + (status.map { " (\($0))" } ?? "") }
}
