internal import CallControl
public import MediaEngine

/// How busy a device's media workers are, and what it does about that.
public struct DeviceLoad: Sendable, Equatable {
    /// Each worker's load, in their order.
    public let workers: [WorkerLoad]
    /// Whether one more call would be taken; always true where a number of calls is configured.
    public let takesCalls: Bool

    /// That of the busiest worker.
    public var busiest: WorkerLoad { workers.max { $0.share < $1.share } ?? WorkerLoad() }
    /// The highest complexity that every worker's Opus encoders may use; 10 limits nothing.
    public var complexityLimit: Int { workers.map(\.complexityLimit).min() ?? 10 }
}

// What a device does before its machine is overloaded: first the media workers reduce the effort of their encoders, and
// when nothing is left to save, new calls are refused as busy. Existing calls continue.
extension Device {
    /// How busy the device is.
    public var load: DeviceLoad { DeviceLoad(workers: engine.loads, takesCalls: !isFull) }

    /// Whether the machine carries one more outgoing call without harm to those that it has.
    public var hasRoomForCall: Bool { hasRoom() }

    /// Whether the machine can process one more call without harm to the existing ones. Reports when that changes.
    ///
    /// - Parameter id: The call that asks, which is among `calls` already; nil before there is one.
    func hasRoom(for id: CallID? = nil) -> Bool {
        guard configuration.answer.callLimit == .automatic else { return true }
        let unplaced = calls.reduce(0) { count, entry in
            let (other, call) = entry
            return other != id && call.media == nil && call.record == nil ? count + 1 : count
        }
        let isFullNow = !engine.hasRoom(besides: unplaced)
        if isFullNow != isFull {
            isFull = isFullNow
            tell(.loadChanged(load))
        }
        return !isFullNow
    }

    /// The workers have measured their loads.
    func noteLoad() {
        if isFull { _ = hasRoom() }
    }
}
