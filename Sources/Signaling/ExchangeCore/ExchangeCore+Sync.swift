import JSON
import SignalWire
import Timekeeping

/// What a device that comes online has to catch up on (INV-14).
extension ExchangeCore {
    /// How far back a cold start goes among the invites of groups.
    static let coldStart = Duration.seconds(30)

    /// Tells a device of each invite that its user has still to answer, and of those in its user's groups.
    ///
    /// They are kept like all events, since the device that drops meanwhile does not register once more when it resumes.
    mutating func synchronize(
        _ endpoint: Endpoint, _ start: DeviceRegister.Start, at now: Instant, into outbox: inout [Output]
    ) {
        var left = SignalLimits.syncBytes
        for record in toSync(with: endpoint, start, at: now) {
            let event = body(of: record, at: now)
            left -= event.bytes
            guard left >= 0 else { return }
            tell(endpoint, event, at: now, into: &outbox)
        }
    }

    private func toSync(
        with endpoint: Endpoint, _ start: DeviceRegister.Start, at now: Instant
    ) -> [InviteRecord] {
        let user = endpoint.user
        let inGroups = groups.groups(of: user).flatMap { openInvites.inGroup($0.id) }
        return records(openInvites.received(by: user) + inGroups).filter { record in
            guard record.ringing(of: user).includes(endpoint.device, isRegistered: true) else { return false }
            // Who has been asked and has answered is done with it; a member that is not asked looks on to the end.
            guard record.state(of: user) ?? .pending == .pending else { return false }
            guard record.group != nil, start == .cold else { return true }
            return record.sentAt.duration(to: now) <= Self.coldStart
        }
    }

    /// The records of invites, each once, oldest first.
    private func records(_ ids: [InviteID]) -> [InviteRecord] {
        Set(ids).compactMap { invites[$0] }.sorted { $0.number < $1.number }
    }

    func listInvites(_ params: InviteList, of session: Session, at now: Instant) -> InviteListText {
        let user = session.endpoint.user
        let own = records(openInvites.sent(by: user) + openInvites.received(by: user))
        let page = Page(
            own.lazy.filter { $0.number > params.after ?? 0 }.compactMap { record in
                record.listed(at: now).map { (record.number, $0) }
            }, bytes: \.utf8.count)
        return InviteListText(entries: page.entries, next: page.next)
    }
}
