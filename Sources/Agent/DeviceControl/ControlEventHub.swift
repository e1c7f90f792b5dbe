internal import ControlWire
internal import Synchronization

/// Sends events to all interfaces of a device, whichever interface the request came from that caused them.
final class ControlEventHub: Sendable {
    typealias Receiver = @Sendable (ControlEvent, String?) async -> Void

    private let receivers = Mutex<[Receiver]>([])

    /// Adds an interface, until the process ends.
    func add(_ receiver: @escaping Receiver) { receivers.withLock { $0.append(receiver) } }

    /// Sends an event to all interfaces.
    ///
    /// - Parameter account: The account that it is about; nil for the process, and for an account without a name.
    func publish(_ event: ControlEvent, of account: String?) async {
        for receiver in receivers.withLock({ $0 }) { await receiver(event, account) }
    }
}
