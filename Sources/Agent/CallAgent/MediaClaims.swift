/// What the devices that share media have claimed of it: room for calls that no worker runs yet, the sound card where one call may
/// have it, and numbers. A value without a lock.
struct MediaClaims {
    /// Streams of each device's calls that are admitted and that no worker runs yet.
    private var unplaced: [UInt16: Int] = [:]
    /// Whether the last call that asked for room was refused, and there has been none since.
    private(set) var isFull = false
    private var callOnCard: CallID?
    private var lastCall: UInt64 = 0
    private var captures = 0

    // MARK: Room

    /// Notes what a device's calls need that no worker runs yet.
    mutating func note(unplaced count: Int, of owner: UInt16) { unplaced[owner] = count == 0 ? nil : count }

    /// What the calls of all devices but this one need that no worker runs yet.
    private func others(than owner: UInt16) -> Int { unplaced.reduce(0) { $1.key == owner ? $0 : $0 + $1.value } }

    /// Checks for a device that there is room for a call.
    ///
    /// - Parameters:
    ///   - streams: What the call takes.
    ///   - count: What the device's other calls need that no worker runs yet.
    ///   - isCall: Whether there is a call that takes it if it fits; not if the device merely wants to know.
    ///   - fits: Whether the workers have room for `streams` besides as many that none of them runs yet.
    /// - Returns: Whether there is room. For a call it is reserved then, until the device notes what its calls need.
    mutating func ask(
        streams: Int, besides count: Int, isCall: Bool, of owner: UInt16, fits: (_ unplaced: Int) -> Bool
    ) -> Bool {
        let hasRoom = fits(count + others(than: owner))
        if isCall { note(unplaced: hasRoom ? count + streams : count, of: owner) }
        return hasRoom
    }

    /// Notes whether the machine has room for one more call; true if that has changed.
    mutating func noteFull(_ isFullNow: Bool) -> Bool {
        defer { isFull = isFullNow }
        return isFullNow != isFull
    }

    /// A device has ended.
    mutating func forget(_ owner: UInt16) { unplaced[owner] = nil }

    // MARK: The sound card

    /// Gives the card to a call, for a device whose calls refuse each other; false if another call has it.
    ///
    /// - Parameter former: The call whose place it takes, which gives the card up.
    mutating func claimCard(for call: CallID, inPlaceOf former: CallID? = nil) -> Bool {
        if let callOnCard, callOnCard != call, callOnCard != former { return false }
        callOnCard = call
        return true
    }

    /// A call has ended.
    mutating func releaseCard(of call: CallID) { if callOnCard == call { callOnCard = nil } }

    // MARK: Numbers

    /// The number of a new call, which no other call of the process has or had.
    mutating func nextCall() -> UInt64 {
        lastCall += 1
        return lastCall
    }

    /// The number of the next captured call, from 1; nil if as many are captured as may be.
    mutating func nextCapture() -> Int? {
        guard captures < BehaviourConfiguration.maximumCaptures else { return nil }
        captures += 1
        return captures
    }
}
