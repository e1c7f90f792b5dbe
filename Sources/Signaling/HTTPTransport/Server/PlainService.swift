internal import Core
package import Logging
package import NIOCore
package import NIOHTTP1

/// A service that opens no WebSocket: one object that answers on all of its connections. Its requests have no bodies unless
/// ``ConnectionService/bodyLimit(of:)`` allows them.
package protocol PlainService: HTTPService, ConnectionService, OutboundWatch {
    /// Logs connections that cannot be accepted.
    var acceptLog: AcceptLog { get }
}

extension PlainService {
    package func failedToAccept(_ error: IOError) { acceptLog.failed(error) }
    package func countShed() {}

    package var outbound: any OutboundWatch { self }
    package func note(_ bytes: Int, of meter: OutboundMeter) {}
    package func forget(_ meter: OutboundMeter) {}
    package func countDropped() {}

    package func bodyLimit(of head: HTTPRequestHead) -> Int { 1 }
    package func abandon(_ request: HTTPRequest.Number) {}

    package func opensWebSocket(_ head: HTTPRequestHead, on channel: any Channel) -> Bool { false }
    package func webSocketHeaders(for head: HTTPRequestHead) -> HTTPHeaders { [:] }

    package func makeWebSocket(_ meter: InboundMeter) -> WebSocket {
        WebSocket(WebSocket.Settings(.server, messageBytes: 1), meter: meter) { _ in }
    }
}

/// Logs connections that cannot be accepted: five at once, and then one every five seconds. On the listener's event loop.
package final class AcceptLog {
    private let logger: Logger
    private let purpose: String
    private var limit = LogLimit(burst: 5, perSecond: 0.2)

    /// - Parameter purpose: What the connections are for, such as "metrics".
    package init(_ logger: Logger, for purpose: String) {
        self.logger = logger
        self.purpose = purpose
    }

    func failed(_ error: IOError) {
        guard let leftOut = limit.admit(at: Instant(NIODeadline.now())) else {
            return
        }
        logger.warning(
            "A connection cannot be accepted",
            metadata: ["for": "\(purpose)", "error": "\(error)", "left_out": "\(leftOut)"])
    }
}
