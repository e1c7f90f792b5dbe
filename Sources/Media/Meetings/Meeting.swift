/// One meeting: who is in it, who joins, and which tones are heard. Pure, and the one owner of what its calls have in common.
public struct Meeting: Equatable, Sendable {
    /// What has happened.
    public enum Input: Equatable, Sendable {
        /// A call is to join; it counts as a member from then on.
        case joined(UInt64)
        /// The first sound of a member has come.
        case present(UInt64)
        /// A member is heard by the others, or no longer.
        case heard(UInt64, Bool)
        /// A member is muted, or no longer.
        case muted(UInt64, Bool)
        /// A member has left, or never became present.
        case left(UInt64)
    }

    /// What is to be done, and what has happened.
    public enum Output: Equatable, Sendable {
        /// Seat the member in the mix.
        case seat(UInt64)
        /// Remove the member from the mix.
        case unseat(UInt64)
        /// Keep the member out of the mix, or no longer.
        case mute(UInt64, Bool)
        /// Have all members hear a tone.
        case sound(MeetingTone)
        /// Report that the member takes part, with this number of present members.
        case entered(UInt64, members: Int)
        /// Report that the member speaks, or has spoken.
        case speaks(UInt64, Bool)
        /// The last member has left: the meeting ends.
        case close
    }

    /// What is known of a member.
    public struct Member: Equatable, Sendable {
        /// Whether its first sound has come.
        public fileprivate(set) var isPresent = false
        /// Whether the others hear it.
        public fileprivate(set) var speaks = false
        /// Whether it is muted.
        public fileprivate(set) var isMuted = false
    }

    /// The members, also those whose calls are being set up.
    public private(set) var members: [UInt64: Member] = [:]
    private let hasTones: Bool

    /// A meeting without members.
    ///
    /// - Parameter hasTones: Whether a tone is heard when a member joins or leaves.
    public init(hasTones: Bool) { self.hasTones = hasTones }

    /// Members, also those whose calls are being set up.
    public var count: Int { members.count }

    /// Whether no member is left.
    public var isEmpty: Bool { members.isEmpty }

    /// Takes what has happened. Unknown members are ignored.
    public mutating func handle(_ input: Input, into outbox: inout [Output]) {
        switch input {
        case .joined(let member):
            guard members[member] == nil else { return }
            members[member] = Member()
            outbox.append(.seat(member))
        case .present(let member):
            guard members[member]?.isPresent == false else { return }
            members[member]?.isPresent = true
            outbox.append(.entered(member, members: members.values.count(where: \.isPresent)))
            if hasTones { outbox.append(.sound(.entry)) }
        case .heard(let member, let isHeard): note(member, speaks: isHeard, into: &outbox)
        case .muted(let member, let isMuted):
            guard members[member].map({ $0.isMuted != isMuted }) ?? false else { return }
            members[member]?.isMuted = isMuted
            outbox.append(.mute(member, isMuted))
        case .left(let member): leave(member, into: &outbox)
        }
    }

    private mutating func note(_ member: UInt64, speaks: Bool, into outbox: inout [Output]) {
        guard let known = members[member], known.speaks != speaks else { return }
        members[member]?.speaks = speaks
        outbox.append(.speaks(member, speaks))
    }

    private mutating func leave(_ member: UInt64, into outbox: inout [Output]) {
        guard let former = members[member] else { return }
        note(member, speaks: false, into: &outbox)
        members[member] = nil
        outbox.append(.unseat(member))
        if members.isEmpty {
            outbox.append(.close)
        } else if former.isPresent, hasTones {
            outbox.append(.sound(.exit))
        }
    }
}
