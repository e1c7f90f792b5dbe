internal import Datagrams
internal import NIOPosix
internal import NetworkAddress
internal import SIP
internal import SIPSignaling

/// Turns a server's name into addresses, the best first (RFC 3263).
enum SIPResolver {
    /// Looks a server up on a thread of its own, because that may take seconds.
    static func targets(of server: SIPServiceConfiguration.Server) async -> [SIPTarget] {
        let address = try? await NIOThreadPool.singleton.runIfActive {
            SocketAddress.lookUp(host: server.host, port: server.usedPort)
        }
        guard let address = address.flatMap({ $0 }) else { return [] }
        return [SIPTarget(transport: server.transport, address: address)]
    }
}
