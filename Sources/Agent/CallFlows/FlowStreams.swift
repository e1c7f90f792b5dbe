internal import BotWire
internal import CallParticipation
internal import CallWebhooks
public import ConfigReader
internal import Synchronization

/// Where documents of a flow may stream a call's sound.
public struct FlowStreamTargets: Sendable, Equatable {
    /// The hosts of the configuration's own URLs.
    public let own: [String]
    /// Further hosts: names, addresses, and `*.example.org`.
    public let allowedHosts: [String]
    /// Signs the request that opens a WebSocket; nil signs nothing.
    public let secret: Secret?
    /// PEM certificates to trust besides the system's.
    public let trustRoots: String?

    /// Those of a plan: a flow in files names hosts that the configuration allows, and one of a server also the server's own.
    public init(_ plan: FlowPlan) {
        switch plan.source {
        case .file:
            own = []
            allowedHosts = plan.streamHosts
            secret = nil
            trustRoots = plan.trustRoots
        case .server(let server):
            own = server.client.own
            allowedHosts = server.allowedHosts
            secret = server.secret
            trustRoots = server.trustRoots
        }
    }
}

/// What connects a device's flows with bots and servers that hear: it is made when the first call needs it, and again for a plan with other
/// targets.
final class FlowStreams: Sendable {
    /// One that calls use, until the last of them ends if there is a newer one.
    final class Lease: Sendable {
        let service: any CallStreams
        fileprivate let use = Mutex((calls: 0, isRetired: false))

        fileprivate init(_ service: any CallStreams) { self.service = service }

        /// A call ends its use.
        func leave() { change { $0.calls -= 1 } }

        fileprivate func retire() { change { $0.isRetired = true } }

        private func change(_ change: (inout (calls: Int, isRetired: Bool)) -> Void) {
            let isLast = use.withLock { use in
                change(&use)
                return use.isRetired && use.calls == 0
            }
            if isLast { Task { await service.finish() } }
        }
    }

    private struct State {
        var targets: FlowStreamTargets
        var lease: Lease?
        var isFinished = false
    }

    /// What is wrong without it.
    static let missing = "this device connects calls with no streams"

    private let make: (@Sendable (FlowStreamTargets) -> any CallStreams)?
    private let state: Mutex<State>

    init(_ plan: FlowPlan, _ make: (@Sendable (FlowStreamTargets) -> any CallStreams)?) {
        self.make = make
        state = Mutex(State(targets: FlowStreamTargets(plan)))
    }

    /// Applies another plan to calls whose first stream begins from now on.
    func adopt(_ plan: FlowPlan) {
        let targets = FlowStreamTargets(plan)
        let old = state.withLock { state in
            guard targets != state.targets else { return nil as Lease? }
            state.targets = targets
            return state.lease.take()
        }
        old?.retire()
    }

    /// A call begins to use it; nil if there is none.
    func lease() -> Lease? {
        state.withLock { state in
            if state.lease == nil, !state.isFinished {
                state.lease = make.map { Lease($0(state.targets)) }
            }
            state.lease?.use.withLock { $0.calls += 1 }
            return state.lease
        }
    }

    func finish() async {
        let last = state.withLock { state in
            state.isFinished = true
            return state.lease.take()
        }
        await last?.service.finish()
    }
}
