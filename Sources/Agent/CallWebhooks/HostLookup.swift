package import NIOCore
internal import NIOPosix
internal import Realtime
internal import Core

/// Looks up the names of hosts, off the event loop, so that addresses can be judged before anything is sent to them.
///
/// Its threads are its own, so that a resolver that hangs holds up nothing else.
package final class HostLookup: @unchecked Sendable {
    // Only the event loop uses it.
    private typealias Found = Result<[NIOCore.SocketAddress], any Error>

    private let loop: any EventLoop
    private let resolve: @Sendable (String) throws -> [NIOCore.SocketAddress]
    private var queue = LookupQueue()
    private var askers: [Int: EventLoopPromise<[NIOCore.SocketAddress]>] = [:]
    private var newest: [String: Found] = [:]
    private var number = 0
    private var timer: Scheduled<Void>?
    private var pool: NIOThreadPool?

    package init(
        on loop: any EventLoop,
        resolve: @escaping @Sendable (String) throws -> [NIOCore.SocketAddress] = {
            [try NIOCore.SocketAddress.makeAddressResolvingHost($0, port: 0)]
        }
    ) {
        self.loop = loop
        self.resolve = resolve
    }

    /// The addresses to try, in order.
    package func addresses(of host: String, port: Int) -> EventLoopFuture<[NIOCore.SocketAddress]> {
        if let address = try? NIOCore.SocketAddress(ipAddress: host, port: port) {
            return loop.makeSucceededFuture([address])
        }
        if host == "localhost" || host.hasSuffix(".localhost") {
            // Many a bot listens on only one of the two (RFC 6761 §6.3).
            return loop.makeSucceededFuture(
                ["127.0.0.1", "::1"].compactMap { try? NIOCore.SocketAddress(ipAddress: $0, port: port) })
        }
        number += 1
        let promise = loop.makePromise(of: [NIOCore.SocketAddress].self)
        askers[number] = promise
        feed(.ask(host: host, number: number))
        return promise.futureResult.map { found in
            found.map { address in
                var address = address
                address.port = port
                return address
            }
        }
    }

    /// Frees the threads; one that hangs is not waited for.
    package func finish() {
        timer?.cancel()
        let left = askers
        askers = [:]
        for promise in left.values { promise.fail(ChannelError.ioOnClosedChannel) }
        pool?.shutdownGracefully { _ in }
        pool = nil
    }

    private func feed(_ input: LookupQueue.Input) {
        for output in queue.handle(input, at: MonotonicClock.now) {
            switch output {
            case .look(let host): look(host)
            case .answer(let host, let numbers):
                guard let found = newest.removeValue(forKey: host) else { continue }
                for number in numbers { askers.removeValue(forKey: number)?.completeWith(found) }
            case .refuse(let number, let refusal): askers.removeValue(forKey: number)?.fail(refusal)
            }
        }
        timer?.cancel()
        timer = queue.nextDeadline.map { deadline in
            let wait = max(0, MonotonicClock.now.nanoseconds(to: deadline))
            return loop.scheduleTask(in: .nanoseconds(wait)) { [weak self] in self?.feed(.timerFired) }
        }
    }

    private func look(_ host: String) {
        let resolve = resolve
        threads.runIfActive(eventLoop: loop) { try resolve(host) }.whenComplete { [self] result in
            newest[host] = result
            feed(.ended(host: host))
        }
    }

    private var threads: NIOThreadPool {
        if let pool { return pool }
        let made = NIOThreadPool(numberOfThreads: LookupQueue.mostRunning)
        made.start()
        pool = made
        return made
    }
}
