internal import AudioDevices
internal import CallAgent
internal import MediaEngine
internal import Monitoring

/// Metrics of a process's media workers and of its sound card.
struct MediaMetrics {
    private let workers: [WorkerLoad]
    private let takesCalls: Bool
    private let complexity: Int
    private let card: CardStatistics?

    /// - Parameter takesCalls: Whether nothing but the machine keeps the process from taking calls.
    init(_ media: [SharedMedia], takesCalls: Bool = true) {
        let loads = media.map(\.load)
        workers = loads.flatMap(\.workers)
        self.takesCalls = takesCalls && loads.allSatisfy(\.takesCalls)
        complexity = loads.map(\.complexityLimit).min() ?? 10
        card = media.lazy.compactMap(\.cardStatistics).first
    }

    /// What keeps calls from being taken, in sentences.
    var obstacles: [String] {
        var obstacles = takesCalls ? [] : ["the machine is full: calls are refused as busy"]
        if let card, !card.isRunning, card.losses > 0 { obstacles.append("the sound card is gone") }
        return obstacles
    }

    /// Adds them to a page.
    func add(to page: inout MetricPage) {
        for (index, worker) in workers.enumerated() { page.add(Self.load, worker.share, ["\(index)"]) }
        page.add(Self.takesCalls, takesCalls ? 1 : 0)
        page.add(Self.complexity, complexity)
        guard let card else { return }
        page.add(Self.cardRuns, card.isRunning ? 1 : 0)
        for (direction, line) in [("playback", card.playback), ("capture", card.capture)] {
            page.add(Self.xruns, line.xruns, [direction])
        }
        for (direction, line) in [("playback", card.playback), ("capture", card.capture)] {
            page.add(Self.missing, Double(line.missingSamples) / 48_000, [direction])
        }
        page.add(Self.lateness, card.worstLatenessMilliseconds / 1_000)
    }
}

extension MediaMetrics {
    private static let load = Metric(
        "handset_worker_load_ratio", .gauge, "Share of time that a media worker's core is busy", by: ["worker"])
    private static let takesCalls = Metric(
        "handset_takes_calls", .gauge, "0 while calls are refused because the machine, or the trunk, is full")
    private static let complexity = Metric(
        "handset_encoder_complexity_limit", .gauge,
        "The highest complexity that Opus encoders may use now; 10 limits nothing")
    private static let cardRuns = Metric("handset_card_running", .gauge, "1 while the sound card is there and runs")
    private static let xruns = Metric(
        "handset_card_xruns_total", .counter, "Times the card ran out of samples, or of room", by: ["direction"])
    private static let missing = Metric(
        "handset_card_missing_seconds_total", .counter, "Sound that was missing when it was due", by: ["direction"])
    private static let lateness = Metric(
        "handset_card_lateness_seconds", .gauge, "How late the card's thread was at the worst in its last report")

    /// All of them.
    static let metrics = [load, takesCalls, complexity, cardRuns, xruns, missing, lateness]
}
