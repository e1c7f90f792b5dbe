internal import CallMedia
internal import Core

extension WorkerLoop {
    /// For how long the frame has been due that a call has waited for the longest; 0 or less if none waits.
    @_noAllocation @_noLocks
    func overdueNanoseconds(at now: Instant) -> Int64 {
        var longest: Int64 = 0
        for index in 0..<calls.count where unsafe !calls[index].pointee.isLeaving {
            longest = max(longest, unsafe calls[index].pointee.nextDeadline.nanoseconds(to: now))
        }
        return longest
    }
}
