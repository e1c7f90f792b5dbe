internal import NIOCore
internal import NIOHTTP1

/// The body of an answer that is sent in parts, such as server-sent events, until one end closes the connection. On the connection's event
/// loop.
///
/// It holds nothing back: its owner sends the next part when the client has taken the last one, so that a client that does not read holds
/// one part.
package final class HTTPStream {
    private let channel: any Channel
    private var isClosed = false
    private var notify: (() -> Void)?

    init(_ channel: any Channel) { self.channel = channel }

    /// Calls `notify` once when the connection is closed, by either end: at once if it is closed already, for a client may go while its
    /// answer is made.
    package func onClose(_ notify: @escaping () -> Void) {
        if isClosed { notify() } else { self.notify = notify }
    }

    /// Sends a part.
    ///
    /// - Parameter taken: Called when the system has all of it; not if the connection is closed before.
    package func send(_ bytes: [UInt8], taken: @escaping () -> Void) {
        let promise = channel.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenSuccess(taken)
        let part = HTTPServerResponsePart.body(.byteBuffer(channel.allocator.buffer(bytes: bytes)))
        channel.writeAndFlush(part, promise: promise)
    }

    /// Closes the connection, with what was sent and not taken.
    package func close() { channel.close(promise: nil) }

    /// The connection is closed.
    func closed() {
        isClosed = true
        let notify = notify
        self.notify = nil
        notify?()
    }
}
