internal import Realtime
internal import ICE
internal import Core
internal import CallMedia
internal import SecureTransport

/// The connection thread's state of one call's connection. Made by the control side, and afterwards used only by the
/// connection thread.
final class ConnectionSession {
    let id: MediaCallID
    let worker: Int
    let plan: ConnectionPlan
    var connection: Connection<DTLSEndpoint>
    /// Our role in the handshake, once the descriptions say it.
    var role: DTLSRole?
    /// The slots of the call's own sockets.
    let ownSlots: [Int]
    /// The slot from which each local address sends.
    let slots: [SocketAddress: Int]
    /// How TURN servers are reached.
    var relays: [Int: Relay] = [:]
    /// Why a TURN server was last given up.
    var relayFailure: String?
    /// The peer has stopped answering.
    var isQuiet = false
    /// The worker handles datagrams as they come because of this connection.
    var isConnecting = true
    /// What is to be done first, found when the session was made.
    var pending: [Connection<DTLSEndpoint>.Output] = []

    /// The way to a TURN server.
    enum Relay {
        /// Through a separate socket.
        case datagrams(slot: Int, address: SocketAddress)
        /// By TCP or TLS.
        case stream(RelayStream)

        /// Where the worker sends channel data to, and gets it from.
        var path: DatagramPath {
            switch self {
            case .datagrams(let slot, let address): DatagramPath(socket: slot, local: nil, remote: address)
            case .stream(let stream): DatagramPath(socket: stream.slot, local: nil, remote: stream.address)
            }
        }
    }

    init(
        _ id: MediaCallID, worker: Int, _ plan: ConnectionPlan, slots: [SocketAddress: Int], ownSlots: [Int],
        at now: Instant
    ) {
        self.id = id
        self.worker = worker
        self.plan = plan
        self.slots = slots
        self.ownSlots = ownSlots
        let agent = ICEAgent(plan.ice, credentials: plan.credentials, generator: SystemRandomNumberGenerator())
        connection = Connection(agent)
        guard plan.gathers else { return }
        let addresses = slots.keys.sorted { $0.description < $1.description }
        connection.handle(.ice(.start(localAddresses: addresses)), at: now, into: &pending)
    }

    /// Takes the candidates that are already known out of ``pending``, so that the description can contain them.
    func takeFirstCandidates() -> [String] {
        var candidates: [String] = []
        pending.removeAll { output in
            guard case .ice(.localCandidate(let candidate)) = output else { return false }
            candidates.append(candidate.attributeValue)
            return true
        }
        return candidates
    }

    /// The media worker's route for a path of ICE; nil while there is none that it can use.
    func mediaPath(for path: ICEPath?) -> MediaPath? {
        switch path?.route {
        case .direct(let local)?:
            guard let slot = slots[local], let remote = path?.remote else { return nil }
            return MediaPath(DatagramPath(socket: slot, local: local, remote: remote))
        case .relayed(let server, _, let channel?)?:
            guard let relay = relays[server] else { return nil }
            return MediaPath(relay.path, channel: channel)
        case .relayed(_, _, nil)?, nil: return nil
        }
    }
}
