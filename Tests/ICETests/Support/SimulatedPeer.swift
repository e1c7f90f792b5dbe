import ICE
import Core

/// One side of a call in a world: an agent, its machine, and what came out of it.
final class SimulatedPeer {
    var agent: ICEAgent
    var addresses: [SocketAddress]
    /// `nil`: the machine's addresses are public.
    var nat: SimulatedNAT?
    /// A firewall lets only streams out.
    var blocksUDP = false
    /// Packets from or to these addresses of the machine are lost, as when an interface is down.
    var deadAddresses: Set<SocketAddress> = []
    /// Where each server connection leaves from.
    var connections: [Int: SimulatedServer.Client] = [:]
    var nextConnectionPort: UInt16 = 30_000

    var inbox: [[UInt8]] = []
    var states: [(at: Instant, state: ICEState)] = []
    var paths: [(at: Instant, path: ICEPath?)] = []
    var candidates: [Candidate] = []
    var unresolved: [Candidate] = []
    var serverFailures: [TURNFailure] = []
    var hasGathered = false
    var transmitted = 0
    /// Whether candidates are told to the other side.
    var tellsCandidates = true

    init(_ agent: ICEAgent, addresses: [SocketAddress], nat: SimulatedNAT? = nil) {
        self.agent = agent
        self.addresses = addresses
        self.nat = nat
    }

    var isSettled: Bool { agent.path?.isNominated ?? false }
}
