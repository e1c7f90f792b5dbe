internal import CallControl
internal import SignalWire
internal import Core

/// Requests that wait for their answers, each with the time at which it stops waiting.
///
/// Every request waits equally long, so that deadlines come in the order of the requests. Bounded by `capacity`.
struct RequestTable {
    /// What becomes of a request; called exactly once.
    typealias Completion = (Result<RPCMessage, SignalingError>) -> Void

    private struct Pending {
        /// The socket that it was sent on.
        let link: ObjectIdentifier
        let activity: String
        let complete: Completion
    }

    private var pending: [Int64: Pending] = [:]
    private var deadlines: [(id: Int64, at: Instant)] = []
    private var lastID: Int64 = 0
    private let timeout: Duration
    private let capacity: Int

    init(timeout: Duration, capacity: Int = 1_024) {
        self.timeout = timeout
        self.capacity = capacity
    }

    /// When `expire` must next be called.
    var nextDeadline: Instant? { deadlines.first?.at }

    /// Whether none waits for its answer.
    var isEmpty: Bool { pending.isEmpty }

    /// Whether one more request fits.
    var hasRoom: Bool { pending.count < capacity }

    /// Notes a request about to be sent on `link` and gives it its number.
    mutating func add(
        on link: AnyObject, doing activity: String, at now: Instant, _ complete: @escaping Completion
    ) -> Int64 {
        lastID += 1
        pending[lastID] = Pending(link: ObjectIdentifier(link), activity: activity, complete: complete)
        deadlines.append((lastID, now.advanced(by: timeout)))
        return lastID
    }

    /// Removes the request that an answer belongs to; `nil` if no request waits for it.
    mutating func take(_ id: RPCID?) -> (activity: String, complete: Completion)? {
        guard case .number(let number)? = id, let entry = pending.removeValue(forKey: number) else { return nil }
        if pending.isEmpty {
            deadlines.removeAll(keepingCapacity: true)
        } else if deadlines.first?.id == number {
            let answered = deadlines.prefix { pending[$0.id] == nil }.count
            deadlines.removeFirst(answered)
        }
        return (entry.activity, entry.complete)
    }

    /// Takes those whose time is up.
    mutating func takeExpired(at now: Instant) -> [() -> Void] {
        let late = deadlines.prefix { $0.at <= now }
        deadlines.removeFirst(late.count)
        return late.compactMap { pending.removeValue(forKey: $0.id) }.map { entry in
            let cause = "the exchange did not answer within \(timeout.text)"
            return { entry.complete(.failure(SignalingError(.timedOut, activity: entry.activity, cause: cause))) }
        }
    }

    /// Takes those that were sent on `link`, in their order: it is gone.
    mutating func takeAll(on link: AnyObject) -> [() -> Void] {
        let link = ObjectIdentifier(link)
        let taken = pending.filter { $0.value.link == link }.sorted { $0.key < $1.key }
        for (id, _) in taken { pending[id] = nil }
        deadlines.removeAll { pending[$0.id] == nil }
        return taken.map { _, entry in
            { entry.complete(.failure(.connectionGone(entry.activity))) }
        }
    }
}

extension RPCMethod {
    /// This request as a message.
    func message(id: Int64, doing activity: String) throws(SignalingError) -> [UInt8] {
        let message: [UInt8]
        do throws(SignalCodingError) {
            message = try SignalCoding.request(id: .number(id), self)
        } catch {
            throw SignalingError(.invalidRequest, activity: activity, cause: "\(error)")
        }
        guard message.count <= SignalLimits.messageBytes else {
            let cause = "the message has \(message.count) bytes; \(SignalLimits.messageBytes) are allowed"
            throw SignalingError(.tooLarge, activity: activity, cause: cause)
        }
        return message
    }
}

extension RPCMessage {
    /// What this answer to a request says.
    func result<Method: RPCMethod>(
        of method: Method.Type, doing activity: String
    ) -> Result<Method.Result, SignalingError> {
        do throws(SignalCodingError) {
            return .success(try result(Method.Result.self))
        } catch {
            return .failure(
                SignalingError(.notAnExchange, activity: activity, cause: "its answer cannot be read: \(error)"))
        }
    }
}

extension SignalingError {
    /// There is no connection to send on, or it went away before the answer came.
    static func connectionGone(_ activity: String) -> SignalingError {
        SignalingError(
            .disconnected, activity: activity, cause: "there is no connection to the exchange",
            advice: "Try again once it is back.")
    }
}
