internal import ConfigReader

extension DeviceConfiguration {
    /// Sections whose changes a device takes while it runs; ``BehaviourConfiguration`` as far as ``adopt(_:)`` says.
    public static let adoptedSections = ["answer", "behaviour", "invites"]

    /// Takes from another configuration what holds for calls that begin from now on.
    ///
    /// - Returns: Whether its behaviour was taken, too. A sound card, programs and bots are set up at a device's start, so
    ///   a behaviour is not taken that needs another one of them; then the earlier one stays as a whole.
    mutating func adopt(_ other: DeviceConfiguration) -> Bool {
        answer = other.answer
        invites = other.invites
        guard behaviour.needs == other.behaviour.needs else { return false }
        let capture = behaviour.capture
        behaviour = other.behaviour
        behaviour.capture = capture
        return true
    }
}

extension BehaviourConfiguration {
    /// With a program or bot as source the attachment is that, too.
    fileprivate var needs: Source.Needs { (attachment ?? source).needs }
}
