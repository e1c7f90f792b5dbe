import Core
import Cryptography
import Enrollment
import HTTPTransport
import NIOHTTP1
import SignalWire

/// The page of an exchange that is its own authority: its root certificate, and how to trust it.
struct RootPage {
    /// The page.
    static let path = "/authority"
    /// The certificate.
    static let certificatePath = "/authority/root.pem"

    private let root: [UInt8]

    /// - Parameter root: In PEM form.
    init(_ root: [UInt8]) { self.root = root }

    /// The answer to a request; `nil` if it requests another page.
    func answer(_ request: RESTRequest) -> HTTPAnswer? {
        guard request.method == .GET || request.method == .HEAD else { return nil }
        switch request.path {
        case Self.path:
            var answer = HTTPAnswer(status: .ok, headers: Self.headers, body: Array(text.utf8))
            answer.contentType = "text/html; charset=utf-8"
            return answer
        case Self.certificatePath:
            var answer = HTTPAnswer(status: .ok, headers: Self.headers, body: root)
            answer.contentType = "application/x-pem-file"
            answer.headers.add(name: "Content-Disposition", value: "attachment; filename=\"handset-root.pem\"")
            return answer
        default: return nil
        }
    }

    private static let headers: HTTPHeaders = [
        "Content-Security-Policy":
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
            + "frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    ]

    private var text: String {
        let digest = ServerTLS.authority(ofChain: root).map { Digest.sha256($0) } ?? []
        let fingerprint = AuthorityFingerprint(digest: digest)?.text ?? ""
        let hex = Hexadecimal.pairs(digest)
        return """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><title>Trust this exchange</title>
            <meta name="viewport" content="width=device-width">
            <style>body{font:16px/1.5 sans-serif;max-width:42em;margin:2em auto;padding:0 1em}code{overflow-wrap:anywhere}</style>
            </head><body>
            <h1>Trust this exchange</h1>
            <p>This exchange signs its certificate itself. Trust its authority once, and browsers stop warning.</p>
            <ol>
            <li>Compare the fingerprint with what the exchange logs when it starts. If it differs, the connection between
            you and the exchange is intercepted: stop here.<br><code>\(fingerprint)</code><br>SHA-256: <code>\(hex)</code></li>
            <li><a href="\(Self.certificatePath)">Save the root certificate.</a></li>
            <li>Firefox: Settings, Privacy &amp; Security, View Certificates, Authorities, Import; tick "identify websites".
            Chromium: Settings, Privacy and security, Security, Manage certificates, Authorities, Import.
            Debian: copy it to <code>/usr/local/share/ca-certificates/handset.crt</code> and run
            <code>update-ca-certificates</code>. macOS: open it, and set it to "Always Trust" in Keychain Access.
            Windows: <code>certutil -addstore Root handset-root.pem</code>.</li>
            <li>Open <a href="/">the phone</a>.</li>
            </ol>
            </body></html>

            """
    }
}
