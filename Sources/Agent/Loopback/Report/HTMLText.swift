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
