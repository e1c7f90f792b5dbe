internal import Core
internal import Cryptography

/// A request of Twilio to a bot's server about a call: asks for instructions, or reports the call's status.
public struct TwilioWebhook: Equatable, Sendable {
    /// An account's name of Twilio's form.
    public static let usualAccount = "AC" + String(repeating: "0", count: 32)

    /// A call's status, in Twilio's terms.
    public enum Status: String, CaseIterable, Hashable, Sendable {
        case queued
        case initiated
        case ringing
        case inProgress = "in-progress"
        case completed
        case busy
        case failed
        case noAnswer = "no-answer"
        case canceled
    }

    /// The call.
    public var call: WireCall
    /// The call's status.
    public var status: Status
    /// Further fields, such as `CallDuration`, `StreamSid` or `Digits`.
    public var more: [FormFields.Field]

    /// Makes one.
    public init(_ call: WireCall, _ status: Status, more: [FormFields.Field] = []) {
        self.call = call
        self.status = status
        self.more = more
    }

    /// The fields of the request.
    public var form: FormFields {
        FormFields(
            [
                FormFields.Field("CallSid", call.call), FormFields.Field("AccountSid", call.account),
                FormFields.Field("From", call.from), FormFields.Field("To", call.to),
                FormFields.Field("Caller", call.from), FormFields.Field("Called", call.to),
                FormFields.Field("CallStatus", status.rawValue), FormFields.Field("ApiVersion", "2010-04-01"),
                FormFields.Field("Direction", direction),
            ] + more)
    }

    private var direction: String {
        switch call.direction {
        case .incoming: "inbound"
        case .outgoing: "outbound-api"
        case .dialled: "outbound-dial"
        }
    }

    /// The request, signed if there is a token.
    ///
    /// - Returns: `nil` if the system's OpenSSL refuses HMAC-SHA1, as its policy may.
    public func request(to webhook: Webhook, token: String?) -> Request? { Request(form, to: webhook, token: token) }

    /// A request that is ready to be sent.
    public struct Request: Equatable, Sendable {
        /// The target and the method.
        public let webhook: Webhook
        /// The path and the query, which includes the fields if there is no body.
        public let target: String
        /// The value of `Content-Type`, if there is a body.
        public let contentType: String?
        /// The body.
        public let body: [UInt8]
        /// The value of `X-Twilio-Signature`.
        public let signature: String?
        /// The value of `traceparent` (W3C Trace Context); nil if calls are not traced.
        public var trace: String?
        /// Names the request to a server that ignores repeated ones; nil if it has no name.
        public var id: String?
    }
}

extension TwilioWebhook.Request {
    /// A request with this form, signed if there is a token.
    ///
    /// - Returns: `nil` if the system's OpenSSL refuses HMAC-SHA1, as its policy may.
    public init?(_ form: FormFields, to webhook: Webhook, token: String?) {
        let isInURL = webhook.method == .get
        let query = isInURL ? String(decoding: form.body, as: UTF8.self) : ""
        let separator = query.isEmpty ? "" : webhook.address.target.contains("?") ? "&" : "?"
        let url = webhook.address.text + separator + query
        var signature: String?
        if let token {
            signature = TwilioSignature.text(of: url, isInURL ? FormFields() : form, token: token)
            guard signature != nil else { return nil }
        }
        self.init(
            webhook: webhook, target: webhook.address.target + separator + query,
            contentType: isInURL ? nil : "application/x-www-form-urlencoded", body: isInURL ? [] : form.body,
            signature: signature)
    }
}

/// The signature by which a bot's server knows Twilio's requests, and Twilio's WebSockets.
///
/// Source: Twilio's page "Security", "Validating Requests are coming from Twilio".
public enum TwilioSignature {
    /// The value of `X-Twilio-Signature`.
    ///
    /// - Parameters:
    ///   - url: The whole URL as it is asked for, with its query. For a WebSocket that of the handshake, with `wss`.
    ///   - form: The fields of the body; none if there is no form in it.
    ///   - token: The account's token.
    /// - Returns: `nil` if the system's OpenSSL refuses HMAC-SHA1, as its policy may.
    public static func text(of url: String, _ form: FormFields = FormFields(), token: String) -> String? {
        // By name and then by value, each by its bytes; what comes twice counts once.
        let fields = Set(form.fields).sorted {
            $0.name == $1.name
                ? $0.value.utf8.lexicographicallyPrecedes($1.value.utf8)
                : $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
        }
        let signed = fields.reduce(into: Array(url.utf8)) {
            $0 += $1.name.utf8
            $0 += $1.value.utf8
        }
        let code = Digest.hmacSHA1(Array(token.utf8), signed)
        return code.isEmpty ? nil : Base64.text(code)
    }
}
