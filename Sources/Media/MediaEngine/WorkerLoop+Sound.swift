internal import Timekeeping

// The sound card's turns between the frames of the calls that use it.
extension WorkerLoop {
    /// Takes the card's turns that are due, each of the microphone's with the frames of its calls, so that sound goes out in
    /// the very turn in which it came.
    @_noAllocation @_noLocks
    mutating func takeTurns(at now: Instant) {
        guard let desk = unsafe desk else { return }
        unsafe desk.pointee.settle(calls, at: now)
        while let turn = unsafe desk.pointee.turn(at: now) {
            switch turn {
            case .capture(let due):
                unsafe desk.pointee.capture(for: calls, at: due)
                runCalls(at: SoundDesk.isLast(due, at: now) ? now : due)
                let shift = unsafe desk.pointee.follow(due)
                shiftFrames(byNanoseconds: shift)
            case .play(let due):
                unsafe desk.pointee.hear(calls, at: due)
                unsafe desk.pointee.play(from: calls, at: due)
            }
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
                slot = unsafe desk.pointee.align(to: slot, at: first)
            }
            unsafe call.pointee.audio.port?.isPlaced = true
        }
        unsafe call.pointee.place(nextFrame: slot)
    }

    /// Moves the frames of the card's calls along with its turns.
    @_noAllocation @_noLocks
    private func shiftFrames(byNanoseconds shift: Int64) {
        guard shift != 0 else { return }
        for index in 0..<calls.count where unsafe calls[index].pointee.usesCard {
            guard unsafe calls[index].pointee.audio.port?.isPlaced ?? false else { continue }
            unsafe calls[index].pointee.shiftFrames(byNanoseconds: shift)
        }
    }

    /// Lets a call's next report tell how the card is doing.
    @_noAllocation @_noLocks
    func noteSound(of index: Int) {
        guard let desk = unsafe desk, unsafe calls[index].pointee.usesCard else { return }
        unsafe calls[index].pointee.sound = desk.pointee.report(on: calls[index])
    }
}
