import JSON
import SignalWire
import Core

/// One invite, from being sent until it is forgotten.
package struct InviteRecord: Sendable {
    let id: InviteID
    /// Rises from invite to invite.
    let number: UInt64
    let inviter: Endpoint
    /// The group whose members are notified of it (GRP-2).
    private(set) var group: GroupID?
    /// Who is asked, in the order of asking.
    private(set) var invitees: [UserID]
    private(set) var data: KeptJSON?
    private(set) var payload: KeptJSON?
    private(set) var timeoutPayload: KeptJSON?
    /// Devices that are not connected are not pushed to.
    let isOnlineOnly: Bool
    let sentAt: Instant
    /// The whole time to live; 0 means no limit.
    private let ttlSeconds: Double
    /// When it times out; `nil` is never (INV-9).
    let deadline: Instant?
    private var states: [UserID: InviteeState]

    init(
        id: InviteID, number: UInt64, inviter: Endpoint, invitees: [UserID], terms: InviteSend, now: Instant
    ) {
        self.id = id
        self.number = number
        group = terms.group
        self.inviter = inviter
        self.invitees = invitees
        data = KeptJSON(terms.data)
        payload = KeptJSON(terms.payload)
        timeoutPayload = KeptJSON(terms.timeoutPayload)
        isOnlineOnly = terms.onlineOnly == true
        sentAt = now
        ttlSeconds = terms.ttl
        deadline = terms.ttl > 0 ? now.advanced(by: .seconds(terms.ttl)) : nil
        states = Dictionary(invitees.map { ($0, .pending) }, uniquingKeysWith: { first, _ in first })
    }

    /// Reads one that was kept on disk; it has no more time left than it was given.
    init(_ stored: StoredInvite, number: UInt64, at now: Instant) {
        id = stored.id
        self.number = number
        group = stored.group
        inviter = Endpoint(user: stored.inviter, device: stored.inviterDevice)
        invitees = stored.invitees.map(\.user)
        data = stored.data
        payload = stored.payload
        timeoutPayload = stored.timeoutPayload
        isOnlineOnly = stored.isOnlineOnly
        sentAt = stored.sentAt
        ttlSeconds = stored.ttlSeconds
        deadline = stored.deadline.map { min($0, now.advanced(by: .seconds(stored.ttlSeconds))) }
        states = Dictionary(
            stored.invitees.map { ($0.user, InviteeState($0)) }, uniquingKeysWith: { first, _ in first })
    }

    /// How far `invitee` has come; `nil` if it is not asked.
    func state(of invitee: UserID) -> InviteeState? { states[invitee] }

    /// Who has not answered, in the order of asking.
    var pending: [UserID] { invitees.filter { states[$0] == .pending } }

    /// Every invitee has accepted, rejected, timed out or been released (INV-3).
    var isEnded: Bool { !states.values.contains(.pending) }

    /// The devices of a user that it rings: all registered ones, except the one that sent the invite.
    func ringing(of user: UserID) -> Audience {
        .registered(except: user == inviter.user ? inviter.device : nil)
    }

    /// Seconds that remain of the ttl at `now`; 0 means no limit, so the last moments count as a millisecond.
    func remainingSeconds(at now: Instant) -> Double {
        deadline.map { max(0.001, now.duration(to: $0).seconds) } ?? 0
    }

    /// Passes one invitee's input to its state.
    ///
    /// - Returns: Whether anything changed; a repeated answer changes nothing.
    /// - Throws: `notYours` for a user that is not invited; the reason why an answer comes too late.
    mutating func take(_ input: InviteeState.Input, for invitee: UserID) throws(RPCError) -> Bool {
        guard let state = states[invitee] else {
            throw RPCError(.notYours, "The invite is not for this user.")
        }
        switch state.step(input) {
        case .moves(let next):
            states[invitee] = next
            return true
        case .repeats, .ignored:
            return false
        case .refused(let code):
            throw RPCError(code, Self.sentence(for: code))
        }
    }

    /// Gives the invite other data (INV-15).
    mutating func modify(_ data: JSONValue?) { self.data = KeptJSON(data) }

    /// Keeps of an invite that has ended what errors and idempotency keys need: how it ended.
    mutating func shed() {
        data = nil
        payload = nil
        timeoutPayload = nil
    }

    /// The invite notification for devices at `now`.
    func received(at now: Instant) throws(SignalCodingError) -> EventText {
        let invite = InviteReceived(
            invite: id, inviter: inviter.user, group: group, invitees: invitees,
            ttlRemaining: remainingSeconds(at: now))
        return try EventText(invite, data: data?.text, payload: payload?.text)
    }

    /// The invite in a list at `now`, as JSON text.
    func listed(at now: Instant) -> String? {
        let entry = InviteList.Entry(
            invite: id, inviter: inviter.user, group: group, invitees: invitees, pending: pending,
            ttlRemaining: remainingSeconds(at: now))
        // Only numbers that JSON does not have cannot be written, and there are none in it.
        return try? InviteListText.entry(entry, data: data?.text)
    }

    /// Takes the invite back from everybody who has not answered.
    ///
    /// - Returns: Those it was taken back from, in the order of asking; empty if the invite had ended before.
    mutating func cancel() -> [UserID] { move(invitees, .cancel) }

    /// Ends the invite for everybody who has not answered in time, or for `user` alone.
    ///
    /// - Returns: Those, in the order of asking; empty if the invite had ended before.
    mutating func timeOut(for user: UserID? = nil) -> [UserID] {
        move(invitees.filter { user == nil || $0 == user }, .timeOut)
    }

    /// The group is dismissed: detaches the invite, so that a later group of the same name does not see it.
    mutating func leaveGroup() { group = nil }

    /// Removes `user` from the invitees, so that a later user of the same name does not inherit the invite.
    mutating func strike(_ user: UserID) {
        invitees.removeAll { $0 == user }
        states[user] = nil
    }

    private mutating func move(_ invitees: [UserID], _ input: InviteeState.Input) -> [UserID] {
        var moved: [UserID] = []
        for invitee in invitees {
            guard case .moves(let next)? = states[invitee]?.step(input) else { continue }
            states[invitee] = next
            moved.append(invitee)
        }
        return moved
    }

    private static func sentence(for code: RPCErrorCode) -> String {
        switch code {
        case .alreadyHandled: "The invite has been answered already."
        case .inviteTimedOut: "The invite has timed out."
        case .inviteCancelled: "The inviter has cancelled the invite."
        default: "The invite has ended."
        }
    }
}

/// How far one invitee of an invite has come.
enum InviteeState: Hashable, Sendable {
    /// Its devices ring.
    case pending
    /// A device took the invite.
    case accepted(by: DeviceID)
    /// A device turned the invite down.
    case rejected(by: DeviceID)
    /// The ttl ended without an answer.
    case timedOut
    /// The inviter took the invite back first.
    case cancelled

    /// What can happen to it.
    enum Input: Hashable, Sendable {
        case accept(by: DeviceID)
        case reject(by: DeviceID)
        case cancel
        case timeOut
    }

    /// What comes of an input.
    enum Step: Hashable, Sendable {
        /// The state changes.
        case moves(to: InviteeState)
        /// The device said so before: a retry, answered as then and with no other effect.
        case repeats
        /// The input comes too late: the client receives this error.
        case refused(RPCErrorCode)
        /// The input does not concern an invitee that is done.
        case ignored
    }

    /// What `input` does in this state.
    func step(_ input: Input) -> Step {
        switch (self, input) {
        case (.pending, .accept(let device)): .moves(to: .accepted(by: device))
        case (.pending, .reject(let device)): .moves(to: .rejected(by: device))
        case (.pending, .cancel): .moves(to: .cancelled)
        case (.pending, .timeOut): .moves(to: .timedOut)

        case (.accepted(let winner), .accept(let device)): winner == device ? .repeats : .refused(.alreadyHandled)
        case (.rejected(let winner), .reject(let device)): winner == device ? .repeats : .refused(.alreadyHandled)
        case (.accepted, .reject), (.rejected, .accept): .refused(.alreadyHandled)

        case (.timedOut, .accept), (.timedOut, .reject): .refused(.inviteTimedOut)
        case (.cancelled, .accept), (.cancelled, .reject): .refused(.inviteCancelled)

        case (.accepted, .cancel), (.accepted, .timeOut), (.rejected, .cancel), (.rejected, .timeOut),
            (.timedOut, .cancel), (.timedOut, .timeOut), (.cancelled, .cancel), (.cancelled, .timeOut):
            .ignored
        }
    }
}

/// To disk and back.
extension InviteRecord {
    /// The record to store on disk.
    func stored(key: IdempotencyKey?, forgottenAt: Instant?) -> StoredInvite {
        var stored = StoredInvite(
            id: id, inviter: inviter.user, inviterDevice: inviter.device, group: group,
            invitees: invitees.compactMap { user in
                state(of: user).map { StoredInvite.Invitee(user: user, state: $0.stored, device: $0.device) }
            }, idempotencyKey: key, ttlSeconds: ttlSeconds, sentAt: sentAt, deadline: deadline,
            forgottenAt: forgottenAt, isOnlineOnly: isOnlineOnly)
        stored.data = data
        stored.payload = payload
        stored.timeoutPayload = timeoutPayload
        return stored
    }

    /// What an input meant for the records of the invite's calls; an accept is recorded with the call.
    func steps(since before: InviteRecord?, at now: Instant) -> [CallStep] {
        // Who was struck off the invite is in the earlier one alone.
        let struck = (before?.invitees ?? []).filter { state(of: $0) == nil }
        return (invitees + struck).compactMap { user in
            let kind: CallStep.Kind
            switch (before?.state(of: user), state(of: user)) {
            case (nil, _?): kind = .rang(inviter: inviter.user, inviterDevice: inviter.device, group: group)
            case (.pending?, .timedOut?), (.pending?, nil): kind = .ended(reason: "noAnswer", durationMilliseconds: 0)
            case (.pending?, .cancelled?): kind = .ended(reason: "cancelled", durationMilliseconds: 0)
            case (_?, .pending?), (_?, .accepted?), (_?, .rejected?), (_?, .timedOut?), (_?, .cancelled?),
                (.accepted?, nil), (.rejected?, nil), (.timedOut?, nil), (.cancelled?, nil), (nil, nil):
                return nil
            }
            return CallStep(invite: id, invitee: user, kind: kind, at: now)
        }
    }
}

extension InviteeState {
    /// The word for it on disk.
    var stored: StoredInvite.Invitee.State {
        switch self {
        case .pending: .pending
        case .accepted: .accepted
        case .rejected: .rejected
        case .timedOut: .timedOut
        case .cancelled: .cancelled
        }
    }

    /// The device that answered.
    var device: DeviceID? {
        switch self {
        case .accepted(let device), .rejected(let device): device
        case .pending, .timedOut, .cancelled: nil
        }
    }

    init(_ stored: StoredInvite.Invitee) {
        self =
            switch stored.state {
            case .pending: .pending
            // An answer always has a device; a stored answer without one is invalid, and restored as cancelled.
            case .accepted: stored.device.map { .accepted(by: $0) } ?? .cancelled
            case .rejected: stored.device.map { .rejected(by: $0) } ?? .cancelled
            case .timedOut: .timedOut
            case .cancelled: .cancelled
            }
    }
}
