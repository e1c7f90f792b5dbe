internal import CallBridging
internal import CallMedia
public import CallParticipation
internal import Core
internal import MediaEngine
internal import Realtime

// Calls that are parked and picked up. `CallParking` decides; this carries out.
extension Device {
    /// What becomes of a parked call that is not picked up in its time.
    public enum ParkingSequel: Sendable {
        /// It does what it did before.
        case goBack
        /// It is hung up.
        case hangUp
    }

    /// Parks a call whose media runs: it hears music, or silence, and what takes part in it waits. A call that is joined by
    /// ``bridge(_:to:goesBack:)`` or ``handOver(_:_:)`` is parted from the other one first.
    ///
    /// - Parameters:
    ///   - music: The WAV or Ogg Opus file that it hears; nil for `handover.music`.
    ///   - longest: After which time it is no longer parked: 5 s to two hours.
    /// - Returns: Its slot, 1 to 99.
    /// - Throws: ``CallSoundError`` if its media does not run, it is on the sound card, is parked already, or all slots are taken.
    public func park(
        _ id: CallID, music: String? = nil, longest: Duration? = nil, then sequel: ParkingSequel = .goBack
    ) throws(CallSoundError) -> Int {
        try CallSoundControl(calls[id]?.session, id, on: engine).checkBridging()
        guard !participants.parking.isFull else {
            throw CallSoundError(.failed, "all \(CallParking.slots) slots have a call; pick one up")
        }
        partForParking(id)
        try checkJoining(id)
        feed(
            parking: .park(
                id, longest: longest ?? CallParking.usualTime, then: sequel == .goBack ? .back : .end,
                music: music ?? configuration.handover.music))
        guard let slot = participants.parking.slot(of: id) else {
            throw CallSoundError(.failed, "\(id) cannot be parked")
        }
        return slot
    }

    /// The other call of a join continues as before; a person that the call was handed over to is hung up.
    private func partForParking(_ id: CallID) {
        guard let other = participants.bridges.partner(of: id), ![id, other].contains(where: participants.isInFlow)
        else {
            return
        }
        feed(bridges: .part(id))
        for caller in [id, other] where participants.handovers.isJoined(caller) {
            feed(handovers: .cancel(caller, because: "the call was parked"))
        }
    }

    /// Joins a call to the one that is parked in a slot.
    ///
    /// - Parameter goesBack: Whether a call continues as before when the other one ends; otherwise it is hung up.
    /// - Returns: The call that was parked.
    /// - Throws: ``CallSoundError`` if the slot is free, or the call cannot be joined.
    @discardableResult
    public func pickUp(slot: Int, by id: CallID, goesBack: Bool = false) throws(CallSoundError) -> CallID {
        guard let parked = participants.parking.call(in: slot) else {
            throw CallSoundError(.wrongState, "no call is parked in slot \(slot); status lists parked calls")
        }
        try checkJoining(id)
        // One that takes the place of the call that was parked there is joined once it is established.
        _ = try CallSoundControl(calls[parked]?.session, parked, on: engine)
        feed(parking: .pickUp(slot: slot, by: id), goesBack: goesBack)
        return parked
    }

    /// The slot in which a call is parked; nil if it is not.
    public func parkingSlot(of id: CallID) -> Int? { participants.parking.slot(of: id) }

    func feed(parking input: CallParking.Input, goesBack: Bool = false) {
        var outbox: [CallParking.Output] = []
        participants.parking.handle(input, at: MonotonicClock.now, into: &outbox)
        for output in outbox { carryOut(output, goesBack: goesBack) }
        setJoiningTimer()
    }

    /// A call whose bot or program has left it, as after a hand-over, has nothing to go back to.
    private func endIfAlone(_ id: CallID) {
        guard let call = calls[id]?.session, call.hasParticipant, !call.isAttended else { return }
        feed(.user(.hangUp(because: .request)), to: id)
    }

    private func carryOut(_ output: CallParking.Output, goesBack: Bool) {
        switch output {
        case .hold(let call, let music):
            guard let stream = calls[call]?.session.runningStream else { return }
            engine.bridgeToSilence(stream, suspending: participants.standsStill(in: call))
            if let music { feed(music: .play(music, to: call, repeats: true)) }
        case .release(let call):
            if let stream = calls[call]?.session.runningStream { engine.unbridge(stream) }
            feed(music: .stop(call))
            releaseDeferredEnd(of: call)
            endIfAlone(call)
        case .join(let parked, let other):
            let sequel: CallBridges.Sequel = goesBack ? .goBack : .hangUp
            feed(bridges: .join(parked, other, then: sequel, otherThen: sequel))
            feed(music: .stop(parked))
        case .hangUp(let call): feed(.user(.hangUp(because: .request)), to: call)
        case .report(let state, let call, let slot):
            log.parkingIs(state, slot, about: calls.about(call))
            publish(.parking(call, slot: slot, state: state.rawValue))
        }
    }
}
