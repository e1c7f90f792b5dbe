public import AudioKit

/// Follows a captured ``Carrier`` sample by sample: delay to a small part of a sample, drift, and each gap and repeat.
///
/// Takes captured samples in pieces of any length and returns findings. It keeps two seconds of samples at most,
/// however long it runs. Not usable on a media thread: it allocates, and the search for a lost carrier costs some
/// milliseconds.
public struct CarrierTracker: Sendable {
    /// Numbers of played samples that are carrier.
    private let active: Range<Int>
    private let maximumDelay: Int
    /// By how many samples a sample the delay is expected to grow, if that is known from before.
    private let expectedRate: Double
    private var reader: CarrierReader
    private var state = State.searching(lost: nil)
    /// Number of the captured sample to continue at.
    private var cursor: Int
    private var hasBeenFound = false
    /// Where the last gap or repeat ended.
    private var resolved = -1

    private static let (block, searchWindow) = (CarrierReader.block, CarrierReader.searchWindow)
    /// A hole that lasts longer is a carrier lost, which is then looked for everywhere: 300 ms.
    private static let patience = 14_400

    private enum State {
        case searching(lost: CarrierReader.Lost?)
        case following(DelayLine)
        case resolving(before: DelayLine, suspect: Int, probe: Int)
    }

    /// Makes a tracker in its initial state.
    ///
    /// - Parameters:
    ///   - active: Numbers of the played samples that are carrier; captured samples are counted from the same moment.
    ///   - maximumDelay: The longest delay looked for, in samples, 480 or more.
    ///   - expectedRate: By how many samples a sample the delay grows, if that is known from before.
    public init(
        carrier: Carrier, active: Range<Int>, maximumDelay: Int = 2 * AudioFormat.sampleRate, expectedRate: Double = 0
    ) {
        self.expectedRate = expectedRate
        self.active = active
        self.maximumDelay = max(480, maximumDelay)
        cursor = active.lowerBound
        reader = CarrierReader(carrier, active: active, maximumDelay: self.maximumDelay)
    }

    /// Takes the next captured samples.
    public mutating func add(_ samples: Span<Int16>, into outbox: inout [CarrierFinding]) {
        reader.add(samples)
        while step(into: &outbox) {}
        trim()
    }

    /// Ends the analysis: missing carrier at the end is reported as a gap.
    public mutating func finish(into outbox: inout [CarrierFinding]) {
        guard case .searching(let lost?) = state else { return }
        let delay = lost.before.delay(at: Double(lost.start))
        let heard =
            active.upperBound == .max ? reader.captureEnd : min(reader.captureEnd, active.upperBound + Int(delay))
        guard heard - lost.start > Self.patience else { return }
        outbox.append(
            .event(
                LoopbackEvent(
                    kind: reader.isQuiet(lost.start..<heard) ? .silence : .disturbance, position: lost.start,
                    holeSamples: heard - lost.start, delayBefore: delay, delayAfter: delay)))
        state = .searching(lost: nil)
    }

    /// Whether all of the carrier has been heard and measured.
    public var isFinished: Bool {
        switch state {
        case .searching(let lost):
            let delay = lost.map { $0.before.delay(at: Double($0.start)) } ?? Double(maximumDelay)
            return active.upperBound != .max && cursor >= active.upperBound + Int(delay)
        case .following(let line): return isBehindEnd(cursor + Self.block, line)
        case .resolving(let line, _, let probe): return isBehindEnd(probe + Self.block, line)
        }
    }

    private func isBehindEnd(_ position: Int, _ line: DelayLine) -> Bool {
        active.upperBound != .max && Double(position) - line.delay(at: Double(position)) > Double(active.upperBound)
    }

    // MARK: - Steps

    /// One step, if there is enough captured for it.
    private mutating func step(into outbox: inout [CarrierFinding]) -> Bool {
        guard !isFinished else { return false }
        switch state {
        case .searching(let lost):
            guard reader.captureEnd >= cursor + Self.searchWindow + Self.block else { return false }
            search(lost, into: &outbox)
        case .following(let line):
            guard reader.captureEnd >= cursor + 2 * Self.block else { return false }
            follow(line, into: &outbox)
        case .resolving(let before, let suspect, let probe):
            guard reader.captureEnd >= probe + 3 * Self.block else { return false }
            resolve(before, suspect, probe, into: &outbox)
        }
        return true
    }

    /// Looks for the carrier everywhere.
    private mutating func search(_ lost: CarrierReader.Lost?, into outbox: inout [CarrierFinding]) {
        let window = cursor..<cursor + Self.searchWindow
        guard let (delay, isNegative) = reader.anywhere(window) else {
            cursor += Self.searchWindow / 2
            return
        }
        if lost == nil { reader.begin(delay: delay, in: window, isInverted: isNegative) }
        var line = DelayLine(delay: Double(delay), rate: lost?.before.rate ?? expectedRate, origin: Double(cursor))
        // A carrier that has just begun sounds at the window's end.
        let place = cursor + Self.searchWindow - Self.block
        let reading = reader.read(line, at: place)
        guard lost == nil || reader.isLikely(reading) else {
            cursor += Self.searchWindow / 2
            return
        }
        line.delay += reading.error
        if let lost {
            if let event = reader.changeAfterLoss(lost, line, place) { outbox.append(.event(event)) }
            line.age = 8
        } else if !hasBeenFound {
            hasBeenFound = true
            outbox.append(.found(position: cursor, delaySamples: line.delay, isInverted: isNegative))
        }
        cursor = place
        state = .following(line)
    }

    /// Takes a reading where the carrier is expected.
    private mutating func follow(_ line: DelayLine, into outbox: inout [CarrierFinding]) {
        let reading = reader.read(line, at: cursor)
        guard reader.isUsual(reading, line) else {
            state = .resolving(before: line, suspect: cursor, probe: cursor)
            return
        }
        var line = line
        let middle = Double(cursor) + Double(Self.block) / 2
        line.correct(error: reading.error, at: middle, spacing: Double(Self.block))
        reader.learn(reading, line)
        outbox.append(
            .reading(
                CarrierReading(
                    position: Int(middle), delaySamples: line.delay, likeness: reading.likeness,
                    gainDB: reading.gainDB, rate: line.rate)))
        cursor += Self.block
        state = .following(line)
        reader.fit(line, before: cursor)
    }

    /// Looks where the carrier continues after a disturbance, a little later each time.
    private mutating func resolve(
        _ before: DelayLine, _ suspect: Int, _ probe: Int, into outbox: inout [CarrierFinding]
    ) {
        guard probe - suspect <= Self.patience else {
            state = .searching(
                lost: CarrierReader.Lost(before: before, start: reader.changeBeforeLoss(before, suspect)))
            cursor = probe
            return
        }
        guard let (after, place) = continuation(of: before, at: probe) else {
            state = .resolving(before: before, suspect: suspect, probe: probe + Self.block / 2)
            return
        }
        let event = reader.change(before, after, suspect - Self.block..<place + Self.block)
        // A false alarm is skipped: reading it again would raise it again. So is a block that was just resolved.
        let isResolved = event == nil || place == resolved
        if let event, !isResolved { outbox.append(.event(event)) }
        cursor = isResolved ? place + Self.block : place
        resolved = cursor
        state = .following(after)
    }

    /// A line on which the carrier continues at `probe` or a block later: the old one, or one up to 100 ms away.
    private func continuation(of before: DelayLine, at probe: Int) -> (DelayLine, Int)? {
        var line = before
        if let found = settled(&line, at: probe, isKnown: true) { return (line, found) }
        guard let delay = reader.nearby(before, probe..<probe + 2 * Self.block) else { return nil }
        line.delay = Double(delay) - before.rate * Double(Self.block)
        line.origin = Double(probe)
        line.age = min(before.age, 8)
        for place in [probe, probe + Self.block] {
            if let found = settled(&line, at: place, isKnown: false) { return (line, found) }
        }
        return nil
    }

    /// Moves `line` to where it fits at `place`, if it does; one that is known from many readings only if it must be.
    private func settled(_ line: inout DelayLine, at place: Int, isKnown: Bool) -> Int? {
        let first = reader.read(line, at: place)
        guard reader.isLikely(first) else { return nil }
        var moved = line
        moved.delay += first.error
        let second = reader.read(moved, at: place)
        guard reader.isUsual(second, moved) else { return nil }
        moved.delay += second.error
        if !isKnown || abs(moved.delay - line.delay) > CarrierReader.sameDelay { line = moved }
        return place
    }

    private mutating func trim() {
        let needed: Int
        switch state {
        case .searching(let lost): needed = min(lost?.start ?? cursor, cursor) - 4 * Self.block
        case .following: needed = cursor - 12 * Self.block
        case .resolving(_, let suspect, _): needed = suspect - 12 * Self.block
        }
        reader.trim(before: needed)
    }
}
