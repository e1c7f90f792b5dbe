/// How many logins may fail before the next has to wait.
public struct FailedLogins: Hashable, Sendable {
    /// From one address.
    public var perAddress = 30
    /// At one account, from all addresses together from which it has not logged in lately.
    public var perAccount = 100
    /// In which time as many may fail again, evenly.
    public var window = Duration.seconds(600)

    /// The defaults.
    public init() {}
}
