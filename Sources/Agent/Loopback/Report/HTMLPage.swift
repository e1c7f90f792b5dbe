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

/// Text within HTML.
enum HTMLText {
    /// `text` with the characters replaced that mean something in HTML.
    static func escaped(_ text: String) -> String {
        var made = ""
        for character in text {
            switch character {
            case "&": made += "&amp;"
            case "<": made += "&lt;"
            case ">": made += "&gt;"
            case "\"": made += "&quot;"
            default: made.append(character)
            }
        }
        return made
    }

    /// A table with its caption for those who do not see it, and a head.
    static func table(_ caption: String, _ head: [String], _ rows: [[String]]) -> String {
        let heads = head.map { "<th scope=\"col\">\(escaped($0))</th>" }.joined()
        let body = rows.map { row in
            let cells = row.enumerated().map { index, cell in
                index == 0 ? "<th scope=\"row\">\(escaped(cell))</th>" : "<td>\(escaped(cell))</td>"
            }
            return "<tr>\(cells.joined())</tr>"
        }
        return "<div class=\"scroll\"><table><caption>\(escaped(caption))</caption><thead><tr>\(heads)</tr></thead>"
            + "<tbody>\n\(body.joined(separator: "\n"))\n</tbody></table></div>"
    }
}

extension HTMLPage {
    /// One style sheet within the page: it must be whole when it is mailed.
    static let style = """
        :root{color-scheme:light dark;--ground:#f4f6f9;--card:#fff;--ink:#16202e;--soft:#5a6779;--line:#dfe4eb;\
        --accent:#1f66d1;--band:#1f66d133;--second:#b4560a;--good:#0f7b4a;--goodsoft:#dff3e8;--bad:#b4232f;\
        --badsoft:#fbe4e5;--region:#1f66d10f;--stage:#1f66d1;--onstage:#fff}
        @media(prefers-color-scheme:dark){:root{--ground:#0e131a;--card:#161d27;--ink:#e7edf5;--soft:#97a5b8;\
        --line:#2a3442;--accent:#6ea8ff;--band:#6ea8ff3a;--second:#f0a35e;--good:#5fd39b;--goodsoft:#12362a;\
        --bad:#ff8a90;--badsoft:#431c22;--region:#6ea8ff14;\
        --stage:#6ea8ff;--onstage:#0b121c}}
        *{box-sizing:border-box}
        body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,"Segoe UI",Roboto,\
        "Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
        main{max-width:1120px;margin:0 auto;padding:32px 20px 64px}
        header{display:flex;flex-wrap:wrap;gap:12px 20px;align-items:center;margin-bottom:20px}
        h1{font-size:26px;line-height:1.2;margin:0;letter-spacing:-.01em}
        h2{font-size:17px;margin:0 0 2px}
        header p,.note{color:var(--soft);margin:2px 0 0;font-size:14px}
        .note{margin:0 0 10px}
        .badge{margin-left:auto;font-weight:650;font-size:18px;padding:8px 18px;border-radius:999px}
        .passed{color:var(--good);background:var(--goodsoft)}
        .failed{color:var(--bad);background:var(--badsoft)}
        .unmeasured{color:var(--soft);background:var(--line)}
        .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;margin:0 0 16px;padding:0}
        .tile,section{background:var(--card);border:1px solid var(--line);border-radius:14px}
        .tile{padding:13px 14px}
        .tile dt{color:var(--soft);font-size:13px}
        .tile dd{margin:2px 0 0;font-size:20px;font-weight:650;letter-spacing:-.02em;line-height:1.25}
        .tile dd small{display:block;font-size:13px;font-weight:400;letter-spacing:0;color:var(--soft);margin-top:4px}
        section{padding:18px 20px;margin-bottom:16px}
        .pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:0 16px}
        @media(max-width:520px){.pair{grid-template-columns:1fr}}
        svg{display:block;width:100%;height:auto;overflow:visible}
        svg text{font-size:12px;fill:var(--soft)}
        svg .value{fill:var(--ink);font-weight:600}
        .grid{stroke:var(--line)}.faint{stroke-dasharray:2 4}
        .line{fill:none;stroke:var(--accent);stroke-width:2;stroke-linejoin:round}
        .second{fill:none;stroke:var(--second);stroke-width:2;stroke-linejoin:round}
        .band{fill:var(--band)}.region{fill:var(--region)}.bar{fill:var(--accent)}.bar2{fill:var(--second)}
        .mark line{stroke:var(--bad);stroke-opacity:.45}.mark circle{fill:var(--bad)}
        .limit{stroke:var(--bad);stroke-dasharray:6 4}svg .limit-label{fill:var(--bad)}
        .scroll{overflow-x:auto}
        table{border-collapse:collapse;width:100%;font-size:14px}
        caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
        th,td{text-align:left;padding:7px 12px 7px 0;border-bottom:1px solid var(--line);vertical-align:top}
        thead th{color:var(--soft);font-weight:500}tbody th{font-weight:500}tr:last-child>*{border-bottom:0}
        .chip{display:inline-block;padding:1px 10px;border-radius:999px;font-size:13px;font-weight:600;\
        white-space:nowrap}
        details{margin-top:10px;font-size:14px}summary{cursor:pointer;color:var(--accent)}
        .stages{display:flex;border-radius:10px;overflow:hidden;margin:10px 0 8px;gap:2px}
        .stages div{background:var(--stage);color:var(--onstage);min-width:3px;height:34px;line-height:34px;padding:0 0 0 10px;\
        font-size:13px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis}
        .stages div:nth-child(even){background:var(--second)}
        .advised>*{border-bottom:0}.advice td{color:var(--soft);padding-top:0}
        @media(max-width:700px){section{overflow-x:auto;padding:16px 14px}svg.wide{min-width:680px}\
        main{padding:20px 12px 40px}}
        footer{color:var(--soft);font-size:13px;margin-top:20px}
        @media print{body{background:#fff}section,.tile{break-inside:avoid}}
        """
}
