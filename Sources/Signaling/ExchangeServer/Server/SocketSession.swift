import Core
import ExchangeCore
import HTTPTransport
import NIOCore
import SignalWire

/// A device's WebSocket, as the exchange sees it.
final class SocketSession {
    private let hub: ExchangeHub
    private let share: SendBufferShare?
    /// Nil before the socket is open and after it has ended, so that neither holds the other for ever.
    private var socket: WebSocket?
    private var connection: ConnectionID?
    private var isAdmitted = false

    private init(_ hub: ExchangeHub, _ share: SendBufferShare?) {
        self.hub = hub
        self.share = share
    }

    /// Frames of any kind that a client may send: whole messages are counted elsewhere, but pings and pieces of messages
    /// cost work as well.
    private static let frameRate = TokenBucket.Rate(burst: 2_000, perSecond: 500)

    /// The rules of all sockets of an exchange.
    static func settings(keepalive: TimeAmount) -> WebSocket.Settings {
        WebSocket.Settings(
            .server, messageBytes: SignalLimits.messageBytes, keepalive: keepalive, frameRate: frameRate)
    }

    /// Makes the WebSocket of a connection. The hub knows it from when it is open until it ends.
    ///
    /// - Parameter share: What waits for its client.
    static func makeWebSocket(
        _ settings: WebSocket.Settings, hub: ExchangeHub, meter: InboundMeter? = nil, share: SendBufferShare? = nil
    ) -> WebSocket {
        let session = SocketSession(hub, share)
        return WebSocket(settings, meter: meter) { session.handle($0) }
    }

    private func handle(_ event: WebSocket.Event) {
        switch event {
        case .opened(let socket):
            self.socket = socket
            connection = hub.add(self)
        case .text(let bytes): if let connection { hub.receive(bytes, from: connection) }
        case .binary: close(.policy("messages are text"))
        case .pong, .lifeSign: break
        case .refused(.tooLong):
            hub.countBadFrame()
            socket?.close(1009, "before session.start messages have at most \(SignalLimits.sessionStartBytes) bytes")
        case .refused(.crowded):
            let clients = isAdmitted ? "whose messages are not complete" : "that have not logged in"
            socket?.close(1013, "too many clients \(clients); connect again later")
        case .fault: hub.countBadFrame()
        case .silent: hub.countDeadLink()
        case .closed, .failed:
            socket = nil
            if let connection { hub.remove(connection) }
            connection = nil
        }
    }

    /// A session has started on the connection: from now on its user's limits apply, instead of those of strangers.
    func admit(_ payer: Payer) {
        share?.payer = payer
        isAdmitted = true
        socket?.admit()
    }

    /// Sends one text message; a closing or closed connection drops it.
    func send(_ message: [UInt8]) { socket?.send(message) }

    /// Begins the closing handshake.
    func close(_ reason: CloseReason) { socket?.close(reason.code, reason.text) }

    /// Stops reading until ``resume()``, because the client has sent more than its user's turns allow for. What it
    /// sends meanwhile waits in the kernel, and then with the client.
    func pause() { socket?.pause() }

    /// Reads on.
    func resume() { socket?.resume() }
}
