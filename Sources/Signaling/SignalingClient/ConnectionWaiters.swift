internal import CallControl
internal import NIOCore

/// The callers that wait for the connection to be established, or to be closed.
struct ConnectionWaiters {
    private var connecting: [EventLoopPromise<Void>] = []
    private var disconnecting: [EventLoopPromise<Void>] = []

    /// Whether a caller waits for the connection.
    var wantConnection: Bool { !connecting.isEmpty }

    mutating func addConnecting(_ promise: EventLoopPromise<Void>) { connecting.append(promise) }

    mutating func addDisconnecting(_ promise: EventLoopPromise<Void>) { disconnecting.append(promise) }

    /// The connection is established, or will not be.
    mutating func finishConnecting(_ result: Result<Void, any Error>) { Self.finish(&connecting, result) }

    /// The connection is closed.
    mutating func finishDisconnecting() { Self.finish(&disconnecting, .success(())) }

    private static func finish(_ waiters: inout [EventLoopPromise<Void>], _ result: Result<Void, any Error>) {
        let finished = waiters
        waiters = []
        for waiter in finished { waiter.completeWith(result) }
    }
}
