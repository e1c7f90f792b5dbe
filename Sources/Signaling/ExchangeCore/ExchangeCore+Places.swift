import SignalWire

/// Whether there is a place left for an invite.
///
/// An invite that has a ttl of 0 keeps its place for as long as the invitee likes, whether its inviter is there or not. So
/// no inviter may have more than a few with one invitee, and those whom the invitee does not know may have no more than a
/// share between them, however many they are.
extension ExchangeCore {
    /// - Throws: `tooManyRequests` if there is no place with one of the invitees, with the inviter or in the group. It says
    ///   which bound that is, and of others no more than that their invites are there.
    func checkSpace(for invitees: [UserID], in group: GroupID?, from inviter: UserID) throws(RPCError) {
        let limits = settings.invites
        guard openInvites.sent(by: inviter).count < limits.open else {
            throw RPCError(
                .tooManyRequests,
                "This user has \(limits.open) open invites already; cancel one, or wait until one is answered.")
        }
        for invitee in invitees { try checkSpace(with: invitee, from: inviter) }
        if let group { try checkSpace(in: group, from: inviter) }
    }

    private func checkSpace(with invitee: UserID, from inviter: UserID) throws(RPCError) {
        let limits = settings.invites
        let places = invitePlaces.toAnswer(by: invitee)
        guard places.count(of: inviter) < limits.ofPair else {
            throw RPCError(
                .tooManyRequests,
                "A user that is asked has \(limits.ofPair) invites of this user to answer already; cancel one, or wait "
                    + "until one is answered.")
        }
        guard acquaintances.has(invitee, inviter) || strangersPlaces(with: invitee) < limits.ofStrangers else {
            throw RPCError(
                .tooManyRequests,
                "A user that is asked has \(limits.ofStrangers) invites to answer already from users whose invites it "
                    + "has never accepted, as this user is; try again later, or let it call this user.")
        }
        guard places.count < limits.open else {
            throw RPCError(
                .tooManyRequests,
                "A user that is asked has \(limits.open) invites to answer already; try again later.")
        }
    }

    /// How many places with `invitee` are taken by those whom it does not know.
    ///
    /// - Complexity: Linear in the inviters that have a place.
    func strangersPlaces(with invitee: UserID) -> Int {
        invitePlaces.toAnswer(by: invitee).byInviter.reduce(0) { count, entry in
            acquaintances.has(invitee, entry.key) ? count : count + entry.value
        }
    }

    /// In a group, each member's first invite has a place of its own, and so have the owner's; the others share the rest.
    private func checkSpace(in group: GroupID, from inviter: UserID) throws(RPCError) {
        let limits = settings.invites
        let places = invitePlaces.inGroup(group)
        let own = places.count(of: inviter)
        guard own < limits.ofPair else {
            throw RPCError(
                .tooManyRequests,
                "This user has \(limits.ofPair) open invites in the group already; cancel one, or wait until one has "
                    + "ended.")
        }
        let owner = groups[group]?.owner
        guard own == 0 || inviter == owner || shared(places, but: owner) < limits.beyondFirst else {
            throw RPCError(
                .tooManyRequests,
                "The members of the group have \(limits.beyondFirst) open invites beyond their first already; cancel "
                    + "yours, or wait until one has ended.")
        }
        guard places.count < limits.open else {
            throw RPCError(
                .tooManyRequests, "There are \(limits.open) open invites in the group already; try again later.")
        }
    }

    private func shared(_ places: InvitePlaces.Table, but owner: UserID?) -> Int {
        places.byInviter.reduce(0) { count, entry in entry.key == owner ? count : count + entry.value - 1 }
    }

    /// Whoever is among the invitees has no place any more, because it has answered or need not.
    mutating func leavePlaces(of record: InviteRecord, _ invitees: [UserID]) {
        for invitee in invitees { invitePlaces.leave(record, by: invitee) }
    }
}
