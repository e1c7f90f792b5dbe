import ExchangeStore
import SignalWire

/// One socket, for as long as it lives. Numbers are not used twice.
struct ConnectionID: Hashable, Sendable {
    var number: UInt64

    /// How the log calls the socket.
    var name: String { "c\(number)" }
}

/// One device of somebody: what a call's ends are, however often the device's connection changes.
struct Endpoint: Hashable, Sendable {
    let principal: Principal
    let device: DeviceID

    init(_ principal: Principal, _ device: DeviceID) {
        self.principal = principal
        self.device = device
    }

    /// A device of a user with an account: the only ones that call and are called.
    init(user: UserID, device: DeviceID) { self.init(.account(user), device) }

    /// Whose it is, by name.
    var user: UserID { principal.user }
}
