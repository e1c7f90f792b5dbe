// Core: points in time, and the one shape of every sans-I/O protocol core; bytes; addresses as values. No socket, file or clock.

/// A sans-I/O protocol core: its inputs are events with their time, and its outputs are actions for the caller.
///
/// The caller owns `outbox` and empties it after every call, so a core cannot be left half drained. A core reads no
/// clock, no random source and no socket; what it needs of them is part of its inputs.
public protocol ProtocolCore: ~Copyable {
    /// An input of the core.
    associatedtype Input
    /// An output of the core.
    associatedtype Output

    /// When `handle` must next be called even if nothing happens; `nil` means never.
    var nextDeadline: Instant? { get }

    /// Takes one input at time `now` and appends to `outbox` what is to be done, in order.
    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output])
}
