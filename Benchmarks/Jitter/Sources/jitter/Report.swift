import Foundation

/// The figures of all profiles, each the mean over its seeds.
struct Report {
    private struct Row {
        var name: String
        var first8: Run.Figures
        var whole: Run.Figures
    }

    private var rows: [Row] = []

    mutating func add(_ name: String, _ runs: [Run]) {
        rows.append(Row(name: name, first8: Self.mean(runs.map(\.first8Seconds)), whole: Self.mean(runs.map(\.whole))))
    }

    private static func mean(_ figures: [Run.Figures]) -> Run.Figures {
        var mean = Run.Figures()
        for path in Run.Figures.fields {
            mean[keyPath: path] = figures.reduce(0) { $0 + $1[keyPath: path] } / Double(max(figures.count, 1))
        }
        return mean
    }

    var table: String {
        var lines = [
            "                            whole call                                             first 8 s",
            "profile      jitter  NetEQ  added  p95  playout concealed fec    stretched constant    added p95  playout concealed stretched",
            "             ms      ms     ms     ms   ms      %         %      %         %           ms    ms   ms      %         %",
        ]
        for row in rows {
            let whole = row.whole
            let first = row.first8
            let name = row.name.padding(toLength: 12, withPad: " ", startingAt: 0)
            lines.append(
                name
                    + String(
                        format: "%6.1f %6.1f %6.1f %5.0f %7.1f %8.2f %6.2f %8.2f %8.2f", whole.pathJitterMs,
                        whole.referenceDelayMs, whole.bufferDelayMs,
                        whole.bufferDelayP95Ms,
                        whole.playoutDelayMs, whole.concealedShare * 100, whole.recoveredShare * 100,
                        whole.stretchedShare * 100, whole.constantMissedShare * 100)
                    + String(
                        format: "      %6.1f %5.0f %7.1f %8.2f %8.2f", first.bufferDelayMs, first.bufferDelayP95Ms,
                        first.playoutDelayMs, first.concealedShare * 100, first.stretchedShare * 100))
        }
        return lines.joined(separator: "\n")
    }

    var json: String {
        let objects = rows.map { row in
            #"{"profile":"\#(row.name)","whole":\#(Self.json(row.whole)),"first_8_s":\#(Self.json(row.first8))}"#
        }
        return #"{"jitter":["# + objects.joined(separator: ",") + "]}"
    }

    private static func json(_ figures: Run.Figures) -> String {
        let names = [
            "path_jitter_ms", "neteq_rule_ms", "added_ms", "added_p95_ms", "playout_ms", "concealed_share",
            "recovered_share",
            "stretched_share", "constant_missed_share",
        ]
        let members = zip(names, Run.Figures.fields).map { name, path in
            #""\#(name)":\#(String(format: "%.4f", figures[keyPath: path]))"#
        }
        return "{" + members.joined(separator: ",") + "}"
    }
}

extension Run.Figures {
    /// All figures, in the order of the JSON object.
    static var fields: [WritableKeyPath<Run.Figures, Double>] {
        [
            \.pathJitterMs, \.referenceDelayMs, \.bufferDelayMs, \.bufferDelayP95Ms, \.playoutDelayMs, \.concealedShare,
            \.recoveredShare,
            \.stretchedShare, \.constantMissedShare,
        ]
    }
}
