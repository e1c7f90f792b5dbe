import CallControl
import JSON
import SignalingClient
import Synchronization

/// How many hang-ups a service was asked for.
final class HangUpCount: Sendable { let value = Atomic<Int>(0) }

/// A service that takes its time to tell a peer of a call's end, as one does on a machine that is busy.
struct SlowHangUps: SignalingService {
    let service: any SignalingService
    /// How long it takes, in hundredths of a second.
    let hundredths: Int
    let count: HangUpCount

    nonisolated(nonsending) func hangUp(_ news: CallHangUp) async throws(SignalingError) {
        count.value.add(1, ordering: .releasing)
        for _ in 0..<hundredths { try? await Task.sleep(for: .milliseconds(10)) }
        try await service.hangUp(news)
    }

    // MARK: Everything else as it is

    var traits: SignalingTraits { service.traits }
    var roomSignaling: (any RoomSignaling)? { service.roomSignaling }
    var groupSignaling: (any GroupSignaling)? { service.groupSignaling }
    var events: SignalingEvents { service.events }
    var connectionState: ConnectionState { get async { await service.connectionState } }
    var session: SessionGrant? { get async { await service.session } }
    var iceServers: [ICEServer] { get async { await service.iceServers } }
    func connect() async throws(SignalingError) { try await service.connect() }
    func disconnect() async { await service.disconnect() }
    func logOut() async throws(SignalingError) { try await service.logOut() }
    func unregister() async throws(SignalingError) { try await service.unregister() }
    func invite(_ options: InviteOptions) async throws(SignalingError) -> SentInvite {
        try await service.invite(options)
    }
    func accept(_ invite: InviteID, _ acceptance: InviteAcceptance) async throws(SignalingError) {
        try await service.accept(invite, acceptance)
    }
    func reject(_ invite: InviteID, _ rejection: InviteRejection) async throws(SignalingError) {
        try await service.reject(invite, rejection)
    }
    func modify(_ invite: InviteID, data: JSONValue) async throws(SignalingError) {
        try await service.modify(invite, data: data)
    }
    func cancel(_ invite: InviteID, _ withdrawal: InviteWithdrawal) async throws(SignalingError) {
        try await service.cancel(invite, withdrawal)
    }
    func send(_ signal: CallSignal, retryAfterReconnect: Bool) async throws(SignalingError) {
        try await service.send(signal, retryAfterReconnect: retryAfterReconnect)
    }
}
