public import Core

/// Lets requests through once the device is logged in (contract AUTH-6, AUTH-7).
///
/// Before login a request fails at once. While login is under way an answer to an invite waits for it, bounded in
/// number and in time, and everything else fails. `Ticket` names a request; the caller keeps the request itself.
public struct AuthenticationGate<Ticket: Hashable & Sendable>: ProtocolCore, Sendable {
    /// The inputs.
    public enum Input: Sendable {
        /// A request to send; `waits` says whether it may wait for a login under way.
        case request(Ticket, waits: Bool)
        case loginStarted
        case loginSucceeded
        case loginFailed(SignalingError)
        case loggedOut
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        /// Send it, now and once.
        case proceed(Ticket)
        /// Report the failure to the requester.
        case fail(Ticket, SignalingError)
    }

    enum State: Sendable {
        case closed
        case opening(held: [Held])
        case open
    }

    struct Held: Hashable, Sendable {
        let ticket: Ticket
        let deadline: Instant
    }

    var current = State.closed
    private let capacity: Int
    private let patience: Duration

    /// Makes a closed gate.
    ///
    /// - Parameters:
    ///   - capacity: Requests that may wait at once; one more fails with `tooManyRequests`.
    ///   - patience: How long one may wait.
    public init(capacity: Int = 64, patience: Duration = .seconds(15)) {
        self.capacity = capacity
        self.patience = patience
    }

    /// Whether requests go straight through.
    public var isOpen: Bool {
        switch current {
        case .open: true
        case .closed, .opening: false
        }
    }

    /// When `handle` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch current {
        case .opening(let held): held.first?.deadline  // All wait equally long, so the first is the earliest.
        case .closed, .open: nil
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (current, input) {
        case (.open, .request(let ticket, _)):
            outbox.append(.proceed(ticket))
        case (.closed, .request(let ticket, _)), (.opening, .request(let ticket, waits: false)):
            outbox.append(.fail(ticket, Self.notAuthenticated))
        case (.opening(var held), .request(let ticket, waits: true)):
            guard held.count < capacity else {
                outbox.append(.fail(ticket, Self.tooMany(capacity)))
                return
            }
            held.append(Held(ticket: ticket, deadline: now.advanced(by: patience)))
            current = .opening(held: held)

        case (.closed, .loginStarted), (.open, .loginStarted):
            current = .opening(held: [])
        case (.opening(let held), .loginSucceeded):
            current = .open
            for request in held { outbox.append(.proceed(request.ticket)) }
        case (.opening(let held), .loginFailed(let error)):
            fail(held, with: error, into: &outbox)
        case (.opening(let held), .loggedOut):
            fail(held, with: Self.notAuthenticated, into: &outbox)
        case (.closed, .loginSucceeded):
            current = .open
        case (.open, .loginFailed), (.open, .loggedOut), (.closed, .loginFailed), (.closed, .loggedOut):
            current = .closed

        case (.opening(let held), .timerFired):
            current = .opening(held: held.filter { $0.deadline > now })
            for late in held where late.deadline <= now {
                outbox.append(.fail(late.ticket, Self.waitedInVain(patience)))
            }

        case (.opening, .loginStarted), (.open, .loginSucceeded), (.closed, .timerFired), (.open, .timerFired):
            break
        }
    }

    private mutating func fail(_ held: [Held], with error: SignalingError, into outbox: inout [Output]) {
        current = .closed
        for request in held { outbox.append(.fail(request.ticket, error)) }
    }

    private static var activity: String { "send a request to the service" }

    private static var notAuthenticated: SignalingError {
        SignalingError(
            .notAuthenticated, activity: activity, cause: "this device is not logged in",
            advice: "Log in and wait until that is done.")
    }

    private static func tooMany(_ capacity: Int) -> SignalingError {
        SignalingError(
            .tooManyRequests, activity: activity, cause: "\(capacity) answers already wait for the login")
    }

    private static func waitedInVain(_ patience: Duration) -> SignalingError {
        SignalingError(.timedOut, activity: activity, cause: "the login did not complete within \(patience.text)")
    }
}
