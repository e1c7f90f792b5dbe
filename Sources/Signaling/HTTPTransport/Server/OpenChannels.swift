package import NIOCore

/// The TCP connections of a server that are open, so that they can be closed at the end. Lives on their event loop.
///
/// If there are as many as there may be, the oldest of a stranger makes room for a new one, so that idle ones keep no client out. A
/// stranger is a client that was not admitted (``admit(_:)``).
package final class OpenChannels {
    private let most: Int
    /// By the order in which they came.
    private var channels: [Int: any Channel] = [:]
    private var admitted: [ObjectIdentifier: Int] = [:]
    /// Those since the start.
    package private(set) var total = 0
    /// All strangers' that came before this one are closed, or are being closed.
    private var oldest = 0

    /// - Parameter most: How many there may be at a time.
    package init(most: Int = .max) { self.most = most }

    /// Those now.
    package var count: Int { channels.count }

    /// Adds a connection, until it is closed.
    ///
    /// - Returns: False if there is no room for it, because all others are of admitted clients.
    @discardableResult
    package func track(_ channel: any Channel) -> Bool {
        if channels.count >= most, !closeOldest() { return false }
        let number = total
        channels[number] = channel
        total += 1
        let id = ObjectIdentifier(channel)
        channel.closeFuture.assumeIsolated().whenComplete { [weak self] _ in
            self?.channels[number] = nil
            self?.admitted[id] = nil
        }
        return true
    }

    /// The client of a connection has shown that it may use the server: its connection makes room for no other.
    package func admit(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        guard admitted[id] == nil else { return }
        admitted[id] = channels.first { $0.value === channel }?.key
    }

    private func closeOldest() -> Bool {
        while oldest < total {
            oldest += 1
            if let channel = channels[oldest - 1], admitted[ObjectIdentifier(channel)] == nil {
                channel.close(promise: nil)
                return true
            }
        }
        return false
    }

    /// Closes them all.
    package func closeAll() {
        for channel in channels.values { channel.close(promise: nil) }
    }

    /// Completes when those that are open now are closed.
    package func closed(on loop: any EventLoop) -> EventLoopFuture<Void> {
        EventLoopFuture.andAllComplete(channels.values.map(\.closeFuture), on: loop)
    }
}
