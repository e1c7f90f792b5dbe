/// A user's id, as in the configuration.
typealias UserID = String
/// A device's id, unique among its user's devices.
typealias DeviceID = String
/// An invite's id, given by the exchange.
typealias InviteID = String
/// A room's name.
typealias RoomName = String
/// A group's id, given by its owner or the exchange.
typealias GroupID = String
/// A session's id, given by the exchange.
typealias SessionID = String

/// One socket, for as long as it lives. Numbers are not used twice.
struct ConnectionID: Hashable, Sendable {
    var number: UInt64

    /// How the log calls the socket.
    var name: String { "c\(number)" }
}

/// One device of one user: what a call's ends are, however often the device's connection changes.
struct Endpoint: Hashable, Sendable {
    var user: UserID
    var device: DeviceID
}

/// Makes ids that no other run of an exchange makes.
struct IDSource: Sendable {
    private let run: String
    private var count: UInt64 = 0

    /// - Parameter run: A random number, different for each run of the exchange.
    init(run: UInt64) { self.run = String(run, radix: 36) }

    /// The next id, such as `invite-2k3j9x-17`.
    mutating func next(_ kind: String) -> String {
        count += 1
        return "\(kind)-\(run)-\(count)"
    }
}
