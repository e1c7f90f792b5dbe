public import CallParticipation
public import Core

/// Calls that are parked: each waits in a slot, where another call can pick it up.
public struct CallParking: ProtocolCore {
    /// What becomes of a call that is picked up by none in its time.
    public enum Sequel: String, CaseIterable, Sendable {
        /// It does what it did before.
        case back
        /// It is hung up.
        case end
    }

    /// What became of a parked call. The names are those of events.
    public enum State: String, CaseIterable, Sendable {
        /// It waits in its slot.
        case parked
        /// It is joined to the call that has picked it up.
        case pickedUp = "picked_up"
        /// Its time is up: it does what it did before.
        case back
        /// Its time is up: it is hung up.
        case expired
        /// Its peer has hung up.
        case gone
    }

    /// What happened.
    public enum Input: Equatable, Sendable {
        /// A call is parked in the lowest free slot, and hears this file. Nothing happens if it is parked already, or there is no slot.
        case park(CallID, longest: Duration, then: Sequel, music: String? = nil)
        /// A call picks up what is in a slot. Nothing happens if nothing is.
        case pickUp(slot: Int, by: CallID)
        /// A call is about to take the place of another one (RFC 3891), whose end follows.
        case replaced(CallID, by: CallID)
        /// The media of the call runs.
        case established(CallID)
        /// The call has ended.
        case ended(CallID)
        case timerFired
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// Have the call hear this file, or silence, and what takes part in it wait.
        case hold(CallID, music: String?)
        /// Have the call do what it did before.
        case release(CallID)
        /// Join the call that was parked to the other one, at once; then stop its music.
        case join(CallID, to: CallID)
        /// Hang up.
        case hangUp(CallID)
        /// Report what became of the call.
        case report(State, CallID, slot: Int)
    }

    /// Slots, from 1.
    public static let slots = 99
    /// How long a call can be parked.
    public static let longest = 5...7_200
    /// How long it is, unless said otherwise.
    public static let usualTime = Duration.seconds(120)

    private struct Place {
        var call: CallID
        let until: Instant
        let sequel: Sequel
        let music: String?
        /// The call has taken the place of another one, and its media does not run yet.
        var isPending = false
    }

    private var places: [Int: Place] = [:]

    /// Parks none.
    public init() {}

    /// The slot of a call; nil if it is not parked.
    public func slot(of call: CallID) -> Int? { places.first { $0.value.call == call }?.key }

    /// The call in a slot; nil if it is free.
    public func call(in slot: Int) -> CallID? { places[slot]?.call }

    /// Whether there is no free slot.
    public var isFull: Bool { places.count >= Self.slots }

    /// When the time of a call is up.
    public var nextDeadline: Instant? { places.values.map(\.until).min() }

    /// Takes what happened.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .park(let call, let longest, let sequel, let music):
            guard slot(of: call) == nil, let free = (1...Self.slots).first(where: { places[$0] == nil }) else { return }
            places[free] = Place(call: call, until: now.advanced(by: longest), sequel: sequel, music: music)
            outbox += [.hold(call, music: music), .report(.parked, call, slot: free)]
        case .pickUp(let slot, let other):
            guard let place = places[slot], place.call != other else { return }
            places[slot] = nil
            outbox += [.join(place.call, to: other), .report(.pickedUp, place.call, slot: slot)]
        case .replaced(let former, let call):
            guard let slot = slot(of: former), self.slot(of: call) == nil else { return }
            places[slot]?.call = call
            places[slot]?.isPending = true
        case .established(let call):
            guard let slot = slot(of: call), let place = places[slot], place.isPending else { return }
            places[slot]?.isPending = false
            outbox += [.hold(call, music: place.music), .report(.parked, call, slot: slot)]
        case .ended(let call):
            guard let slot = slot(of: call) else { return }
            places[slot] = nil
            outbox.append(.report(.gone, call, slot: slot))
        case .timerFired:
            for (slot, place) in places.sorted(by: { $0.key < $1.key }) where place.until <= now {
                places[slot] = nil
                expire(place, slot, into: &outbox)
            }
        }
    }

    private func expire(_ place: Place, _ slot: Int, into outbox: inout [Output]) {
        switch place.sequel {
        case .back: outbox += [.release(place.call), .report(.back, place.call, slot: slot)]
        case .end: outbox += [.hangUp(place.call), .report(.expired, place.call, slot: slot)]
        }
    }
}
