package import JSON
import Core

/// What a webhook's answer to one push means for it.
package enum PushAnswer: Hashable, Sendable {
    /// The webhook has taken the push over.
    case taken
    /// The service does not know the device any more.
    case gone(String)
    /// The webhook does not take this push, now or later.
    case refused(String)
    /// It may take it later, at the earliest after `wait` if it said so; `isAboutAll`: nor any other before then.
    case failed(String, wait: Duration?, isAboutAll: Bool)

    /// Reads an answer over HTTP.
    ///
    /// 410 is the end of a token everywhere. Other statuses that may mean a wrong address or key must not cost every
    /// device its token, so that they count as that only where the body says it in the words of the service: APNs
    /// `BadDeviceToken`, FCM `UNREGISTERED`.
    ///
    /// - Parameters:
    ///   - wait: What `Retry-After` said.
    ///   - body: The beginning of the answer's body.
    ///   - token: The push token, which a service may repeat, and which no log may show.
    package init(
        _ status: Int, wait: Duration? = nil, body: JSONValue?, shape: PushWebhook.Shape, token: String
    ) {
        let word = Self.word(in: body, shape, but: token)
        let detail = word.map { "\(status) \($0)" } ?? "\(status)"
        switch status {
        case 200..<300: self = .taken
        case 410: self = .gone(detail)
        case 408, 425, 429, 500...599: self = .failed(detail, wait: wait, isAboutAll: status == 503 && wait != nil)
        case 300..<400: self = .refused("\(detail), a redirect; redirects are not followed")
        default:
            let isGone =
                switch (shape, word) {
                case (.apns, "BadDeviceToken"?), (.apns, "DeviceTokenNotForTopic"?), (.fcm, "UNREGISTERED"?): true
                case (.apns, _), (.fcm, _), (.generic, _): false
                }
            self = isGone ? .gone(detail) : .refused(detail)
        }
    }

    /// The service's word for what is wrong, if it looks like one.
    private static func word(in body: JSONValue?, _ shape: PushWebhook.Shape, but token: String) -> String? {
        let word: String? =
            switch shape {
            case .apns: body?["reason"]?.string
            case .fcm: fcmWord(in: body?["error"])
            case .generic: nil
            }
        guard let word, word.utf8.count <= 64, !word.contains(token),
            word.utf8.allSatisfy({ Self.letters.contains($0) })
        else { return nil }
        return word
    }

    private static let letters = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_".utf8)

    private static func fcmWord(in error: JSONValue?) -> String? {
        guard case .array(let details)? = error?["details"] else { return error?["status"]?.string }
        return details.lazy.compactMap { $0["errorCode"]?.string }.first ?? error?["status"]?.string
    }
}
