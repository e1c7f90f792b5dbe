// WebPhone: the page that the exchange shows to browsers, embedded in the program.

/// One file of the page.
public struct WebAsset: Sendable {
    /// Its type, for the `Content-Type` header.
    public let contentType: String
    /// Its contents.
    public let body: [UInt8]
    /// A strong entity tag (RFC 9110 §8.8.3), quotes included: another one whenever the contents are others.
    public let entityTag: String

    /// Makes a file.
    package init(_ contentType: String, _ body: [UInt8]) {
        self.contentType = contentType
        self.body = body
        // FNV-1a, 64 bits: distinguishes versions of one file; it is no protection against an attacker.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in body { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        entityTag = "\"\(String(hash, radix: 16))-\(String(body.count, radix: 16))\""
    }

    /// Whether a client has this version already (RFC 9110 §13.1.2).
    ///
    /// - Parameter conditions: The values of its fields `If-None-Match`.
    public func isKnown(to conditions: [String]) -> Bool {
        conditions.joined(separator: ",").split(separator: ",").contains { part in
            let tag = part.drop { $0 == " " }.prefix { $0 != " " }
            return tag == "*" || tag == entityTag || tag == "W/" + entityTag
        }
    }
}

/// All files of the page, by the paths at which a browser asks for them.
public enum WebPhone {
    /// The file at `path`, which is compared literally: only the names of this table are ever found.
    public static func asset(at path: String) -> WebAsset? { assets[path] }

    /// What a browser is shown where there is nothing.
    public static let notFound = WebAsset(html, PackageResources.not_found_html)

    /// The paths of all files.
    public static var paths: [String] { assets.keys.sorted() }

    private static let html = "text/html; charset=utf-8"
    private static let script = "text/javascript; charset=utf-8"

    private static let assets: [String: WebAsset] = [
        "/": WebAsset(html, PackageResources.index_html),
        "/phone/phone.css": WebAsset("text/css; charset=utf-8", PackageResources.phone_css),
        "/phone/icon.svg": WebAsset("image/svg+xml", PackageResources.icon_svg),
        "/phone/main.js": WebAsset(script, PackageResources.main_js),
        "/phone/signaling.js": WebAsset(script, PackageResources.signaling_js),
        "/phone/backoff.js": WebAsset(script, PackageResources.backoff_js),
        "/phone/login.js": WebAsset(script, PackageResources.login_js),
        "/phone/calls.js": WebAsset(script, PackageResources.calls_js),
        "/phone/peer.js": WebAsset(script, PackageResources.peer_js),
        "/phone/sound.js": WebAsset(script, PackageResources.sound_js),
        "/phone/stats.js": WebAsset(script, PackageResources.stats_js),
        "/phone/plot.js": WebAsset(script, PackageResources.plot_js),
        "/phone/words.js": WebAsset(script, PackageResources.words_js),
        "/phone/elements.js": WebAsset(script, PackageResources.elements_js),
        "/phone/people.js": WebAsset(script, PackageResources.people_js),
        "/phone/stage.js": WebAsset(script, PackageResources.stage_js),
    ]
}
