internal import NIOCore
internal import NIOPosix

/// Looks up the names of bots' hosts, off the event loop, so that addresses can be judged before anything is sent to them.
enum BotLookup {
    /// The addresses to try, in order.
    static func addresses(of host: String, port: Int, on loop: any EventLoop) -> EventLoopFuture<[SocketAddress]> {
        if let address = try? SocketAddress(ipAddress: host, port: port) {
            return loop.makeSucceededFuture([address])
        }
        if host == "localhost" || host.hasSuffix(".localhost") {
            // Many a bot listens on only one of the two (RFC 6761 §6.3).
            return loop.makeSucceededFuture(
                ["127.0.0.1", "::1"].compactMap { try? SocketAddress(ipAddress: $0, port: port) })
        }
        return NIOThreadPool.singleton.runIfActive(eventLoop: loop) {
            [try SocketAddress.makeAddressResolvingHost(host, port: port)]
        }
    }
}
