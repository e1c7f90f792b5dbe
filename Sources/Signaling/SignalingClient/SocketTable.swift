internal import Core

/// The sockets of the connection: the one in use and, while the device moves to another connection, the next one
/// (contract CONN-12).
///
/// Each belongs to an attempt of the connection's machine. The caller that removes a socket closes it.
struct SocketTable<Socket: AnyObject> {
    private struct Entry {
        let attempt: Int
        let socket: Socket
    }

    /// Where the exchange asks the device to move to, and when it does so at the latest.
    struct Move {
        let address: String?
        fileprivate let deadline: Instant
    }

    private var present: Entry?
    private var next: Entry?
    /// The attempt whose socket is open, which is kept from the machine while requests wait on the present one.
    private var openAttempt: Int?
    private var move: Move?

    /// The socket that requests go out on.
    var current: Socket? { present?.socket }

    /// Whether the next socket is open and replaces the present one as soon as no request waits.
    var isReplacing: Bool { openAttempt != nil }

    /// When ``takeMove(isQuiet:at:)`` must next be called.
    var nextDeadline: Instant? { move?.deadline }

    /// The socket of an attempt; nil if it has none, or has none any more.
    func socket(of attempt: Int) -> Socket? {
        if let next, next.attempt == attempt { return next.socket }
        return present?.attempt == attempt ? present?.socket : nil
    }

    /// Adds the socket that an attempt opens.
    ///
    /// - Parameter isNext: Whether it is to replace the present one later, and not now.
    /// - Returns: The socket that it replaces.
    mutating func add(_ socket: Socket, of attempt: Int, isNext: Bool) -> Socket? {
        let entry = Entry(attempt: attempt, socket: socket)
        guard !isNext else {
            next = entry
            return nil
        }
        defer { present = entry }
        return present?.socket
    }

    /// The use of an open socket.
    enum Use: Hashable {
        /// It is the one that requests go out on.
        case present
        /// It replaces the present one.
        case next
        /// It was given up in the meantime.
        case none
    }

    /// The socket of an attempt is open.
    mutating func open(_ socket: Socket, of attempt: Int) -> Use {
        if present?.socket === socket { return .present }
        guard next?.socket === socket else { return .none }
        openAttempt = attempt
        return .next
    }

    /// Takes the attempt whose open socket may now replace the present one.
    mutating func takeOpenAttempt(isQuiet: Bool) -> Int? {
        guard isQuiet else { return nil }
        defer { openAttempt = nil }
        return openAttempt
    }

    /// Puts the next socket in the place of the present one, if that has not ended already.
    ///
    /// - Returns: The socket that was replaced.
    mutating func replace(with attempt: Int) -> Socket? {
        guard let next, next.attempt == attempt else { return nil }
        defer {
            present = next
            self.next = nil
        }
        return present?.socket
    }

    /// Removes the socket of an attempt; the next one, if there is one, is then the only one.
    mutating func remove(_ attempt: Int) -> Socket? {
        if openAttempt == attempt { openAttempt = nil }
        guard let gone = socket(of: attempt) else { return nil }
        if gone === present?.socket { present = next }
        next = nil
        return gone
    }

    /// Removes all sockets.
    mutating func removeAll() -> [Socket] {
        defer { (present, next, openAttempt) = (nil, nil, nil) }
        return [next, present].compactMap { $0?.socket }
    }

    // MARK: Moving

    /// The exchange requests a move to another connection within `limit`. Half of that time is reserved for requests
    /// that wait for answers.
    mutating func requestMove(to address: String?, within limit: Duration, at now: Instant) {
        let patience = min(max(limit, .zero), .seconds(60)) * 0.5
        move = Move(address: address, deadline: now.advanced(by: patience))
    }

    /// Takes the move that is now to be made: no request waits, or it has waited long enough.
    mutating func takeMove(isQuiet: Bool, at now: Instant) -> Move? {
        guard let move, isQuiet || now >= move.deadline else { return nil }
        self.move = nil
        return move
    }

    /// No move is needed: the connection is made again anyway.
    mutating func cancelMove() { move = nil }
}
