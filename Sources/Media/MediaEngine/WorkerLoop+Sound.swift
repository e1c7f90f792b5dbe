internal import CallMedia
internal import Core

// The sound card's ticks between the frames of the calls that use it.
extension WorkerLoop {
    /// Takes the card's ticks that are due, each of the microphone's with the frames of its calls, so that sound goes out in
    /// the very tick in which it came.
    @_noAllocation @_noLocks
    mutating func takeTicks(at now: Instant) {
        guard let mixer = unsafe mixer else { return }
        unsafe mixer.pointee.settle(calls.onCard, at: now)
        while let tick = unsafe mixer.pointee.tick(at: now) {
            switch tick {
            case .capture(let due):
                unsafe mixer.pointee.capture(for: calls.onCard, at: due)
                runCalls(at: CardMixer.isLast(due, at: now) ? now : due)
                let shift = unsafe mixer.pointee.follow(due)
                shiftFrames(byNanoseconds: shift)
            case .play(let due):
                unsafe mixer.pointee.hear(calls.onCard, at: due)
                unsafe mixer.pointee.play(from: calls.onCard, at: due)
            }
        }
    }

    /// Puts a call's second frame on the grid; of a call on the card, at one of the card's ticks.
    @_noAllocation @_noLocks
    mutating func place(_ call: UnsafeMutablePointer<MediaCall>, after first: Instant) {
        var slot = unsafe secondFrame(of: call, after: first)
        if let mixer = unsafe mixer, unsafe call.pointee.usesCard {
            if CardMixer.hasPlaced(calls.onCard) {
                slot = unsafe mixer.pointee.tick(notBefore: call.pointee.grid.earliestSlot(after: first))
            } else {
                slot = unsafe mixer.pointee.align(to: slot, at: first)
            }
            unsafe CardCall(call).notePlaced()
        }
        unsafe call.pointee.place(nextFrame: slot)
    }

    /// Moves the frames of the card's calls along with its ticks.
    @_noAllocation @_noLocks
    private func shiftFrames(byNanoseconds shift: Int64) {
        guard shift != 0 else { return }
        for index in 0..<calls.count where calls.onCard[index].isPlaced {
            unsafe calls[index].pointee.shiftFrames(byNanoseconds: shift)
        }
    }

    /// Includes the card's statistics in a call's next report.
    @_noAllocation @_noLocks
    func noteSound(of index: Int) {
        guard let mixer = unsafe mixer, unsafe calls[index].pointee.usesCard else { return }
        unsafe calls[index].pointee.sound = mixer.pointee.report(on: calls.onCard[index])
    }
}
