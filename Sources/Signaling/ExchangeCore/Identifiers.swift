package import SignalWire

/// One socket, for as long as it lives. Numbers are not used twice.
package struct ConnectionID: Hashable, Sendable {
    package var number: UInt64

    /// Names a connection by a number that no other has.
    package init(number: UInt64) { self.number = number }

    /// How the log calls the socket.
    package var name: String { "c\(number)" }
}

/// One device of a principal: a party of a call, however often the device's connection changes.
package struct Endpoint: Hashable, Sendable {
    package let principal: Principal
    package let device: DeviceID

    init(_ principal: Principal, _ device: DeviceID) {
        self.principal = principal
        self.device = device
    }

    /// A device of a user with an account: the only ones that call and are called.
    package init(user: UserID, device: DeviceID) { self.init(.account(user), device) }

    /// Whose it is, by name.
    package var user: UserID { principal.user }
}
