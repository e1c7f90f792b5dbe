/// As much of a terminal as a live view needs: text, line ends, and the sequences that move up and erase (ECMA-48).
struct Screen {
    private var cells: [[Character]] = [[]]
    private var row = 0
    private var column = 0

    var lines: [String] { cells.map { String($0) } }

    mutating func write(_ text: String) {
        var rest = Substring(text)
        while let character = rest.popFirst() {
            switch character {
            case "\r": column = 0
            case "\n":
                (row, column) = (row + 1, 0)
                if row == cells.count { cells.append([]) }
            case "\u{1B}":
                let parameters = rest.dropFirst().prefix { $0.isNumber }
                rest = rest.dropFirst(1 + parameters.count)
                if let command = rest.popFirst() { obey(command, Int(parameters) ?? 0) }
            default: put(character)
            }
        }
    }

    private mutating func obey(_ command: Character, _ number: Int) {
        switch command {
        case "A": row = max(0, row - number)
        case "K": cells[row] = []
        case "J":
            cells[row] = Array(cells[row].prefix(column))
            cells.removeSubrange((row + 1)...)
        default: break
        }
    }

    private mutating func put(_ character: Character) {
        while cells[row].count <= column { cells[row].append(" ") }
        cells[row][column] = character
        column += 1
    }
}
