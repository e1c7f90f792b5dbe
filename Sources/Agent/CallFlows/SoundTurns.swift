internal import BotWire

/// Whose turn it is to get sounds from a flow's server: each call gets one at a time, in the order in which calls asked, so that the slow sounds
/// of one call take no place of another one.
///
/// A call plays one sound at a time. What it has waited for before is therefore dropped when it asks for another one, unless it is being got
/// already, or other calls wait for it, too.
struct SoundTurns {
    /// Sounds that are got at a time: each may be in memory as a whole.
    static let mostRunning = 4
    /// Sounds that calls wait for.
    static let mostWaiting = 64

    private struct Waiting {
        let address: WebAddress
        /// The call that has asked first, whose turn it takes.
        let owner: String
        var isShared = false
    }

    /// By address, the call whose turn it takes.
    private var running: [WebAddress: String] = [:]
    private var waiting: [Waiting] = []

    /// Whether a sound is got, or waits for its turn.
    func contains(_ address: WebAddress) -> Bool {
        running[address] != nil || waiting.contains { $0.address == address }
    }

    /// Adds a sound that a call asks for, and is not there yet.
    ///
    /// - Returns: The sound that is dropped for it; nil if none is.
    /// - Throws: ``Full`` if too many wait.
    mutating func add(_ address: WebAddress, for owner: String) throws(Full) -> WebAddress? {
        let dropped = drop(of: owner, except: address)
        guard running.count + waiting.count < Self.mostWaiting else { throw Full() }
        waiting.append(Waiting(address: address, owner: owner))
        return dropped
    }

    /// Another call waits for a sound that is there already.
    ///
    /// - Returns: The sound that is dropped for it; nil if none is.
    mutating func share(_ address: WebAddress, with owner: String) -> WebAddress? {
        if let index = waiting.firstIndex(where: { $0.address == address }), waiting[index].owner != owner {
            waiting[index].isShared = true
        }
        return drop(of: owner, except: address)
    }

    private mutating func drop(of owner: String, except address: WebAddress) -> WebAddress? {
        guard
            let index = waiting.firstIndex(where: {
                $0.owner == owner && !$0.isShared && $0.address != address
            })
        else { return nil }
        return waiting.remove(at: index).address
    }

    /// The sound that is to be got now; nil if none is. It is got from then on.
    mutating func next() -> WebAddress? {
        guard running.count < Self.mostRunning,
            let index = waiting.firstIndex(where: { !running.values.contains($0.owner) })
        else { return nil }
        let chosen = waiting.remove(at: index)
        running[chosen.address] = chosen.owner
        return chosen.address
    }

    /// A sound was got, or not.
    mutating func end(_ address: WebAddress) { running[address] = nil }

    /// Too many sounds wait.
    struct Full: Error {}
}
