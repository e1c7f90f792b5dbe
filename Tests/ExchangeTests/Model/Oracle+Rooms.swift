import JSON
import SignalWire
import Core

extension Oracle {
    struct GroupModel {
        let owner: String
        var members: [String]
        /// Those too that have left.
        var everybody: Set<String>
        var secrets: [String]
    }

    /// Takes in that a request was accepted, or says why it must not have been.
    func apply(_ frame: Frame, _ result: HeardResult.Body, hasMore: Bool) throws(Violation) {
        switch frame.method {
        case "ping": return
        case "session.start": return try applyStart(frame, result)
        default: break
        }
        guard let seat = seat(on: frame.connection) else {
            throw Violation(description: "\(frame.method) is accepted without a session")
        }
        switch frame.method {
        case "session.renew": return try applyRenewal(frame, seat)
        case "session.end": return applyEnd(seat)
        case "room.join": return try applyJoin(frame, seat, result, isWhole: !hasMore)
        case "room.leave": return try applyLeave(frame, seat)
        case "room.signal": return try applyRoomSignal(frame, seat)
        default: break
        }
        try require(seat.place.bearer.hasAccount, "\(seat.place) may \(frame.method), and is for rooms only")
        switch frame.method {
        case "device.register": applyRegistration(frame, seat)
        case "device.unregister": seats[seat.id]?.isRegistered = false
        case "presence.subscribe": seats[seat.id]?.hearsPresence = true
        case "presence.unsubscribe": seats[seat.id]?.hearsPresence = false
        case "invite.send": try applySend(frame, seat, result)
        case "invite.accept": try applyAnswer(frame, seat, "accepted")
        case "invite.reject": try applyAnswer(frame, seat, "rejected")
        case "invite.cancel": try applyChange(frame, seat, cancels: true)
        case "invite.modify": try applyChange(frame, seat, cancels: false)
        case "invite.list": try applyList(frame, seat, result, isWhole: !hasMore)
        case "call.signal": try applySignal(frame, seat)
        case "call.probe": try applyProbe(frame, seat, result)
        case "call.end": try applyHangUp(frame, seat)
        default: try applyGroup(frame, seat, result)
        }
    }

    private func applyList(
        _ frame: Frame, _ seat: Seat, _ result: HeardResult.Body, isWhole: Bool
    ) throws(Violation) {
        let listed = Set((result.invites ?? []).compactMap(\.invite))
        for id in listed {
            let invite = invites[id]
            let isOwn = invite.map { $0.user == seat.user || $0.invitees.contains(seat.user) } ?? false
            try require(isOwn, "\(seat.place) is shown an invite that is not its own")
        }
        guard isWhole, frame.params["after"] == nil else { return }
        for invite in invites.values where !invite.isOver {
            guard invite.user == seat.user || invite.states[seat.user] == .pending else { continue }
            let isDue = invite.ends.map { $0 <= now } ?? false
            try require(isDue || listed.contains(invite.id), "\(seat.place) is not shown its invite \(invite.id)")
        }
    }

    // MARK: - Rooms

    func occupants(of room: String) -> [Seat] { (rooms[room] ?? []).compactMap { seats[$0] } }

    private func applyJoin(
        _ frame: Frame, _ seat: Seat, _ result: HeardResult.Body, isWhole: Bool
    ) throws(Violation) {
        let room = frame.text("room") ?? ""
        if let bound = seat.room { try require(bound == room, "\(seat.place) joins \(room)") }
        if let token = frame.text("token") {
            let login = grant(of: token)?.1
            try require(login?.user == seat.user, "\(seat.place) joins with a token that is not good")
            if let bound = login?.room { try require(bound == room, "a token for \(bound) opens \(room)") }
            if let number = credentials[token]?.login { logins[number].isKnown = true }
        }
        let others = occupants(of: room).filter { $0.id != seat.id }
        let listed = result.participants ?? []
        for participant in listed {
            let isThere = (rooms[room] ?? []).contains {
                seats[$0]?.name == participant.connection && seats[$0]?.user == participant.user
            }
            try require(isThere, "\(participant.user) is said to be in \(room)")
        }
        if isWhole, frame.params["after"] == nil {
            let names = Set(listed.map(\.connection))
            for other in others where other.connection != nil {
                try require(names.contains(other.name), "\(other.place) is not listed in \(room)")
            }
        }
        let bearers = (others + [seat]).map(\.place.bearer)
        allow(others.flatMap { [$0.name] + (placeMarkers[$0.id] ?? []) }, [seat.place.bearer])
        guard rooms[room]?.contains(seat.id) != true else { return }
        rooms[room, default: []].insert(seat.id)
        seats[seat.id]?.rooms.insert(room)
        placeMarkers[seat.id, default: []] += frame.markers
        allow([seat.name] + (placeMarkers[seat.id] ?? []), bearers)
        for other in others { expect("connectionCreated \(room) \(seat.name)", of: other) }
    }

    private func applyLeave(_ frame: Frame, _ seat: Seat) throws(Violation) {
        let room = frame.text("room") ?? ""
        try require(seat.rooms.contains(room), "\(seat.place) leaves a room that it is not in")
        rooms[room]?.remove(seat.id)
        seats[seat.id]?.rooms.remove(room)
        for other in occupants(of: room) { expect("connectionDestroyed \(room) \(seat.name)", of: other) }
    }

    private func applyRoomSignal(_ frame: Frame, _ seat: Seat) throws(Violation) {
        let room = frame.text("room") ?? ""
        try require(seat.rooms.contains(room), "\(seat.place) signals in a room that it is not in")
        let receivers = occupants(of: room).filter { frame.text("to") == nil || frame.text("to") == $0.name }
        try require(!receivers.isEmpty, "\(seat.place) signals to nobody")
        allow(frame.markers, receivers.map(\.place.bearer))
        for receiver in receivers where receiver.connection != nil {
            expect("roomSignal \(frame.text("type") ?? "")", of: receiver)
        }
    }

    // MARK: - Groups

    /// A group is no more; invites that were sent in it go on without it.
    func dissolve(_ id: String) {
        let everybody = groups.removeValue(forKey: id)?.everybody ?? []
        for invite in invites.keys where invites[invite]?.group == id {
            invites[invite]?.group = nil
            invites[invite]?.formerMembers = everybody
        }
    }

    private func applyGroup(_ frame: Frame, _ seat: Seat, _ result: HeardResult.Body) throws(Violation) {
        let id = frame.text("group") ?? result.group ?? ""
        let group = groups[id]
        let isMember = group?.members.contains(seat.user) == true
        switch frame.method {
        case "group.create": try applyCreation(frame, seat, result.group ?? "")
        case "group.join": try applyMembership(id, seat)
        case "group.leave":
            try require(isMember && group?.owner != seat.user, "\(seat.place) leaves \(id)")
            groups[id]?.members.removeAll { $0 == seat.user }
            notify((group?.members ?? []), "groupChanged \(id) left \(seat.user)")
        case "group.dismiss":
            try require(group?.owner == seat.user, "\(seat.place) dismisses \(group?.owner ?? "")'s group")
            dissolve(id)
            // Who was away may still be told of it.
            allow(group?.secrets ?? [], [])
            notify((group?.members ?? []), "groupChanged \(id) dismissed \(seat.user)")
        case "group.members":
            try require(isMember, "\(seat.place) is told who is in a group that it is not in")
            try require(result.members == group?.members, "the members of \(id) are others")
        case "group.list":
            for entry in result.groups ?? [] {
                let isOwn = entry.group.flatMap { groups[$0]?.members.contains(seat.user) } ?? false
                try require(isOwn, "\(seat.place) is shown a group that it is not in")
            }
        default: throw Violation(description: "\(frame.method) is accepted")
        }
    }

    private func applyCreation(_ frame: Frame, _ seat: Seat, _ id: String) throws(Violation) {
        if let known = groups[id] { return try require(known.owner == seat.user, "\(seat.place) takes over \(id)") }
        var wanted: [JSONValue] = []
        if case .array(let members) = frame.params["members"] { wanted = members }
        var members = [seat.user]
        for user in wanted.map({ names[$0.string ?? ""] ?? "" }) where !members.contains(user) { members.append(user) }
        let secrets = frame.markers + Array(Secrets.all(in: Array(id.utf8)))
        remember(.group, id)
        groups[id] = GroupModel(owner: seat.user, members: members, everybody: Set(members), secrets: secrets)
        allow(secrets, accounts(members))
        notify(members, "groupChanged \(id) created \(seat.user)")
    }

    private func applyMembership(_ id: String, _ seat: Seat) throws(Violation) {
        guard let group = groups[id] else { throw Violation(description: "\(seat.place) joins no group: \(id)") }
        guard !group.members.contains(seat.user) else { return }
        groups[id]?.members.append(seat.user)
        groups[id]?.everybody.insert(seat.user)
        let open = invites.values.filter { $0.group == id && !$0.isOver }
        allow(group.secrets + open.flatMap(\.secrets), accounts([seat.user]))
        notify(group.members + [seat.user], "groupChanged \(id) joined \(seat.user)")
    }

    func notify(_ users: [String], _ key: String) {
        for user in users { for seat in registered(user) { expect(key, of: seat) } }
    }
}
