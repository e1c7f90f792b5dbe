internal import AudioKit

/// The parts that the page of every report has: one page that needs nothing else, neither network nor scripts.
struct HTMLPage {
    let title: String
    /// Empty parts are left out.
    let body: [String]

    var text: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width,initial-scale=1">
        <title>\(HTMLText.escaped(title))</title>
        <style>
        \(Self.style)
        </style>
        </head>
        <body>
        <main>
        \(body.filter { !$0.isEmpty }.joined(separator: "\n"))
        </main>
        </body>
        </html>

        """
    }

    /// What was measured, when, where and for how long, and the verdict.
    static func header(
        _ heading: String, startedAt: String, origin: RunOrigin?, length: String, checks: [LoopbackVerdict.Check],
        withheldCount: Int
    ) -> String {
        let failed = checks.count { $0.outcome == .failed }
        let passed = checks.count { $0.outcome == .passed }
        let withheld = withheldCount == 0 ? "" : ", \(withheldCount) figures withheld"
        return """
            <header><div><h1>\(heading)</h1><p>\(HTMLText.escaped(startedAt)) · \
            \(origin.map { HTMLText.escaped($0.text) + " · " } ?? "")\
            \(length) · \(passed) checks passed, \(failed) failed\(withheld)</p></div>
            <div class="badge \(failed == 0 ? "passed" : "failed")">\(failed == 0 ? "Passed" : "Failed")</div></header>
            """
    }

    static func tile(_ name: String, _ value: String?, _ note: String) -> String {
        "<div class=\"tile\"><dt>\(HTMLText.escaped(name))</dt><dd>\(HTMLText.escaped(value ?? "–"))"
            + "<small>\(HTMLText.escaped(note))</small></dd></div>"
    }

    static func tiles(_ tiles: [String]) -> String { "<dl class=\"tiles\">\n\(tiles.joined(separator: "\n"))\n</dl>" }

    static func checks(_ checks: [LoopbackVerdict.Check]) -> String {
        let rows = checks.map { check in
            // Advice has a separate line: beside the figures it would be a column of single words on a mobile phone.
            let advice =
                check.advice.isEmpty
                ? "" : "<tr class=\"advice\"><td colspan=\"4\">\(HTMLText.escaped(check.advice))</td></tr>"
            return """
                <tr\(advice.isEmpty ? "" : " class=\"advised\"")><th scope="row">\(HTMLText.escaped(check.name))</th>\
                <td><span class="chip \(check.outcome.rawValue)">\(check.outcome.rawValue)</span></td>\
                <td>\(HTMLText.escaped(check.measured))</td><td>\(HTMLText.escaped(check.limit))</td></tr>\(advice)
                """
        }
        return """
            <section><h2>Checks</h2><div class="scroll"><table><caption>Thresholds and what was measured</caption>
            <thead><tr><th scope="col">What</th><th scope="col">Result</th><th scope="col">Measured</th>\
            <th scope="col">Allowed</th></tr></thead><tbody>
            \(rows.joined(separator: "\n"))
            </tbody></table></div></section>
            """
    }

    static func section(_ title: String, _ note: String, _ content: String) -> String {
        "<section><h2>\(HTMLText.escaped(title))</h2><p class=\"note\">\(HTMLText.escaped(note))</p>\n\(content)</section>"
    }

    static func facts(_ facts: [LoopbackRun.Fact]) -> String {
        section(
            "The run", "What was measured, and how it was set.",
            HTMLText.table("Facts", ["What", "Value"], facts.map { [$0.label, $0.value] }))
    }

    /// Parts of a delay as bars and as a table.
    static func stages(_ title: String, _ stages: [LoopbackRun.Stage]) -> String {
        let total = stages.reduce(0) { $0 + $1.milliseconds }
        guard total > 0 else { return "" }
        let bars = stages.map {
            "<div style=\"flex:\(AudioText.fixed($0.milliseconds, 3))\" title=\"\(HTMLText.escaped($0.name))\">"
                + "<b>\(AudioText.number($0.milliseconds, "ms"))</b> \(HTMLText.escaped($0.name))</div>"
        }
        let rows = stages.map { [$0.name, AudioText.number($0.milliseconds, "ms")] }
        return "<section><h2>\(title)</h2><div class=\"stages\" aria-hidden=\"true\">\(bars.joined())</div>"
            + HTMLText.table(
                "Delay by stage", ["Stage", "Delay"], rows + [["Together", AudioText.number(total, "ms")]])
            + "</section>"
    }
}
