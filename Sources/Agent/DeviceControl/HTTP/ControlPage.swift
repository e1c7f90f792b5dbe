internal import HTTPTransport
internal import NIOHTTP1
internal import WebConsole
internal import WebPhone

/// The page at which people look at the device's calls, for browsers on TCP.
///
/// Its files are public: they are the same for every device, and hold nothing of this one. What the page shows it asks for with the token.
enum ControlPage {
    /// The answer to a request for a file of the page; nil if there is none at its path.
    static func answer(_ head: HTTPRequestHead) -> HTTPAnswer? {
        guard head.method == .GET || head.method == .HEAD, let asset = WebConsole.asset(at: head.uri) else {
            return nil
        }
        var answer = HTTPAnswer(status: .ok, headers: headers, contentType: asset.contentType, body: asset.body)
        answer.cacheControl = "no-cache"  // To be kept, and asked about each time: a new program has a new page.
        answer.headers.add(name: "ETag", value: asset.entityTag)
        if asset.isKnown(to: head.headers["If-None-Match"]) {
            answer.status = .notModified
            answer.body = []
        }
        return answer
    }

    /// Only what came from here runs, and it speaks only to here; nothing inline, no frames, no forms that go anywhere. Sound is what the page
    /// has read with the token.
    private static let headers: HTTPHeaders = [
        "Content-Security-Policy":
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            + "media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "microphone=(), camera=(), geolocation=(), display-capture=(), usb=()",
    ]
}
