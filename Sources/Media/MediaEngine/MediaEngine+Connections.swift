public import CallMedia
public import ICE
public import Core
internal import Realtime

// Calls that ICE connects: first a connection, described to the peer, then the call itself on top of it.
extension MediaEngine {
    /// Begins to connect a call: its candidates are gathered, and what comes in is answered from now on.
    ///
    /// Candidates that take time follow as ``MediaEvent/candidate(_:_:)``.
    /// - Returns: The call's name, and the candidates known at once as values of `candidate` attributes.
    public func connect(
        _ plan: ConnectionPlan, at placement: MediaPlacement
    ) throws(MediaStartError) -> (MediaCallID, candidates: [String]) {
        let (id, candidates, _) = try begin(plan, at: placement)
        return (id, candidates)
    }

    /// Begins to connect a call whose peer has DTLS and no ICE.
    ///
    /// It has its own socket, so that packets that arrive there come from the peer or a stranger, but never belong to
    /// another call.
    /// - Returns: The call's name, and the addresses that it receives at; their hosts may be the wildcard address.
    public func connectDirectly(
        _ plan: ConnectionPlan, at placement: MediaPlacement
    ) throws(MediaStartError) -> (MediaCallID, addresses: [SocketAddress]) {
        var plan = plan
        plan.gathers = false
        plan.hasOwnSocket = true
        let (id, _, addresses) = try begin(plan, at: placement)
        return (id, addresses)
    }

    private func begin(
        _ plan: ConnectionPlan, at placement: MediaPlacement
    ) throws(MediaStartError) -> (MediaCallID, candidates: [String], own: [SocketAddress]) {
        let worker = workers[placement.worker]
        let (slots, own) = try sockets(for: plan, of: worker)
        let interfaces = NetworkInterface.all()
        var addresses: [SocketAddress: Int] = [:]
        for slot in slots {
            guard let bound = worker.boundAddress(slot) else { continue }
            for address in plan.interfaces.addresses(of: bound, among: interfaces) { addresses[address] = slot }
        }
        let id = newID(of: placement.owner)
        noteConnection(id, on: placement.worker)
        worker.setConnecting(true)
        let candidates = connections.open(
            id, worker: placement.worker, plan, slots: addresses, ownSlots: own, at: MonotonicClock.now)
        return (id, candidates, own.compactMap { worker.boundAddress($0) })
    }

    /// Gives a connection the peer's description: checks begin.
    public func connect(_ id: MediaCallID, to remote: RemoteConnection) { connections.send(.remote(id, remote)) }

    /// Gives a connection another candidate of the peer (RFC 8838): the value of a `candidate` attribute.
    public func addCandidate(_ candidate: String, to id: MediaCallID) { connections.send(.candidate(id, candidate)) }

    /// Notifies a connection that the peer has no more candidates.
    public func endCandidates(of id: MediaCallID) { connections.send(.endOfCandidates(id)) }

    /// Restarts a connection's ICE with new credentials; media stays on the present path until there is another.
    public func restart(_ id: MediaCallID, with credentials: ICECredentials) {
        connections.send(.restart(id, credentials))
    }

    /// Which way a call's media flows from now on: hold and resume (RFC 3264 §8.4).
    public func setDirection(_ id: MediaCallID, sends: Bool, receives: Bool) {
        guard let worker = worker(of: id) else { return }
        worker.enqueue(.setDirection(id, sends: sends, receives: receives))
    }

    /// The slots that a connection sends from, and which of them are its own.
    private func sockets(for plan: ConnectionPlan, of worker: MediaWorker) throws(MediaStartError) -> (
        [Int], own: [Int]
    ) {
        let main = [false, true].map { SocketSet.mainSlot(isIPv6: $0) }.filter { worker.boundAddress($0) != nil }
        guard plan.hasOwnSocket else { return (main, []) }
        // A peer without ICE is given one address, which a firewall may have to let in.
        guard plan.gathers else {
            let slots = try openSockets(of: worker).sockets.slots
            return (slots, slots)
        }
        var own: [Int] = []
        do throws(RealtimeError) {
            for slot in main {
                guard var address = worker.boundAddress(slot) else { continue }
                address.port = 0
                own.append(try worker.openSocket(boundTo: address))
            }
        } catch {
            for slot in own { worker.closeSocket(slot) }
            throw MediaStartError("the call cannot have a socket: \(error)")
        }
        return (own, own)
    }
}

extension MediaEvent {
    init(_ event: ConnectionThread.Event) {
        switch event {
        case .candidate(let id, let candidate): self = .candidate(id, candidate)
        case .candidatesComplete(let id): self = .candidatesComplete(id)
        case .connected(let id, let path): self = .connected(id, by: path)
        case .pathLost(let id): self = .pathLost(id)
        case .quiet(let id): self = .connectionQuiet(id)
        case .back(let id): self = .connectionBack(id)
        case .relayFailed(let id, let server, let reason): self = .relayFailed(id, server: server, reason: reason)
        case .relayOverrun(let id, let server, let notSent, let notReceived):
            self = .relayOverrun(id, server: server, notSent: notSent, notReceived: notReceived)
        case .failed(let id, let reason): self = .connectionFailed(id, reason)
        case .closed(let id): self = .goodbyeReceived(id)
        case .secured(let id): self = .secured(id)
        }
    }
}
