import ExchangeCore
import HTTPTransport
import NIOHTTP1
import SignalWire
import WebPhone

/// The web phone: its files, and what its page needs to log its user in.
struct PageService {
    /// Where the page asks for its application's key.
    static let configurationPath = "/v1/web-config"

    /// The application that the page logs in as.
    let app: RegisteredApp
    private let appSecret: Redacted<String>
    private let guests: [WebConfiguration.Guest]
    /// Origins beside its own that the page may connect to.
    private let otherOrigins: [String]

    /// - Parameter configuration: `nil` comes of one that has no web phone.
    init?(_ configuration: ExchangeConfiguration) {
        guard configuration.showsWebPhone else { return nil }
        // The page reveals the secret to everyone who can open it; a new one each time prevents clients from relying on
        // it.
        appSecret = FreshSecret.make()
        app = RegisteredApp(key: "web-phone", secret: SecretDigest(of: appSecret.secret))
        guests = configuration.guests
        otherOrigins = configuration.webSocketURL.flatMap(Self.origin(of:)).map { [$0] } ?? []
    }

    /// The answer to a request for a file; `nil` if there is none at its path.
    func file(_ request: RESTRequest) -> HTTPAnswer? {
        WebPhone.asset(at: request.path).map { show($0, .ok, to: request) }
    }

    /// The answer to a browser that requests an unknown page; `nil` for a program, which receives JSON.
    func notFound(_ request: RESTRequest) -> HTTPAnswer? {
        guard request.method == .GET || request.method == .HEAD,
            request.headers["Accept"].contains(where: { $0.contains("text/html") })
        else { return nil }
        return show(WebPhone.notFound, .notFound, to: request)
    }

    /// The answer to the page asking who it is.
    func configuration(_ request: RESTRequest) -> HTTPAnswer {
        let configuration = WebConfiguration(appKey: app.key, appSecret: appSecret.secret, guests: guests)
        var answer = HTTPAnswer.success(configuration, trace: request.trace)
        answer.headers.add(name: "Cross-Origin-Resource-Policy", value: "same-origin")
        return answer
    }

    private func show(_ asset: WebAsset, _ status: HTTPResponseStatus, to request: RESTRequest) -> HTTPAnswer {
        var answer = HTTPAnswer(status: status, headers: headers(for: request), body: asset.body)
        answer.contentType = asset.contentType
        guard status == .ok else { return answer }
        answer.cacheControl = "no-cache"  // To be kept, and asked about each time: a new program has a new page.
        answer.headers.add(name: "ETag", value: asset.entityTag)
        if asset.isKnown(to: request.headers["If-None-Match"]) {
            answer.status = .notModified
            answer.body = []
        }
        return answer
    }

    // MARK: - What the page may do

    private func headers(for request: RESTRequest) -> HTTPHeaders {
        [
            "Content-Security-Policy": policy(for: request),
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy":
                "microphone=(self), speaker-selection=(self), camera=(), geolocation=(), display-capture=(), usb=()",
        ]
    }

    /// Only what came from here runs, and it speaks only to here; nothing inline, no frames, no forms that go anywhere.
    private func policy(for request: RESTRequest) -> String {
        // Not every browser counts the WebSocket of one's own origin as 'self'.
        let own = WebOrigin.host(of: request.headers).map { ["ws://\($0)", "wss://\($0)"] } ?? []
        let connect = (["'self'"] + own + otherOrigins).joined(separator: " ")
        return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src \(connect); "
            + "media-src 'self' blob: mediastream:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            + "require-trusted-types-for 'script'"
    }

    /// Scheme and authority of a URL.
    private static func origin(of url: String) -> String? {
        let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1].isEmpty else { return nil }
        let authority = parts[2].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        return WebOrigin.isHost(authority) ? "\(parts[0])//\(authority)" : nil
    }
}
