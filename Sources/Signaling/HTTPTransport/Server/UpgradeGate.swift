internal import NIOCore
internal import NIOHTTP1

/// Checks the first request of a connection: an upgrade to anything except a WebSocket that the service opens is
/// treated as an ordinary request.
///
/// NIO's upgrade handler drops a request whose upgrade it declines, so that it would stay unanswered: a request of a
/// foreign page, or of a client that offers HTTP/2.
final class UpgradeGate: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let service: any ConnectionService

    init(_ service: any ConnectionService) { self.service = service }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        if head.headers.contains(name: "Upgrade"), !isWanted(head, context.channel) {
            head.headers.remove(name: "Upgrade")
            // What follows such a request is not read as HTTP any more.
            head.headers.replaceOrAdd(name: "Connection", value: "close")
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    private func isWanted(_ head: HTTPRequestHead, _ channel: any Channel) -> Bool {
        head.method == .GET && head.headers[canonicalForm: "Upgrade"].contains { $0.lowercased() == "websocket" }
            && head.headers["Sec-WebSocket-Version"] == ["13"] && head.headers["Sec-WebSocket-Key"].count == 1
            && service.opensWebSocket(head, on: channel)
    }
}
