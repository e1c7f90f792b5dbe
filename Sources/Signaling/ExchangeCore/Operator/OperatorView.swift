package import Core
package import SignalWire

/// A part of a list that an operator reads: bounded in entries, and in what is looked at for it, so that no list holds up the exchange.
package struct OperatorPage<Entry: Sendable>: Sendable {
    /// The entries, in the order of the list.
    package internal(set) var entries: [Entry] = []
    /// Where the next page begins; nil at the end. A page may have a next one and no entry.
    package internal(set) var next: String?
}

/// What an operator sees of the exchange. No list has a secret, or the data of an invite.
package enum OperatorView {
    /// Entries in one page, unless fewer are requested.
    package static let mostEntries = 100
    /// Users whose invites, calls or groups are looked at for one page: most have none.
    package static let mostUsers = 1_000
    /// Devices of users, and members of rooms, groups and invites in one page, unless the first entry alone has more.
    package static let mostMembers = 1_000

    /// A user, and its devices that are or were just connected.
    package struct User: Hashable, Sendable {
        package let id: UserID
        package let publicIDs: [UserID]
        package let devices: [Device]
    }

    /// A device with a session.
    package struct Device: Hashable, Sendable {
        package let id: DeviceID
        package let name: String
        /// Whether it has a connection now; else it may resume its session.
        package let isConnected: Bool
        /// Whether it receives invites.
        package let isRegistered: Bool
        /// Whether it is a stream over WHIP or WHEP.
        package let isStream: Bool
    }

    /// An open invite.
    package struct Invite: Hashable, Sendable {
        package let id: InviteID
        package let inviter: Endpoint
        package let group: GroupID?
        package let invitees: [UserID]
        package let pending: [UserID]
        package let age: Duration
        /// Nil without a limit.
        package let remaining: Duration?
    }

    /// A running call.
    package struct Call: Hashable, Sendable {
        package let invite: InviteID
        package let inviter: Endpoint
        package let invitee: Endpoint
        package let duration: Duration
    }

    /// A room with someone in it.
    package struct Room: Hashable, Sendable {
        package let name: RoomName
        package let members: [Member]
    }

    /// One in a room.
    package struct Member: Hashable, Sendable {
        package let user: UserID
        package let device: DeviceID
        package let connection: ConnectionName
        package let role: RoomRole?
    }

    /// A group.
    package struct Group: Hashable, Sendable {
        package let id: GroupID
        package let name: String?
        package let owner: UserID
        package let members: [UserID]
    }
}

/// The lists. Nothing here changes anything; it is `mutating` for the reason that `ExchangeCore+Interface.swift` has.
extension ExchangeCore {
    /// Users in the order of their ids, after the user `after`.
    package mutating func users(after: String?, atMost limit: Int) -> OperatorPage<OperatorView.User> {
        var page = OperatorPage<OperatorView.User>()
        let all = accounts.directory.all
        let first = Self.index(after: after, in: all)
        var members = 0
        for (index, account) in zip(first..., all[first...].prefix(limit)) {
            let devices = devices(of: account.id)
            page.entries.append(OperatorView.User(id: account.id, publicIDs: account.publicIDs, devices: devices))
            members += devices.count
            guard page.entries.count < limit, members < OperatorView.mostMembers else {
                page.next = index + 1 < all.count ? account.id.text : nil
                return page
            }
        }
        return page
    }

    private func devices(of user: UserID) -> [OperatorView.Device] {
        let own = sessions.sessions(of: user).map { OperatorView.Device($0, isConnected: true) }
        let left = sessions.detached(of: .account(user)).map { OperatorView.Device($0.session, isConnected: false) }
        return own + left
    }

    /// Open invites, in the order of their inviters, and the oldest of each first.
    package mutating func openInvites(
        after: OperatorCursor?, atMost limit: Int, at now: Instant
    ) -> OperatorPage<OperatorView.Invite> {
        byUser(after: after, atMost: limit) { [invites] user, after, room in
            invites.sent(by: user, after: after?.number ?? 0, atMost: room).map { record in
                let entry = OperatorView.Invite(
                    id: record.id, inviter: record.inviter, group: record.group, invitees: record.invitees,
                    pending: record.pending, age: record.sentAt.duration(to: now),
                    remaining: record.deadline.map { max(.zero, now.duration(to: $0)) })
                return (.number(record.number), entry, record.invitees.count)
            }
        }
    }

    /// Running calls, in the order of their inviters, and the oldest of each first.
    package mutating func runningCalls(
        after: OperatorCursor?, atMost limit: Int, at now: Instant
    ) -> OperatorPage<OperatorView.Call> {
        byUser(after: after, atMost: limit) { [invites] user, after, room in
            invites.calls.calls(by: user, after: after?.number ?? 0, atMost: room).map { number, call in
                let entry = OperatorView.Call(
                    invite: call.invite, inviter: call.inviter, invitee: call.invitee,
                    duration: call.acceptedAt.duration(to: now))
                return (.number(number), entry, 1)
            }
        }
    }

    /// Groups, in the order of their owners, and those of each in the order of their ids.
    package mutating func allGroups(
        after: OperatorCursor?, atMost limit: Int
    ) -> OperatorPage<OperatorView.Group> {
        byUser(after: after, atMost: limit) { [groups] user, after, room in
            groups.groups(ownedBy: user, after: after?.name, atMost: room).map { group in
                let entry = OperatorView.Group(
                    id: group.id, name: group.name, owner: group.owner, members: group.members)
                return (.name(group.id.text), entry, group.members.count)
            }
        }
    }

    /// Rooms in the order of their names, after the room `after`.
    package mutating func allRooms(after: String?, atMost limit: Int) -> OperatorPage<OperatorView.Room> {
        var page = OperatorPage<OperatorView.Room>()
        let (names, hasMore) = rooms.names(after: after, atMost: limit)
        var members = 0
        for (index, name) in names.enumerated() {
            let occupants = rooms.occupants(of: name)
            members += occupants.count
            page.entries.append(
                OperatorView.Room(
                    name: name,
                    members: occupants.map {
                        OperatorView.Member(
                            user: $0.endpoint.user, device: $0.endpoint.device, connection: $0.participant.connection,
                            role: $0.participant.role)
                    }))
            if index == names.count - 1 ? hasMore : members >= OperatorView.mostMembers {
                page.next = name.text
                return page
            }
        }
        return page
    }

    /// Invites that are open now.
    package mutating func countOpenInvites() -> Int { invites.openCount }
    /// Users with an account.
    package mutating func countUsers() -> Int { accounts.directory.all.count }

    /// A list that is kept by user. What begins or ends between two pages may be missing; nothing else is, and nothing comes twice.
    ///
    /// - Parameter entries: Those of a user behind a position, with the position of each and what it weighs, and no more than there is
    ///   room for.
    private func byUser<Entry: Sendable>(
        after cursor: OperatorCursor?, atMost limit: Int,
        _ entries: (UserID, OperatorCursor.Position?, Int) -> [(OperatorCursor.Position, Entry, weight: Int)]
    ) -> OperatorPage<Entry> {
        var page = OperatorPage<Entry>()
        var weight = 0
        let all = accounts.directory.all
        var first = Self.index(after: cursor?.user, in: all)
        var position = cursor?.position
        if position != nil, first > 0, all[first - 1].id.text == cursor?.user { first -= 1 } else { position = nil }
        for index in all.indices[first...] {
            let user = all[index].id
            for (place, entry, size) in entries(user, position, limit - page.entries.count) {
                page.entries.append(entry)
                weight += size
                guard page.entries.count < limit, weight < OperatorView.mostMembers else {
                    page.next = OperatorCursor(user: user.text, position: place).text
                    return page
                }
            }
            position = nil
            if index - first + 1 >= OperatorView.mostUsers, index + 1 < all.count {
                page.next = OperatorCursor(user: user.text, position: nil).text
                return page
            }
        }
        return page
    }

    /// The index of the first account behind an id, in a list in the order of ids.
    private static func index(after id: String?, in all: [Account]) -> Int {
        guard let id else { return 0 }
        return all.sortedIndex(behind: { $0.id.text > id })
    }
}

/// Where a page of a list begins that is kept by user: behind an entry of a user, or behind all of them.
package struct OperatorCursor: Hashable, Sendable {
    /// The position of an entry among those of its user.
    enum Position: Hashable, Sendable {
        case number(UInt64)
        case name(String)

        var number: UInt64? { if case .number(let number) = self { number } else { nil } }
        var name: String? { if case .name(let name) = self { name } else { nil } }
    }

    let user: String
    let position: Position?

    init(user: String, position: Position?) {
        self.user = user
        self.position = position
    }

    /// Reads a cursor; nil for a text that is none.
    package init?(_ text: String) {
        guard let bytes = Base64URL.bytes(of: text.utf8) else { return nil }
        // No name has a line break.
        let parts = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty else { return nil }
        switch (parts[1].isEmpty, parts[2].isEmpty) {
        case (true, true): position = nil
        case (false, true):
            guard let number = UInt64(parts[1]) else { return nil }
            position = .number(number)
        case (true, false): position = .name(String(parts[2]))
        case (false, false): return nil
        }
        user = String(parts[0])
    }

    /// The cursor as text, for clients to give back.
    package var text: String {
        let number = position?.number.map { "\($0)" } ?? ""
        return Base64URL.text(Array("\(user)\n\(number)\n\(position?.name ?? "")".utf8))
    }
}

extension OperatorView.Device {
    fileprivate init(_ session: Session, isConnected: Bool) {
        id = session.endpoint.device
        name = session.device.name
        self.isConnected = isConnected
        isRegistered = session.isRegistered
        isStream = session.isInternal
    }
}
