import NIOCore

/// The TCP connections that are open, so that they can be closed at the end. Lives on one event loop.
final class OpenChannels {
    private var channels: [ObjectIdentifier: any Channel] = [:]
    /// Those since the start.
    private(set) var total = 0

    /// Those now.
    var count: Int { channels.count }

    /// Adds a connection, until it is closed.
    func track(_ channel: any Channel) {
        channels[ObjectIdentifier(channel)] = channel
        total += 1
        channel.closeFuture.assumeIsolated().whenComplete { [weak self] _ in
            self?.channels[ObjectIdentifier(channel)] = nil
        }
    }

    func closeAll() {
        for channel in channels.values { channel.close(promise: nil) }
    }

    /// Completes when those that are open now are closed.
    func closed(on loop: any EventLoop) -> EventLoopFuture<Void> {
        EventLoopFuture.andAllComplete(channels.values.map(\.closeFuture), on: loop)
    }
}
