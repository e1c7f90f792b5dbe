internal import BotWire

/// What a bot has sent ahead of real time: sound and marks, in order.
///
/// Bounded by its user, which stops reading from the bot while ``cost`` is too high (``WireLimits/backlogBytes``).
struct BotBacklog: Sendable {
    /// The next thing in the queue.
    enum Next: Equatable {
        case sound(WireFormat)
        case mark(String)
    }

    private enum Item: Sendable {
        case sound(WireFormat, bytes: Int)
        case mark(String)
    }

    /// What an item costs in addition to its sound: about its memory.
    private static let itemBytes = 64

    private var items: [Item] = []
    private var firstItem = 0
    private var bytes: [UInt8] = []
    private var firstByte = 0

    var isEmpty: Bool { firstItem == items.count }

    /// About the bytes of memory that are in use.
    var cost: Int { bytes.count - firstByte + (items.count - firstItem) * Self.itemBytes }

    /// How long the sound takes to be played.
    var duration: Duration {
        items[firstItem...].reduce(.zero) { sum, item in
            guard case .sound(let format, let bytes) = item else { return sum }
            return sum + .nanoseconds(Int64(bytes / format.sampleBytes) * 1_000_000_000 / Int64(format.rateHz))
        }
    }

    mutating func append(_ sound: [UInt8], _ format: WireFormat) {
        bytes += sound
        if case .sound(format, let count)? = items.last, !isEmpty {
            items[items.count - 1] = .sound(format, bytes: count + sound.count)
        } else {
            items.append(.sound(format, bytes: sound.count))
        }
    }

    mutating func append(mark: String) { items.append(.mark(mark)) }

    var next: Next? {
        guard !isEmpty else { return nil }
        switch items[firstItem] {
        case .sound(let format, _): return .sound(format)
        case .mark(let name): return .mark(name)
        }
    }

    /// Takes up to `samples` samples of the sound that is first.
    mutating func takeSound(samples: Int) -> [UInt8] {
        guard samples > 0, case .sound(let format, let count)? = isEmpty ? nil : items[firstItem] else { return [] }
        let taken = min(count, samples * format.sampleBytes)
        let piece = Array(bytes[firstByte..<firstByte + taken])
        firstByte += taken
        if taken == count {
            firstItem += 1
        } else {
            items[firstItem] = .sound(format, bytes: count - taken)
        }
        compact()
        return piece
    }

    /// Takes the mark that is first.
    mutating func takeMark() {
        guard case .mark? = next else { return }
        firstItem += 1
        compact()
    }

    /// Discards everything.
    ///
    /// - Returns: The marks among it.
    mutating func removeAll() -> [String] {
        let marks = items[firstItem...].compactMap { item -> String? in
            guard case .mark(let name) = item else { return nil }
            return name
        }
        self = BotBacklog()
        return marks
    }

    /// Frees what was taken, once it is half of all or 1 MiB, so that a byte moves ten times at most.
    private mutating func compact() {
        if firstItem * 2 >= items.count {
            items.removeFirst(firstItem)
            firstItem = 0
        }
        if firstByte * 2 >= bytes.count || firstByte >= 1 << 20 {
            bytes.removeFirst(firstByte)
            firstByte = 0
        }
    }
}
