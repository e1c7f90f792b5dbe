/// Numbers of packets of one sort, such as those that hold no sound: the newest, over as many as the packet store holds.
struct PacketNumbers {
    private var numbers = InlineArray<128, Int64>(repeating: .min)

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    mutating func insert(_ sequence: Int64) { numbers[Int(sequence & 127)] = sequence }

    @_noAllocation @_noLocks
    func contains(_ sequence: Int64) -> Bool { numbers[Int(sequence & 127)] == sequence }

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
