internal import SignalingClient

/// What happens to a device, as a sequence that any number of tasks may listen to.
///
/// Everything waits for the first listener, up to 4,096 events; later ones hear what comes from then on. A listener that
/// falls further behind than that loses the newest events, which is logged.
public struct DeviceEvents: AsyncSequence, Sendable {
    /// What comes.
    public typealias Element = DeviceEvent
    /// It ends with the device.
    public typealias Failure = Never

    let hub = EventHub<DeviceEvent>(capacity: 4_096)

    /// Starts listening.
    public func makeAsyncIterator() -> AsyncStream<DeviceEvent>.Iterator { hub.listen().makeAsyncIterator() }
}
