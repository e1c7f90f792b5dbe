package import NIOCore

/// The TCP connections of a server that are open, so that they can be closed at the end. Lives on their event loop.
package final class OpenChannels {
    private let most: Int
    /// By the order in which they came.
    private var channels: [Int: any Channel] = [:]
    /// Those since the start.
    package private(set) var total = 0
    /// All that came before this one are closed, or are being closed.
    private var oldest = 0

    /// - Parameter most: How many there may be at a time: the oldest makes room for a new one, so that idle ones keep no client out.
    package init(most: Int = .max) { self.most = most }

    /// Those now.
    package var count: Int { channels.count }

    /// Adds a connection, until it is closed.
    package func track(_ channel: any Channel) {
        if channels.count >= most { closeOldest() }
        let number = total
        channels[number] = channel
        total += 1
        channel.closeFuture.assumeIsolated().whenComplete { [weak self] _ in self?.channels[number] = nil }
    }

    private func closeOldest() {
        while oldest < total {
            oldest += 1
            if let channel = channels[oldest - 1] { return channel.close(promise: nil) }
        }
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
