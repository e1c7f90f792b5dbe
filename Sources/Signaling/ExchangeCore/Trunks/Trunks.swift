import JSON
public import SignalWire
import Core

/// The trunks to telephone networks: the trunk of each number, who may call it and how often, and what is reported of
/// callers from there.
///
/// Calls cost money, so a call that is not explicitly allowed is refused. A call that comes by a trunk never goes out
/// by one, so that no call loops; and only a trunk may set a trunk's data in an invite.
struct Trunks: Sendable {
    /// The key of an invite's data that marks a call from or to a telephone network.
    static let key = "trunk"
    /// Bytes of a caller's number or name from outside.
    private static let callerBytes = 128
    private static let hour = Duration.seconds(3_600)

    /// A call that goes out.
    struct Departure: Sendable {
        let trunk: UserID
        let caller: UserID
    }

    /// What one user has done by one trunk.
    private struct Use: Sendable {
        /// When the calls of the last hour began, the oldest first.
        var begun: [Instant] = []
        /// Invites whose calls may not be over.
        var invites: [InviteID] = []
    }

    private struct UseKey: Hashable {
        let trunk: UserID
        let caller: UserID
    }

    private var trunks: [UserID: Trunk] = [:]
    private var table = NumberTable<UserID>()
    /// Capacity: the callers of all trunks, with ``Trunk/callsPerHour`` instants each, and those of ``left``.
    private var uses: [UseKey: Use] = [:]
    /// Uses by callers that are no longer listed. They may be listed again while their calls continue.
    private var left: Set<UseKey> = []

    init(_ trunks: [Trunk]) { adopt(trunks) }

    /// These are the trunks from now on. What was begun counts on, also if its trunk or caller is not listed for a while.
    mutating func adopt(_ list: [Trunk]) {
        trunks = Dictionary(list.map { ($0.user, $0) }) { first, _ in first }
        table = NumberTable()
        for trunk in list { for pattern in trunk.numbers { table.add(pattern, trunk.user) } }
        left = Set(uses.keys.filter { trunks[$0.trunk]?.callers.contains($0.caller) != true })
    }

    /// Whether an endpoint is a device of a trunk's account.
    func includes(_ endpoint: Endpoint) -> Bool {
        endpoint.principal.kind == .account && trunks[endpoint.user] != nil
    }

    /// The trunk of a name that is a telephone number, unless an account has that name.
    private func trunk(for name: UserID, _ directory: AccountDirectory) -> (Trunk, TelephoneNumber)? {
        guard !table.isEmpty, directory.account(called: name) == nil, let number = TelephoneNumber(name.text),
            let trunk = table[number].flatMap({ trunks[$0] })
        else { return nil }
        return (trunk, number)
    }

    /// Whether a name leads to a telephone network.
    private func leadsOut(_ name: UserID, _ directory: AccountDirectory) -> Bool {
        trunk(for: name, directory) != nil || directory.account(called: name).map { trunks[$0.id] != nil } ?? false
    }

    // MARK: - Invites

    /// Routes an invite that is about to be sent: an invite to a number is addressed to its trunk's account.
    ///
    /// - Parameter isOver: Whether an invite and the call that it has become have ended.
    /// - Returns: The argument of ``note(_:_:at:)`` once it is sent; `nil` if it does not go out.
    mutating func route(
        _ params: inout InviteSend, from inviter: Endpoint, _ directory: AccountDirectory, at now: Instant,
        isOver: (InviteID) -> Bool
    ) throws(RPCError) -> Departure? {
        if includes(inviter) {
            try admit(&params, directory)
            return nil
        }
        guard params.data?[Self.key] == nil else {
            throw RPCError(
                .invalidParams, "Only the exchange and its trunks set data.trunk: leave it out.")
        }
        guard params.to.contains(where: { leadsOut($0, directory) }) else { return nil }
        guard params.to.count == 1, params.group == nil, let (trunk, number) = trunk(for: params.to[0], directory)
        else {
            throw RPCError(
                .notAllowed, "Call a telephone number alone, and a trunk's account by a number instead of its name.")
        }
        guard inviter.principal.kind == .account, trunk.callers.contains(inviter.user) else {
            throw RPCError(
                .notAllowed,
                "This user may not call these telephone numbers; the exchange's operator lists users in "
                    + "trunks.callers.")
        }
        try checkUse(of: trunk, by: inviter.user, at: now, isOver)
        guard case .object(var data)? = params.data else {
            throw RPCError(.invalidParams, "An invite to a telephone number must be a call, with an offer in its data.")
        }
        data[Self.key] = ["dialled": .string(number.text)]
        params.data = .object(data)
        params.to = [trunk.user]
        return Departure(trunk: trunk.user, caller: inviter.user)
    }

    private mutating func checkUse(
        of trunk: Trunk, by caller: UserID, at now: Instant, _ isOver: (InviteID) -> Bool
    ) throws(RPCError) {
        for key in left { tidy(key, at: now, isOver) }
        let key = UseKey(trunk: trunk.user, caller: caller)
        guard let use = tidy(key, at: now, isOver) else { return }
        guard use.invites.count < trunk.callsAtOnce else {
            throw RPCError(
                .tooManyRequests,
                "This user already has \(trunk.callsAtOnce) calls to telephone numbers, the limit; end one.")
        }
        guard use.begun.count < trunk.callsPerHour else {
            throw RPCError(
                .tooManyRequests,
                "This user has begun \(trunk.callsPerHour) calls to telephone numbers within an hour, which is "
                    + "the limit; try again later.")
        }
    }

    /// Removes ended invites and old attempts from a use, and the use itself if it is empty then.
    @discardableResult
    private mutating func tidy(_ key: UseKey, at now: Instant, _ isOver: (InviteID) -> Bool) -> Use? {
        guard var use = uses[key] else { return nil }
        use.begun.removeAll { $0.duration(to: now) >= Self.hour }
        use.invites.removeAll(where: isOver)
        let isEmpty = use.begun.isEmpty && use.invites.isEmpty
        uses[key] = isEmpty ? nil : use
        if isEmpty { left.remove(key) }
        return uses[key]
    }

    /// An invite that goes out was sent.
    mutating func note(_ departure: Departure, _ invite: InviteID, at now: Instant) {
        let key = UseKey(trunk: departure.trunk, caller: departure.caller)
        uses[key, default: Use()].begun.append(now)
        uses[key, default: Use()].invites.append(invite)
    }

    /// Checks an invite of a trunk, and marks its caller as external in any case.
    private func admit(_ params: inout InviteSend, _ directory: AccountDirectory) throws(RPCError) {
        guard !params.to.contains(where: { leadsOut($0, directory) }) else {
            throw RPCError(.notAllowed, "A call that comes in by a trunk cannot go out by one.")
        }
        guard case .object(var data)? = params.data else {
            throw RPCError(.invalidParams, "A call by a trunk must have an offer in its data.")
        }
        var said: [String: JSONValue] = [:]
        for member in ["caller", "name"] {
            guard let text = data[Self.key]?[member]?.string else { continue }
            // What strangers say: one line, without characters that are not seen or that turn others round.
            guard text.utf8.count <= Self.callerBytes, (try? UserID(text)) != nil else {
                throw RPCError(
                    .invalidParams,
                    "data.trunk.\(member) must be a name of at most \(Self.callerBytes) bytes.")
            }
            // An external caller never appears as a local user, even if it claims such a number, address or name.
            if directory.looksLikeAccount(text) { continue }
            said[member] = .string(text)
        }
        data[Self.key] = .object(said)
        params.data = .object(data)
    }

    // MARK: - What comes later

    /// Looks at a change of an invite: what it says of a trunk stays.
    func check(_ params: InviteModify, of record: InviteRecord?) throws(RPCError) {
        guard params.data?[Self.key] == nil, record?.data?.value?[Self.key] == nil else {
            throw RPCError(.notAllowed, "The data of a call by a trunk cannot be changed.")
        }
    }

    /// Checks a transfer request: no user may have another user call a number.
    func check(_ params: CallSignal, _ directory: AccountDirectory) throws(RPCError) {
        guard params.type == Invites.transferKey, let target = params.data?["to"]?.string,
            let name = try? UserID(target), leadsOut(name, directory)
        else { return }
        throw RPCError(.notAllowed, "A call cannot be transferred to a telephone number.")
    }
}

/// An account whose devices carry calls to and from a telephone network, and who may have calls carried there.
public struct Trunk: Hashable, Sendable {
    /// The account.
    public var user: UserID
    /// Numbers that go this way.
    public var numbers: [NumberPattern]
    /// Users who may call these numbers.
    public var callers: Set<UserID> = []
    /// Calls that each of them may begin within an hour.
    public var callsPerHour = 20
    /// Calls that each of them may have at once.
    public var callsAtOnce = 2

    /// Makes a trunk that no user may call out by.
    public init(user: UserID, numbers: [NumberPattern]) {
        self.user = user
        self.numbers = numbers
    }
}
