internal import CAres
internal import Glibc
internal import Core

/// A channel of c-ares: the sockets and the questions of one lookup. It stays on the thread that made it.
@safe
final class AresChannel {
    /// The most sockets that c-ares reports.
    private static let mostSockets = 16

    let handle: ares_channel
    private let deadline: ContinuousClock.Instant

    /// The library is initialized once: that is not safe on two threads.
    private static let libraryStatus = ares_library_init(ARES_LIB_INIT_ALL)

    init?(_ servers: [SocketAddress], _ milliseconds: Int64) {
        guard Self.libraryStatus == ARES_SUCCESS else { return nil }
        var options = unsafe ares_options()
        // Half the time for the first try, so that another server is asked after it.
        unsafe options.timeout = Int32(clamping: max(1, milliseconds / 4))
        unsafe options.tries = 3
        var channel: ares_channel?
        let mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES
        guard unsafe ares_init_options(&channel, &options, mask) == ARES_SUCCESS, let made = unsafe channel
        else { return nil }
        unsafe handle = made
        deadline = .now.advanced(by: .milliseconds(milliseconds))
        guard servers.isEmpty || setServers(servers) else { return nil }
    }

    deinit { unsafe ares_destroy(handle) }

    private func setServers(_ servers: [SocketAddress]) -> Bool {
        let text = servers.map { "\($0)" }.joined(separator: ",")
        return unsafe ares_set_servers_ports_csv(handle, text) == ARES_SUCCESS
    }

    func cancel() { unsafe ares_cancel(handle) }

    /// Waits for replies and takes them, until `isWaiting` is false or time is up.
    func run(while isWaiting: () -> Bool) {
        while isWaiting() {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { return }
            var descriptors = sockets()
            guard !descriptors.isEmpty else { return }
            let parts = left.components
            let milliseconds = Int32(
                clamping: parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000 + 1)
            let wait = min(nextTimeout(), milliseconds, 1_000)
            let count = unsafe poll(&descriptors, nfds_t(descriptors.count), wait)
            if count <= 0 {
                unsafe ares_process_fd(handle, ARES_SOCKET_BAD, ARES_SOCKET_BAD)
                continue
            }
            for descriptor in descriptors where descriptor.revents != 0 {
                let isReadable = descriptor.revents & Int16(POLLIN | POLLERR | POLLHUP) != 0
                let isWritable = descriptor.revents & Int16(POLLOUT) != 0
                unsafe ares_process_fd(
                    handle, isReadable ? descriptor.fd : ARES_SOCKET_BAD,
                    isWritable ? descriptor.fd : ARES_SOCKET_BAD)
            }
        }
    }

    private func sockets() -> [pollfd] {
        var found = [ares_socket_t](repeating: ARES_SOCKET_BAD, count: Self.mostSockets)
        let bits = UInt32(bitPattern: unsafe ares_getsock(handle, &found, Int32(Self.mostSockets)))
        return found.indices.compactMap { index in
            let reads = bits >> UInt32(index) & 1 == 1
            let writes = bits >> UInt32(index + Self.mostSockets) & 1 == 1
            guard reads || writes else { return nil }
            let events = (reads ? POLLIN : 0) | (writes ? POLLOUT : 0)
            return pollfd(fd: found[index], events: Int16(events), revents: 0)
        }
    }

    /// Milliseconds until c-ares asks again.
    private func nextTimeout() -> Int32 {
        var longest = timeval(tv_sec: 1, tv_usec: 0)
        var next = timeval()
        guard let time = unsafe ares_timeout(handle, &longest, &next) else { return 1_000 }
        return Int32(clamping: unsafe time.pointee.tv_sec * 1_000 + Int(time.pointee.tv_usec) / 1_000 + 1)
    }
}
