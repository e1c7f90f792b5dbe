import CallControl
import SignalingClient
import Synchronization

/// A service that connects as a test says, and does nothing else.
final class ScriptedService: SignalingService {
    typealias Step = @Sendable (EventHub<SignalingEvent>) async throws(SignalingError) -> Void

    private let hub = EventHub<SignalingEvent>()
    private let connecting: Step
    private let disconnecting: @Sendable () async -> Void
    private let count = Mutex(0)

    init(
        disconnecting: @escaping @Sendable () async -> Void = {},
        connecting: @escaping Step = { hub throws(SignalingError) in hub.publish(.connected) }
    ) {
        self.connecting = connecting
        self.disconnecting = disconnecting
    }

    /// How often somebody wanted to connect.
    var connects: Int { count.withLock { $0 } }

    func publish(_ event: SignalingEvent) { hub.publish(event) }

    var events: SignalingEvents { SignalingEvents(hub: hub) }
    var connectionState: ConnectionState { get async { .notConnected } }
    var session: SessionGrant? { get async { nil } }
    var iceServers: [ICEServer] { get async { [] } }

    func connect() async throws(SignalingError) {
        count.withLock { $0 += 1 }
        try await connecting(hub)
    }

    func disconnect() async { await disconnecting() }
    func logOut() async throws(SignalingError) {}
    func unregister() async throws(SignalingError) {}

    // MARK: What no test asks for

    private static let refusal = SignalingError(.notAllowed, activity: "do that", cause: "the test has no such thing")

    func invite(_ options: InviteOptions) async throws(SignalingError) -> SentInvite { throw Self.refusal }
    func accept(_ invite: InviteID, _ acceptance: InviteAcceptance) async throws(SignalingError) { throw Self.refusal }
    func reject(_ invite: InviteID, _ rejection: InviteRejection) async throws(SignalingError) { throw Self.refusal }
    func cancel(_ invite: InviteID, _ withdrawal: InviteWithdrawal) async throws(SignalingError) { throw Self.refusal }
    func send(_ signal: CallSignal, retryAfterReconnect: Bool) async throws(SignalingError) { throw Self.refusal }
    func hangUp(_ news: CallHangUp) async throws(SignalingError) { throw Self.refusal }
}
