package import NIOCore
package import NIOHTTP1

/// A service whose requests have no bodies, and which opens no WebSocket: one object that answers on all of its connections.
package protocol BodylessService: HTTPService, ConnectionService, OutboundWatch {}

extension BodylessService {
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
