import CallControl
import FoundationEssentials
import SecureTransport
import SignalingClient

/// A call could not be placed.
struct CallFailure: Error, CustomStringConvertible {
    let description: String
    /// The device has as many calls as it takes.
    let isBusy: Bool

    init(_ description: String, isBusy: Bool = false) {
        self.description = description
        self.isBusy = isBusy
    }
}

/// A user who calls the device, one invite at a time.
final class Caller {
    private let service: HandsetService
    private let callee: UserID
    private var events: SignalingEvents.AsyncIterator

    init(service: HandsetService, callee: UserID) {
        self.service = service
        self.callee = callee
        events = service.events.makeAsyncIterator()
    }

    func connect() async throws { try await service.connect() }
    func disconnect() async { await service.disconnect() }

    /// Invites the device to talk to `end`.
    ///
    /// - Returns: The call's invite and the device's side, as soon as the answer is here.
    func place(_ end: LocalEnd) async throws -> (InviteID, RemoteEnd) {
        let invite = try await self.invite(offer: end.offer)
        while let event = await events.next() {
            switch event {
            case .inviteAccepted(let answer) where answer.invite == invite:
                guard let sdp = answer.answer?.sdp else {
                    throw CallFailure("the device accepted without an answer")
                }
                return (invite, try RemoteEnd(answer: sdp, suite: end.key.suite))
            case .inviteRejected(let answer) where answer.invite == invite:
                let reason = answer.rejection?.reason
                throw CallFailure(
                    "the device rejected the call: \(reason?.rawValue ?? "no reason given")", isBusy: reason == .busy)
            case .inviteTimedOut(invite, _), .inviteEnded(invite):
                throw CallFailure("the device did not answer")
            case .error(let error):
                throw error
            default:
                continue  // About other invites, or nothing that a caller waits for.
            }
        }
        throw CallFailure("the service ended")
    }

    /// The device may still be starting: tries for 10 s to find it.
    private func invite(offer: String) async throws -> InviteID {
        var options = InviteOptions(
            to: callee, timeToLive: .seconds(10), isOnlineOnly: true,
            idempotencyKey: IdempotencyKey(ours: UUID().uuidString))
        options.offer = .offer(offer)
        let patience = ContinuousClock.now.advanced(by: .seconds(10))
        while true {
            do {
                return try await service.invite(options).id
            } catch {
                guard error.code == .noDeviceOnline, ContinuousClock.now < patience else { throw error }
                try await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    func hangUp(_ invite: InviteID, after duration: Duration) async throws {
        try await service.hangUp(CallHangUp(invite: invite, reason: .completed, duration: duration))
    }
}
