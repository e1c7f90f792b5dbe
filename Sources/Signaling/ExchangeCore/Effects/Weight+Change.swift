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
        case .token, .tokenForgotten, .login, .loginForgotten, .sessionForgotten, .inviteForgotten, .groupForgotten,
            .pushForgotten, .deadPushesPruned, .acquaintance, .acquaintanceForgotten, .acquaintancesForgotten, .call,
            .callForgotten, .sequenceReserved, .eventsForgotten, .eventsPruned, .streamForgotten, .record, .pruned:
            record
        }
    }

    private static func of(_ invite: StoredInvite) -> Int {
        let texts = (invite.data?.bytes ?? 0) + (invite.payload?.bytes ?? 0) + (invite.timeoutPayload?.bytes ?? 0)
        return record + texts + place * invite.invitees.count
    }
}
