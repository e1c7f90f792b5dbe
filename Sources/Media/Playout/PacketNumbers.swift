internal import Core

/// Numbers of packets of one sort, such as those that hold no sound: the newest, over as many as the packet store holds.
struct PacketNumbers: ~Copyable {
    private let inPlace = InPlace()
    // The lower half of each number: others that share it are 2³² packets away. An entry that was never written belongs
    // to no slot.
    private var numbers = InlineArray<128, UInt32>(repeating: 1)

    @_noAllocation @_noLocks
    init() { numbers[1] = 0 }

    @_noAllocation @_noLocks
    mutating func insert(_ sequence: Int64) { numbers[Int(sequence & 127)] = UInt32(truncatingIfNeeded: sequence) }

    @_noAllocation @_noLocks
    func contains(_ sequence: Int64) -> Bool {
        numbers[Int(sequence & 127)] == UInt32(truncatingIfNeeded: sequence)
    }

    /// How many of the numbers from `start` to before `end` are among them.
    @_noAllocation @_noLocks
    func count(from start: Int64, to end: Int64) -> Int {
        var sequence = max(start, end &- 128)
        var found = 0
        while sequence < end {
            if contains(sequence) { found &+= 1 }
            sequence &+= 1
        }
        return found
    }
}
