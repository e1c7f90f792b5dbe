internal import CallControl
internal import Datagrams
internal import ICE
internal import NetworkAddress

/// Turns the servers that a service or a configuration names into addresses (RFC 7064, RFC 7065).
enum ICEServerLookup {
    /// One URL of a server; nil for what we cannot use.
    static func location(_ url: String) -> ICEServerURL? {
        ICEServerURL(url).flatMap { $0.scheme == .stuns ? nil : $0 }
    }

    /// Looks all servers up. What has no address, or lacks a name and password that it needs, is left out.
    ///
    /// Names are looked up on a thread of their own, for that may take seconds.
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
