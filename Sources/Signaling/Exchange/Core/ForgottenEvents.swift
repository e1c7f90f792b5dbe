import SignalWire

/// Up to which number a user's events are kept no longer, for each of its devices: one that is quiet goes on with its
/// session, however much was told to the others (CONN-5).
///
/// Capacity: ``devices`` devices with events of their own; beyond that the one that had its last longest ago counts with
/// all others.
struct ForgottenEvents: Sendable {
    static let devices = 128

    /// For any device.
    private var byAll: UInt64
    /// Of those for one device.
    private var byDevice: [DeviceID: UInt64] = [:]
    /// Of those for registered devices, and which one the newest was not for.
    private var newest: (number: UInt64, except: DeviceID?) = (0, nil)
    /// The newest of those that were for the device that the newest was not for.
    private var before: UInt64 = 0

    /// - Parameter number: Of events up to this one it is not known any more whom they were for.
    init(upTo number: UInt64 = 0) { byAll = number }

    /// Notes that an event is kept no longer; they come in the order of their numbers.
    mutating func add(_ number: UInt64, for audience: Audience) {
        switch audience {
        case .device(let device):
            byDevice[device] = number
            guard byDevice.count > Self.devices, let oldest = byDevice.min(by: { $0.value < $1.value }) else { return }
            byDevice[oldest.key] = nil
            byAll = max(byAll, oldest.value)
        case .registered(let except):
            if except != newest.except { before = newest.number }
            newest = (number, except)
        }
    }

    /// The newest number that is kept no longer and was for a device.
    func newest(for device: DeviceID, isRegistered: Bool) -> UInt64 {
        let own = max(byAll, byDevice[device] ?? 0)
        guard isRegistered else { return own }
        return max(own, newest.except == device ? before : newest.number)
    }
}
