internal import SignalingClient

/// The events of a device, as a sequence that any number of tasks may listen to.
///
/// Up to 4,096 events wait for the first listener; later listeners receive the events from then on. A listener that
/// falls further behind loses the newest events, which is logged.
public struct DeviceEvents: AsyncSequence, Sendable {
    /// What comes.
    public typealias Element = DeviceEvent
    /// It ends with the device.
    public typealias Failure = Never

    let hub = EventHub<DeviceEvent>(capacity: 4_096)

    /// Starts listening.
    public func makeAsyncIterator() -> AsyncStream<DeviceEvent>.Iterator { hub.listen().makeAsyncIterator() }
}
