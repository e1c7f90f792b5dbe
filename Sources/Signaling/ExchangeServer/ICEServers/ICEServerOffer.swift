import SignalWire
import Core

/// The servers that one client receives.
struct ICEServerOffer: Hashable, Sendable {
    var servers: [ICEServer] = []
    /// How long it is good; `nil` for ever.
    var lifetime: Duration?

    /// - Parameters:
    ///   - user: The client's user; `nil` for a guest, who has no account.
    ///   - guest: What a guest is called by TURN servers.
    init(
        _ configurations: [ICEServerConfiguration], user: UserID?, guest: @autoclosure () -> GuestName,
        at now: WallClock
    ) {
        for configuration in configurations {
            switch (configuration.access, user) {
            case (.open, _):
                servers.append(ICEServer(urls: configuration.urls))
            case (.fixed(let username, let credential), .some):
                servers.append(ICEServer(urls: configuration.urls, username: username, credential: credential))
            case (.fixed, nil):
                // STUN needs no credential.
                let open = configuration.urls.filter { $0.lowercased().hasPrefix("stun") }
                if !open.isEmpty { servers.append(ICEServer(urls: open)) }
            case (.own(let secret), _):
                let (username, password) = secret.credentials(for: user?.text ?? guest().text, at: now)
                servers.append(ICEServer(urls: configuration.urls, username: username, credential: password))
                lifetime = min(lifetime ?? secret.lifetime, secret.lifetime)
            }
        }
    }
}

/// What a guest is called by TURN servers: the name that it gave itself is anything at all.
struct GuestName: Hashable, Sendable {
    let text: String

    /// Another one each time.
    static func guest() -> GuestName {
        GuestName(text: "guest-" + String(UInt32.random(in: 0...(.max)), radix: 16))
    }
}
