import TestSupport
import Testing

@testable import AudioPort

@Suite("The books of a program's sound")
struct PlaybackTrackerTests {
    /// Plays from a queue as a worker does, and knows of each sample what became of it.
    private struct Player {
        var report = PlayReport()
        var written = 0
        private var orders: [Int] = []

        var hasOrder: Bool { !orders.isEmpty }

        mutating func order(_ target: Int) { orders.append(target) }

        mutating func runFrame(_ length: Int) {
            if let target = orders.max(), target > report.clearedTo {
                report.clearedAt = report.consumed
                report.clearedTo = target
                let count = max(0, target - report.consumed)
                report.consumed += count
                report.skipped += count
            }
            orders = []
            report.consumed += min(length, written - report.consumed)
        }
    }

    @Test("A mark is reported in the very frame in which its last sample is sent, and no earlier")
    func markIsExact() {
        var tracker = PlaybackTracker(ratio: 6)
        var events: [PlaybackEvent] = []
        tracker.accept(400)
        tracker.wrote(2_400)
        let isSet = tracker.mark(.named("a"), unread: 0)
        #expect(isSet)
        tracker.note(PlayReport(consumed: 2_399), into: &events)
        #expect(events.isEmpty && tracker.played == 399)
        tracker.note(PlayReport(consumed: 2_400), into: &events)
        #expect(events == [.played(mark: "a", played: 400)])
        #expect(tracker.waiting == 0)
    }

    @Test("A mark behind what the program has yet to hand over waits for that")
    func markAhead() {
        var tracker = PlaybackTracker(ratio: 1)
        var events: [PlaybackEvent] = []
        let isSet = tracker.mark(.named("a"), unread: 100)
        #expect(isSet)
        tracker.note(PlayReport(), into: &events)
        #expect(events.isEmpty)
        tracker.accept(100)
        tracker.wrote(100)
        tracker.note(PlayReport(consumed: 100), into: &events)
        #expect(events == [.played(mark: "a", played: 100)])
    }

    @Test("A clear reports what had been played, discards the marks of the rest, and leaves the marks behind it")
    func clear() {
        var tracker = PlaybackTracker(ratio: 2)
        var events: [PlaybackEvent] = []
        tracker.accept(1_000)
        tracker.wrote(1_900)  // The resampler holds 100.
        _ = tracker.mark(.named("early"), unread: -800)
        _ = tracker.mark(.named("late"), unread: 0)
        let target = tracker.clear()
        #expect(target == 1_900 && tracker.waiting == 0)
        tracker.accept(50)
        tracker.wrote(100)
        _ = tracker.mark(.named("next"), unread: 0)
        #expect(tracker.waiting == 50)

        // The worker had sent 960 when it heard of it.
        tracker.note(
            PlayReport(consumed: 1_900, skipped: 940, clearedAt: 960, clearedTo: 1_900), into: &events)
        #expect(
            events == [.played(mark: "early", played: 200), .discarded(mark: "late"), .cleared(played: 480)])
        events = []
        tracker.note(
            PlayReport(consumed: 2_000, skipped: 940, clearedAt: 960, clearedTo: 1_900), into: &events)
        #expect(events == [.played(mark: "next", played: 530)])
    }

    @Test("Of two clears of which only the second was reported, nothing is said to be heard because of the first")
    func missingReport() {
        var tracker = PlaybackTracker(ratio: 1)
        var events: [PlaybackEvent] = []
        tracker.accept(1_000)
        tracker.wrote(1_000)
        _ = tracker.mark(.named("unheard"), unread: 0)
        let first = tracker.clear()
        tracker.accept(500)
        tracker.wrote(500)
        _ = tracker.mark(.named("heard"), unread: -400)
        let second = tracker.clear()
        #expect(first == 1_000 && second == 1_500)
        // 100 played, 900 skipped; 200 played, 300 skipped.
        tracker.note(PlayReport(consumed: 1_500, skipped: 1_200, clearedAt: 1_200, clearedTo: 1_500), into: &events)
        #expect(
            events == [
                .discarded(mark: "unheard"), .cleared(played: 300), .played(mark: "heard", played: 200),
                .cleared(played: 300),
            ])
    }

    @Test("256 marks may wait, and the end has its place all the same")
    func mostMarks() {
        var tracker = PlaybackTracker(ratio: 1)
        let taken = (0..<300).map { tracker.mark(.named("\($0)"), unread: 10) }
        #expect(taken.filter { $0 }.count == 256)
        let isEndSet = tracker.mark(.end, unread: 10)
        #expect(isEndSet)
    }

    @Test("The end of what was said comes out when the program pauses and the queue runs dry, or when nothing follows")
    func flush() {
        var tracker = PlaybackTracker(ratio: 6)
        tracker.accept(1_000)
        tracker.wrote(5_800)
        let long = Duration.milliseconds(40)
        #expect(!tracker.needsFlush(held: 200, idle: long, isFinal: false), "there is more than two frames left")
        #expect(tracker.needsFlush(held: 200, idle: .zero, isFinal: true))
        #expect(!tracker.needsFlush(held: 0, idle: long, isFinal: true))
        var events: [PlaybackEvent] = []
        tracker.note(PlayReport(consumed: 3_900), into: &events)
        #expect(tracker.needsFlush(held: 200, idle: long, isFinal: false))
        #expect(!tracker.needsFlush(held: 200, idle: .milliseconds(39), isFinal: false), "it may only be late")
    }

    @Test(
        "For anything written, marked, cleared and reported, each mark ends once, in order, and exactly",
        arguments: 0..<300)
    func property(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let ratio = [1, 2, 3, 6].randomElement(using: &random) ?? 1
        var tracker = PlaybackTracker(ratio: ratio)
        var player = Player()
        var held = 0
        var marks: [(name: String, discardedBy: Int?)] = []
        var told: [String] = []
        var lastPlayed = 0
        for step in 0..<400 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                let count = Int.random(in: 1...2_000, using: &random)
                tracker.accept(count)
                // The resampler keeps up to 64 samples of the program.
                let all = held + count * ratio
                held = min(all, ratio == 1 ? 0 : Int.random(in: 0...64, using: &random) * ratio)
                tracker.wrote(all - held)
                player.written += all - held
            case 4:
                if tracker.mark(.named("\(step)"), unread: 0) { marks.append(("\(step)", nil)) }
            case 5:
                // What waits in the program's pipe goes with it.
                tracker.accept(Int.random(in: 0...100, using: &random))
                held = 0
                player.order(tracker.clear())
            case 6..<9: player.runFrame(960)
            default:
                // Not every report arrives, and what arrives holds all before it.
                var events: [PlaybackEvent] = []
                tracker.note(player.report, into: &events)
                for event in events {
                    switch event {
                    case .played(let mark, let played):
                        told.append(mark)
                        #expect(played >= lastPlayed && played <= tracker.played)
                        lastPlayed = played
                    case .discarded(let mark): told.append(mark)
                    case .cleared, .interrupted, .ended: break
                    }
                }
                #expect(tracker.played == (player.report.consumed - player.report.skipped) / ratio)
            }
            #expect(tracker.waiting >= 0 && tracker.waiting <= tracker.accepted)
        }
        // All is played in the end.
        tracker.wrote(held)
        player.written += held
        player.runFrame(.max / 4)
        var events: [PlaybackEvent] = []
        tracker.note(player.report, into: &events)
        for event in events {
            switch event {
            case .played(let mark, _), .discarded(let mark): told.append(mark)
            case .cleared, .interrupted, .ended: break
            }
        }
        #expect(told == marks.map(\.name))
        #expect(tracker.waiting == 0)
    }

    @Test(
        "With a report for each frame, a mark counts as played exactly if the sample before it was", arguments: 0..<300)
    func truth(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let ratio = [1, 2, 3, 6].randomElement(using: &random) ?? 1
        var tracker = PlaybackTracker(ratio: ratio)
        var player = Player()
        var held = 0
        // Where in the queue the sample before a mark will be, and whether a clear came since.
        var waiting: [(name: String, place: Int, isDoomed: Bool)] = []
        var (played, discarded): (Set<String>, Set<String>) = ([], [])
        var (saidPlayed, saidDiscarded): (Set<String>, Set<String>) = ([], [])
        for step in 0..<400 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                let count = Int.random(in: 1...2_000, using: &random)
                tracker.accept(count)
                let all = held + count * ratio
                held = min(all, ratio == 1 ? 0 : Int.random(in: 0...64, using: &random) * ratio)
                tracker.wrote(all - held)
                player.written += all - held
            case 4:
                _ = tracker.mark(.named("\(step)"), unread: 0)
                waiting.append(("\(step)", player.written + held, false))
            case 5 where !player.hasOrder:
                tracker.accept(Int.random(in: 0...100, using: &random))
                held = 0
                player.order(tracker.clear())
                for index in waiting.indices { waiting[index].isDoomed = true }
            default:
                let before = player.report.consumed
                player.runFrame(960)
                for mark in waiting {
                    if mark.place <= (mark.isDoomed ? before : player.report.consumed) {
                        played.insert(mark.name)
                    } else if mark.isDoomed {
                        discarded.insert(mark.name)
                    }
                }
                waiting.removeAll { played.contains($0.name) || discarded.contains($0.name) }
                var events: [PlaybackEvent] = []
                tracker.note(player.report, into: &events)
                for event in events {
                    switch event {
                    case .played(let mark, _): saidPlayed.insert(mark)
                    case .discarded(let mark): saidDiscarded.insert(mark)
                    case .cleared, .interrupted, .ended: break
                    }
                }
                #expect(saidPlayed == played && saidDiscarded == discarded)
            }
        }
        #expect(!played.isEmpty && !discarded.isEmpty)
    }
}
