import JSON
import SignalWire

/// Bytes that stored items take up, in memory and about as many on disk. Texts count with their bytes, and their
/// overhead with measured upper bounds.
package enum Weight {
    /// An event in one log, beside its body.
    static let entry = 128
    /// Any record found by an id, with its slots in tables, in the heap of deadlines and in the quotas.
    static let record = 512
    /// One user, device or room in a list.
    static let place = 128

    static func body(_ body: EventBody) -> Int { body.bytes + entry }

    /// An event with this number of receivers.
    static func of(_ event: EventBody, for receivers: Int) -> Int {
        receivers > 0 ? body(event) + receivers * entry : 0
    }

    /// An open invite has its calls paid for already, so that accepting it costs its inviter nothing more.
    static func of(_ invite: InviteRecord) -> Int {
        let texts = (invite.data?.bytes ?? 0) + (invite.payload?.bytes ?? 0) + (invite.timeoutPayload?.bytes ?? 0)
        return record + texts
            + invite.invitees.reduce(0) { sum, user in
                sum + place + (invite.state(of: user) == .pending ? record : 0)
            }
    }

    /// Each push has its payload to itself on disk.
    static func of(_ push: StoredPush) -> Int {
        record + push.target.token.secret.utf8.count + (push.payload?.bytes ?? 0)
    }

    static func of(_ session: StoredSession, _ device: DeviceDescription) -> Int {
        record + of(device) + places(of: session)
    }

    static func places(of session: StoredSession) -> Int {
        let places = session.places + [session.scope].compactMap { $0 }
        return places.reduce(0) { $0 + 2 * place + ($1.data?.utf8.count ?? 0) }
    }

    static func of(_ device: DeviceDescription) -> Int {
        let names = device.capabilities.reduce(device.name.utf8.count) { $0 + $1.text.utf8.count + 16 }
        return names + (device.pushToken?.secret.utf8.count ?? 0)
    }

    static func of(_ group: Group) -> Int { record + (group.name?.utf8.count ?? 0) + place * group.members.count }

    static func of(_ targets: [DeviceRegister.PushTarget]) -> Int {
        targets.isEmpty ? 0 : record + targets.reduce(0) { $0 + place + $1.token.secret.utf8.count }
    }
}

/// Bytes that a change takes up until it is on disk.
extension Weight {
    package static func of(_ change: Change) -> Int {
        switch change {
        case .event(let event): body(event.body)
        case .invite(let invite): of(invite)
        case .push(let push): of(push)
        case .pushDied(let push, at: _): record + push.message.utf8.count + (push.detail?.utf8.count ?? 0)
        case .session(let session): record + places(of: session)
        case .group(let group): record + (group.name?.utf8.count ?? 0) + place * group.members.count
        case .pushTargets(let device): record + of(device.targets)
        case .fileUsers(let users): record + place * users.count
        case .letter(let letter): letter.bytes
        case .token, .tokenForgotten, .login, .loginForgotten, .sessionForgotten, .inviteForgotten, .groupForgotten,
            .pushForgotten, .deadPushesPruned, .acquaintance, .acquaintanceForgotten, .acquaintancesForgotten, .call,
            .callForgotten, .userAdded, .userForgotten, .sequenceReserved, .eventsForgotten, .eventsPruned,
            .streamForgotten, .record, .pruned, .lettersForgotten, .letterMarks:
            record
        }
    }

    private static func of(_ invite: StoredInvite) -> Int {
        let texts = (invite.data?.bytes ?? 0) + (invite.payload?.bytes ?? 0) + (invite.timeoutPayload?.bytes ?? 0)
        return record + texts + place * invite.invitees.count
    }
}
