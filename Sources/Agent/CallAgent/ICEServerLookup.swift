internal import CallControl
internal import Realtime
internal import ICE
internal import Core

/// Turns the servers that a service or a configuration names into addresses (RFC 7064, RFC 7065).
enum ICEServerLookup {
    /// One URL of a server; nil for what we cannot use.
    static func location(_ url: String) -> ICEServerURL? {
        ICEServerURL(url).flatMap { $0.scheme == .stuns ? nil : $0 }
    }

    /// Resolves all servers. A server without an address, or without required name and password, is left out.
    ///
    /// Names are resolved on a separate thread, because that may take seconds.
    static func addresses(of servers: [CallControl.ICEServer]) async -> [ICE.ICEServer] {
        await Task.detached {
            servers.flatMap { server in
                server.urls.compactMap { url in
                    guard let location = Self.location(url),
                        let address = SocketAddress.lookUp(host: location.host, port: location.port)
                    else { return nil }
                    switch location.scheme {
                    case .stun, .stuns: return ICE.ICEServer(.stun, at: address)
                    case .turn, .turns:
                        guard let username = server.username, let password = server.credential else { return nil }
                        let kind = ICE.ICEServer.Kind.turn(
                            location.transport, username: username, password: password)
                        return ICE.ICEServer(kind, at: address)
                    }
                }
            }
        }.value
    }
}

/// The ICE servers that the newest lookup has found. Lookups may end in another order than they began in.
struct ICEServerList {
    private(set) var newest: [ICE.ICEServer] = []
    private var begunLookups = 0
    private var newestLookup = 0

    /// - Returns: The lookup's number.
    mutating func beginLookup() -> Int {
        begunLookups += 1
        return begunLookups
    }

    /// Takes what a lookup has found, unless one that began later has ended before.
    mutating func endLookup(_ number: Int, found: [ICE.ICEServer]) {
        if number > newestLookup { (newest, newestLookup) = (found, number) }
    }
}
