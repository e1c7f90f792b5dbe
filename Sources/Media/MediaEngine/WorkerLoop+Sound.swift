internal import Timekeeping

// The sound card's turns between the frames of the calls that use it.
extension WorkerLoop {
    /// Takes the card's turns that are due, each with the frames of its calls in the middle: sound from the microphone goes
    /// out with the frames of the same turn, and what these hear is played in it.
    @_noAllocation @_noLocks
    mutating func takeTurns(at now: Instant) {
        guard let desk = unsafe desk else { return }
        unsafe desk.pointee.settle(calls, at: now)
        while let turn = unsafe desk.pointee.turn(at: now) {
            unsafe desk.pointee.capture(for: calls, at: turn)
            runCalls(at: SoundDesk.isLast(turn, at: now) ? now : turn)
            unsafe desk.pointee.play(from: calls, at: turn)
        }
    }

    /// Puts a call's second frame on the grid; of a call on the card, at one of the card's turns.
    @_noAllocation @_noLocks
    mutating func place(_ call: UnsafeMutablePointer<MediaCall>, after first: Instant) {
        var slot = unsafe secondFrame(of: call, after: first)
        if let desk = unsafe desk, unsafe call.pointee.usesCard {
            if SoundDesk.hasPlaced(calls) {
                slot = unsafe desk.pointee.turn(notBefore: call.pointee.grid.earliestSlot(after: first))
            } else {
                unsafe desk.pointee.align(to: slot, at: first)
            }
            unsafe call.pointee.audio.port?.isPlaced = true
        }
        unsafe call.pointee.place(nextFrame: slot)
    }

    /// Lets a call's next report tell how the card is doing.
    @_noAllocation @_noLocks
    func noteSound(of index: Int) {
        guard let desk = unsafe desk, unsafe calls[index].pointee.usesCard else { return }
        unsafe calls[index].pointee.sound = desk.pointee.report(on: calls[index])
    }
}
