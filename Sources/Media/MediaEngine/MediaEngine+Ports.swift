public import CallMedia
internal import Core
internal import Realtime
internal import Synchronization

// Ports of calls without ICE, one for each.
extension MediaEngine {
    /// Opens sockets of a call's own, for a call without ICE: what arrives there belongs to no other call.
    ///
    /// - Returns: What ``start(_:at:connection:port:line:)`` takes over, or ``close(_:)``.
    /// - Throws: ``MediaStartError`` if there is no port.
    public func openPort(at placement: MediaPlacement) throws(MediaStartError) -> MediaPort {
        let worker = workers[placement.worker]
        let (sockets, addresses) = try openSockets(of: worker)
        return MediaPort(worker: placement.worker, sockets: sockets, addresses: addresses)
    }

    /// Closes the sockets of a call that has not started with them. The port rests for a minute.
    public func close(_ port: MediaPort) {
        // A worker that has stopped has closed its sockets.
        guard !state.withLock({ $0.isStopped }) else { return }
        for slot in port.sockets.slots { workers[port.worker].closeSocket(slot) }
    }

    /// Opens one socket for each family of addresses that the worker has, on one port.
    func openSockets(of worker: MediaWorker) throws(MediaStartError) -> (sockets: CallSockets, [SocketAddress]) {
        let bound = [false, true].compactMap { worker.boundAddress(SocketSet.mainSlot(isIPv6: $0)) }
        guard let first = bound.first(where: { $0.isIPv6 == worker.localAddress.isIPv6 }) else {
            throw MediaStartError("the call cannot have a socket: the media worker has none")
        }
        let (slot, lease) = try openFirst(first, of: worker)
        var slots = [first.isIPv6: slot]
        // A machine with that port taken in the other family does with one socket.
        if let second = bound.first(where: { $0.isIPv6 != first.isIPv6 }),
            let socket = try? UDPSocket(boundTo: second.withPort(lease.port))
        {
            slots[second.isIPv6] = try? worker.adopt(socket, lease)
        }
        return (CallSockets(ipv4: slots[false], ipv6: slots[true]), slots.values.compactMap(worker.boundAddress))
    }

    /// Opens a socket on a port that no call has, and that does not rest.
    private func openFirst(
        _ address: SocketAddress, of worker: MediaWorker
    ) throws(MediaStartError) -> (slot: Int, PortLease) {
        // Ports of other processes are put aside, so that each is tried once, and then rest.
        var others: [PortLease] = []
        do throws(RealtimeError) {
            guard let range = ports.range else { return try openAnywhere(address, of: worker) }
            while others.count < range.count, let lease = ports.take() {
                if let slot = try open(address, lease, of: worker) { return (slot, lease) }
                others.append(lease)
            }
        } catch {
            throw MediaStartError("the call cannot have a socket: \(error)")
        }
        throw MediaStartError(portsUsedUp: ports.range ?? 0...0, areAllOfCalls: others.isEmpty)
    }

    /// Opens a socket on a port.
    ///
    /// - Returns: Its slot; nil if another process has the port.
    private func open(
        _ address: SocketAddress, _ lease: PortLease, of worker: MediaWorker
    ) throws(RealtimeError) -> Int? {
        do throws(RealtimeError) {
            return try worker.adopt(try UDPSocket(boundTo: address.withPort(lease.port)), lease)
        } catch {
            guard error.isAddressInUse else { throw error }
            return nil
        }
    }

    /// Opens a socket on a port that the system chooses.
    private func openAnywhere(
        _ address: SocketAddress, of worker: MediaWorker
    ) throws(RealtimeError) -> (slot: Int, PortLease) {
        for _ in 0..<Self.mostChoices {
            let socket = try UDPSocket(boundTo: address.withPort(0))
            if let lease = ports.adopt(socket.localAddress.port) { return (try worker.adopt(socket, lease), lease) }
        }
        let socket = try UDPSocket(boundTo: address.withPort(0))
        let lease = ports.adoptEarly(socket.localAddress.port)
        return (try worker.adopt(socket, lease), lease)
    }

    /// Ports that the system may choose in vain: it has some 28,000, of which few rest.
    private static let mostChoices = 64
}

extension MediaStartError {
    init(portsUsedUp range: ClosedRange<UInt16>, areAllOfCalls: Bool) {
        let whose = areAllOfCalls ? "calls have" : "calls and other processes have"
        self.init(
            "no UDP port is free for the call: \(whose) all \(range.count) of media.ports "
                + "(\(range.lowerBound)-\(range.upperBound)). Give it more ports, or lower answer.max_calls.",
            isFull: true)
    }
}
