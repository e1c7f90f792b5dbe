/// A status request, as Twilio sends it for a stream of `<Connect>` with a `statusCallback`.
///
/// Source: Twilio's page "TwiML Voice: Stream", attribute `statusCallback`.
public struct StreamWebhook: Equatable, Sendable {
    /// An event of the stream.
    public enum Event: Equatable, Sendable {
        /// The bot is connected.
        case started
        /// The stream has ended.
        case stopped
        /// The bot could not be connected, or its connection has failed: why.
        case failed(String)

        /// Twilio's name of the event.
        public var name: String {
            switch self {
            case .started: "stream-started"
            case .stopped: "stream-stopped"
            case .failed: "stream-error"
            }
        }
    }

    /// The call, and the stream's name in it.
    public var call: WireCall
    /// The stream's name from the markup, if it has one.
    public var name: String?
    /// The event.
    public var event: Event
    /// When, in milliseconds since 1970.
    public var unixMilliseconds: Int64

    /// Makes one.
    public init(_ call: WireCall, name: String?, _ event: Event, unixMilliseconds: Int64) {
        self.call = call
        self.name = name
        self.event = event
        self.unixMilliseconds = unixMilliseconds
    }

    /// The fields of the request.
    public var form: FormFields {
        var fields = [
            FormFields.Field("AccountSid", call.account), FormFields.Field("CallSid", call.call),
            FormFields.Field("StreamSid", call.stream), FormFields.Field("StreamEvent", event.name),
            FormFields.Field("Timestamp", Self.text(ofUnixMilliseconds: unixMilliseconds)),
        ]
        if let name { fields.append(FormFields.Field("StreamName", name)) }
        if case .failed(let why) = event { fields.append(FormFields.Field("StreamError", why)) }
        return FormFields(fields)
    }

    /// The request, signed if there is a token.
    ///
    /// - Returns: `nil` if the system's OpenSSL refuses HMAC-SHA1, as its policy may.
    public func request(to webhook: Webhook, token: String?) -> TwilioWebhook.Request? {
        TwilioWebhook.Request(form, to: webhook, token: token)
    }

    /// A time in RFC 3339's form, in UTC: `2024-02-29T12:00:00.250Z`.
    ///
    /// Days are turned into a date as in "chrono-Compatible Low-Level Date Algorithms" (H. Hinnant): years begin in March, so
    /// that a leap day is a year's last.
    static func text(ofUnixMilliseconds time: Int64) -> String {
        let milliseconds = max(0, min(time, 253_402_300_799_999))
        let (days, inDay) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
        let (era, day) = (days + 719_468).quotientAndRemainder(dividingBy: 146_097)
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * year + year / 4 - year / 100)
        let month = (5 * dayOfYear + 2) / 153
        let date = dayOfYear - (153 * month + 2) / 5 + 1
        let calendarMonth = month < 10 ? month + 3 : month - 9
        let calendarYear = year + era * 400 + (calendarMonth <= 2 ? 1 : 0)
        func padded(_ number: Int64, _ digits: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, digits - text.count)) + text
        }
        return "\(padded(calendarYear, 4))-\(padded(calendarMonth, 2))-\(padded(date, 2))"
            + "T\(padded(inDay / 3_600_000, 2)):\(padded(inDay / 60_000 % 60, 2)):\(padded(inDay / 1_000 % 60, 2))"
            + ".\(padded(inDay % 1_000, 3))Z"
    }
}
