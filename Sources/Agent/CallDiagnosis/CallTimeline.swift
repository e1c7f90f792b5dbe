package import CallMedia
internal import Playout

/// What a call's media counted, second by second, until its end.
///
/// A row has what was added since the row before. There are 240 rows at most: when they are full, each two become one, so that a call of
/// four minutes has rows of a second, one of an hour rows of 16 s, and one of a day rows of 512 s. In JSON each column is a text of
/// counts and how often they repeat, such as `50*12,0*5,49`; columns of zeros are left out. Worst case, when no two rows are equal, it has
/// less than 20 kB; a quiet call of a minute has some 600 bytes.
public struct CallTimeline: Codable, Hashable, Sendable {
    /// Rows at most.
    public static let mostRows = 240

    /// What is counted.
    public enum Column: String, CaseIterable, Hashable, Sendable {
        /// Packets of sound that came and were accepted.
        case received
        /// RTCP packets that came.
        case reports
        /// Packets that never came.
        case lost
        /// Packets that came too late, or for which there was no room.
        case unplayed
        /// Packets that came after one that was sent later.
        case reordered
        /// Packets that were dropped before that.
        case dropped
        /// Packets that were sent.
        case sent
        /// Packets that the other side reports as lost.
        case remoteLost = "remote_lost"
        /// Frames that this machine was too late for.
        case skipped
        /// Milliseconds that were concealed.
        case concealed = "concealed_ms"
        /// Milliseconds of the sound card that were missing, in either direction.
        case cardGap = "card_gap_ms"
        /// The loudest sound that was sent, in dB above −100 dBFS.
        case sentLevel = "sent_level"
        /// The same of what was received.
        case receivedLevel = "received_level"
        /// Milliseconds of silence and comfort noise that were played out.
        case silent = "silent_ms"
        /// Milliseconds that the jitter buffer took out to lower its delay.
        case accelerated = "accelerated_ms"
        /// Milliseconds that the jitter buffer put in to raise its delay.
        case decelerated = "decelerated_ms"
        /// Milliseconds of jitter of the arrivals, as RTCP reports it.
        case jitter = "jitter_ms"
        /// Milliseconds of delay of the jitter buffer.
        case delay = "delay_ms"
        /// Milliseconds of delay that the jitter buffer aims at.
        case targetDelay = "target_delay_ms"

        /// Whether it is a value at a row's end, of which the largest counts, and no sum.
        var isGauge: Bool {
            switch self {
            case .sentLevel, .receivedLevel, .jitter, .delay, .targetDelay: true
            case .received, .reports, .lost, .unplayed, .reordered, .dropped, .sent, .remoteLost, .skipped, .concealed,
                .cardGap, .silent, .accelerated, .decelerated:
                false
            }
        }
        fileprivate var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    }

    /// When the first row begins, in milliseconds since 1970 by this machine's clock.
    public private(set) var begins: Int64
    /// Seconds of a row.
    public private(set) var step = 1
    /// The number of rows.
    public private(set) var count = 0
    /// The columns in their order, with a number for each row; empty for one that has only zeros, as most have.
    private var columns = [[Int32]](repeating: [], count: Column.allCases.count)
    /// The counters at the end of the newest row.
    private var counted = [Int](repeating: 0, count: Column.allCases.count)

    /// Nothing yet.
    ///
    /// - Parameter begins: The time, in milliseconds since 1970.
    public init(begins: Int64) { self.begins = begins }

    /// Whether a number of seconds since the beginning has passed that ends a row.
    public func isDue(at second: Int) -> Bool { second >= (count + 1) * step }

    /// The counts of a column, a number for each row.
    public subscript(column: Column) -> [Int] {
        let values = columns[column.index]
        return values.isEmpty ? [Int](repeating: 0, count: count) : values.map { Int($0) }
    }

    /// When a row begins, in milliseconds since 1970.
    public func time(ofRow row: Int) -> Int64 { begins + Int64(row * step) * 1_000 }

    /// Takes the counters of a number of seconds after the beginning.
    package mutating func note(_ report: MediaReport, at second: Int) { note(Self.counters(report), at: second) }

    /// Takes a value for each column: sums since the beginning, and the gauges at the row's end. What was added in several rows, because
    /// the counters could not be had meanwhile, is spread over them.
    package mutating func note(_ counters: [Column: Int], at second: Int) {
        while second / step >= Self.mostRows { thin() }
        let new = max(1, second / step - count)
        let added = Column.allCases.map { column in
            let (index, value) = (column.index, counters[column] ?? 0)
            defer { counted[index] = value }
            return column.isGauge ? value : max(0, value - counted[index])
        }
        for part in 0..<new {
            for column in Column.allCases {
                let value = added[column.index]
                let share = column.isGauge ? value : value * (part + 1) / new - value * part / new
                append(Int32(clamping: share), to: column)
            }
            count += 1
        }
        if count >= Self.mostRows { thin() }
    }

    /// Makes one row of each two.
    private mutating func thin() {
        for column in Column.allCases {
            let values = columns[column.index]
            columns[column.index] = stride(from: 0, to: values.count, by: 2).map { first in
                guard first + 1 < values.count else { return values[first] }
                let (one, two) = (values[first], values[first + 1])
                return column.isGauge ? max(one, two) : Int32(clamping: Int(one) + Int(two))
            }
        }
        count = (count + 1) / 2
        step *= 2
    }

    /// Adds the value of the next row.
    private mutating func append(_ value: Int32, to column: Column) {
        if columns[column.index].isEmpty {
            guard value != 0 else { return }
            columns[column.index] = [Int32](repeating: 0, count: count)
        }
        columns[column.index].append(value)
    }

    private static func counters(_ report: MediaReport) -> [Column: Int] {
        let (peer, playout) = (report.peer, report.playout)
        return [
            .received: peer.packetsReceived, .reports: peer.controlPacketsReceived, .lost: playout.packetsLost,
            .unplayed: playout.packetsLate + playout.packetsDiscarded, .reordered: playout.packetsReordered,
            .dropped: peer.dropped.counts.reduce(0) { $0 + $1.count }, .sent: peer.packetsSent,
            .remoteLost: max(0, peer.remotePacketsLost), .skipped: report.call.framesSkipped,
            .concealed: playout.samplesConcealed / 48,
            .cardGap: report.sound.map { ($0.captureUnderrunSamples + $0.playOverrunSamples) / 48 } ?? 0,
            .sentLevel: level(report.sent), .receivedLevel: level(report.received),
            .silent: playout.samplesSilent / 48, .accelerated: playout.samplesAccelerated / 48,
            .decelerated: playout.samplesDecelerated / 48, .jitter: milliseconds(peer.jitterNanoseconds),
            .delay: milliseconds(playout.playoutDelayNanoseconds),
            .targetDelay: milliseconds(playout.targetDelayNanoseconds),
        ]
    }

    private static func milliseconds(_ nanoseconds: Int64) -> Int { max(0, Int((nanoseconds + 500_000) / 1_000_000)) }

    private static func level(_ trace: SoundTrace) -> Int {
        min(100, max(0, Int((trace.recentPeakDBFS + 100).rounded())))
    }

    // MARK: JSON

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ text: String) { stringValue = text }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    /// The year 9999, in milliseconds since 1970.
    private static let latest: Int64 = 253_370_764_800_000
    /// In seconds; a call of ten years has no longer one.
    private static let longestStep = 1 << 21

    /// Reads what ``encode(to:)`` writes; columns that are not there are zeros.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Key.self)
        // A damaged line may say anything: times are calculated with these.
        begins = min(max(0, try fields.decode(Int64.self, forKey: Key("begins"))), Self.latest)
        step = min(max(1, try fields.decode(Int.self, forKey: Key("step_s"))), Self.longestStep)
        count = min(Self.mostRows, max(0, try fields.decode(Int.self, forKey: Key("rows"))))
        for column in Column.allCases {
            guard let text = try fields.decodeIfPresent(String.self, forKey: Key(column.rawValue)) else { continue }
            let values = Self.values(text, most: count)
            guard values.contains(where: { $0 != 0 }) else { continue }
            columns[column.index] = values + [Int32](repeating: 0, count: count - values.count)
        }
    }

    /// Writes an object with a member for each column.
    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: Key.self)
        try fields.encode(begins, forKey: Key("begins"))
        try fields.encode(step, forKey: Key("step_s"))
        try fields.encode(count, forKey: Key("rows"))
        for column in Column.allCases {
            let values = self[column]
            if values.contains(where: { $0 != 0 }) {
                try fields.encode(Self.text(values), forKey: Key(column.rawValue))
            }
        }
    }

    /// Such as `50*12,0*5,49`.
    private static func text(_ values: [Int]) -> String {
        var parts: [(value: Int, count: Int)] = []
        for value in values {
            if let last = parts.last, last.value == value {
                parts[parts.count - 1].count += 1
            } else {
                parts.append((value, 1))
            }
        }
        return parts.map { $0.count == 1 ? "\($0.value)" : "\($0.value)*\($0.count)" }.joined(separator: ",")
    }

    private static func values(_ text: String, most: Int) -> [Int32] {
        var values: [Int32] = []
        for part in text.split(separator: ",") {
            let pieces = part.split(separator: "*")
            guard let first = pieces.first, let value = Int32(first) else { return values }
            let count = pieces.count == 2 ? Int(pieces[1]) ?? 0 : 1
            values += [Int32](repeating: value, count: max(0, min(count, most - values.count)))
        }
        return values
    }
}

// MARK: When

extension CallTimeline {
    /// A part of the call, in rows.
    public typealias Span = Range<Int>

    /// In words, by this machine's clock in UTC, such as "from 12:03:10 to 12:03:25".
    public func words(_ span: Span) -> String {
        "from \(Self.clock(time(ofRow: span.lowerBound))) to \(Self.clock(time(ofRow: span.upperBound)))"
    }

    static func clock(_ milliseconds: Int64) -> String {
        let second = Int((milliseconds / 1_000) % 86_400)
        return [second / 3_600, second / 60 % 60, second % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(
            separator: ":")
    }

    /// When nine in ten of what a column counts happened; nil if that was in more than half of the call.
    public func concentration(of columns: Column...) -> Span? {
        var counts = [Int](repeating: 0, count: count)
        for column in columns {
            for (row, value) in self[column].enumerated() { counts[row] += value }
        }
        let all = counts.reduce(0, +)
        guard all > 0, counts.count >= 6 else { return nil }
        var best: Span?
        var (first, sum) = (0, 0)
        for (end, count) in counts.enumerated() {
            sum += count
            while first < end, (sum - counts[first]) * 10 >= all * 9 {
                sum -= counts[first]
                first += 1
            }
            if sum * 10 >= all * 9, best.map({ end + 1 - first < $0.count }) ?? true { best = first..<end + 1 }
        }
        return best.flatMap { $0.count * 2 <= counts.count ? $0 : nil }
    }

    /// Such as ", most of them from 12:03:10 to 12:03:25"; nothing if it was throughout the call.
    func when(_ columns: Column...) -> String {
        let span = columns.count == 1 ? concentration(of: columns[0]) : concentration(of: columns[0], columns[1])
        return span.map { ", nine in ten of that \(words($0))" } ?? ""
    }

    /// The longest time without a packet between two packets; nil if no row between them is without.
    public var longestPause: Span? {
        let counts = self[.received]
        guard let first = counts.firstIndex(where: { $0 > 0 }), let last = counts.lastIndex(where: { $0 > 0 }) else {
            return nil
        }
        return longest(in: first..<last) { counts[$0] == 0 }
    }

    /// Milliseconds of a part of the call.
    public func length(_ span: Span) -> Int { span.count * step * 1_000 }

    /// A column's sum in a part of the call.
    public func sum(_ column: Column, in span: Span) -> Int {
        self[column][span.clamped(to: 0..<count)].reduce(0, +)
    }

    private func longest(in span: Span, where condition: (Int) -> Bool) -> Span? {
        var best: Span?
        var begin: Int?
        for row in span.lowerBound...span.upperBound {
            if row < span.upperBound, condition(row) {
                begin = begin ?? row
            } else if let first = begin {
                if best.map({ row - first > $0.count }) ?? true { best = first..<row }
                begin = nil
            }
        }
        return best
    }
}
