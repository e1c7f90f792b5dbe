internal import ICE
internal import DomainNames
internal import Core
internal import CallMedia
internal import Realtime

/// Looks up the addresses that peers on the local link hide behind names. For the connection thread alone.
///
/// There is a socket only while something is being looked up.
final class NameLookup {
    private var resolver = NameResolver()
    private var link: Link?
    /// The waiting agents for each name; the agents and the resolver bound both.
    private var waiting: [String: [(session: MediaCallID, candidate: Candidate)]] = [:]
    private var batch = DatagramBatch()

    /// A socket in the group, and the addresses of the interfaces on which it is.
    private final class Link {
        let socket: UDPSocket
        var addresses: [SocketAddress] = []

        init(port: UInt16) throws(RealtimeError) { socket = try UDPSocket(sharingPort: port) }
    }

    /// When ``step(at:tell:)`` must be called even if nothing comes.
    var nextDeadline: Instant? { resolver.nextDeadline }

    /// Looks a candidate's name up.
    ///
    /// - Parameters:
    ///   - addresses: Local addresses; the query is sent on the interfaces that have them.
    ///   - watch: Is given the descriptor of a new socket: ``step(at:tell:)`` is to be called when it is readable.
    func find(
        _ candidate: Candidate, for session: MediaCallID, through addresses: [SocketAddress], at now: Instant,
        watch: (Int32) throws(RealtimeError) -> Void
    ) {
        guard case .name(let name, _) = candidate.location, NameResolver.isHidden(name),
            let group = NameResolver.group
        else { return }
        let reachable = addresses.filter { !$0.isIPv6 }.map { $0.withPort(0) }
        guard !reachable.isEmpty else { return }
        if link == nil {
            guard let made = try? Link(port: group.port), (try? watch(made.socket.descriptor)) != nil else { return }
            link = made
        }
        for address in reachable where link?.addresses.contains(address) == false {
            if link?.socket.join(group, through: address) == true { link?.addresses.append(address) }
        }
        waiting[name.lowercased(), default: []].append((session, candidate))
        handle(.resolve(name), at: now) { _, _ in }
    }

    /// Reads answers, repeats queries that are due, and reports which calls' candidates now have an address.
    func step(at now: Instant, tell: (MediaCallID, Candidate) -> Void) {
        while let link, link.socket.receive(into: &batch) == 0, batch.count > 0 {
            for index in 0..<batch.count {
                let datagram = batch.bytes(index)
                var bytes: [UInt8] = []
                for offset in 0..<min(datagram.byteCount, DNSMessage.maximumBytes) {
                    bytes.append(unsafe datagram.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
                }
                handle(.datagram(bytes, source: batch.address(index)), at: now, tell: tell)
            }
        }
        if let deadline = resolver.nextDeadline, deadline <= now { handle(.timerFired, at: now, tell: tell) }
        if !resolver.isBusy { link = nil }
    }

    private func handle(_ input: NameResolver.Input, at now: Instant, tell: (MediaCallID, Candidate) -> Void) {
        var outputs: [NameResolver.Output] = []
        resolver.handle(input, at: now, into: &outputs)
        for output in outputs {
            switch output {
            case .transmit(let bytes):
                guard let link, let group = NameResolver.group else { continue }
                for address in link.addresses { link.socket.send(bytes, from: address, to: group) }
            case .resolved(let name, let address):
                for (session, candidate) in waiting.removeValue(forKey: name) ?? [] {
                    tell(session, candidate.resolved(to: address))
                }
            case .gaveUp(let name): waiting[name] = nil
            }
        }
    }
}
