internal import ControlWire

/// The screen of `handset top`: a device, its accounts and its calls. Pure: it returns lines, and knows no terminal.
struct TopView {
    /// Columns and rows of a terminal.
    struct Size: Equatable {
        let columns: Int
        let rows: Int
    }

    private let style: TerminalStyle
    private var status: ControlStatus?
    /// The counters of each call before the newest, so that loss is that of the last second.
    private var earlier: [UInt64: ControlCallMedia] = [:]
    private var current: [UInt64: ControlCallMedia] = [:]

    init(style: TerminalStyle) { self.style = style }

    /// Takes the newest state.
    mutating func take(_ status: ControlStatus) {
        self.status = status
        earlier = current
        current = status.calls.reduce(into: [:]) { $0[$1.call] = $1.media }
    }

    /// The screen: as many lines as the terminal has rows, or all of them without one.
    ///
    /// - Parameter size: Nil for a reader that is no terminal.
    func lines(_ size: Size?) -> [String] {
        guard let status else { return [] }
        var lines = header(status)
        lines += [Line("")] + accounts(status, most: size.map { max(1, $0.rows / 4) })
        let room = size.map { max(1, $0.rows - lines.count - 2) }
        lines += calls(status, most: room, columns: size?.columns ?? 120)
        guard let size else { return lines.map { style.plain($0) } }
        return lines.prefix(size.rows).map { style.text($0, columns: size.columns) }
    }

    // MARK: Parts

    /// A line, and how it is shown.
    struct Line: Equatable {
        enum Look { case usual, bold, dim, bad }

        let text: String
        let look: Look

        init(_ text: String, _ look: Look = .usual) {
            self.text = text
            self.look = look
        }
    }

    private func header(_ status: ControlStatus) -> [Line] {
        let user = status.user.map { " as \(ControlText.printable($0))" } ?? ""
        let connection =
            status.accounts.map { accounts in
                "\(accounts.count { $0.connection == "connected" }) of \(accounts.count) accounts connected"
            } ?? "\(status.connection)\(user) at \(status.server)"
        var facts = ["up \(Self.clock(status.uptimeSeconds))", "\(status.callCount) calls"]
        if let load = status.load { facts.append("load \(ControlText.load(load))") }
        if let sound = status.sound { facts.append("card \(ControlText.sound(sound))") }
        if status.isDraining == true { facts.append("draining") }
        return [
            Line("\(ControlText.printable(status.device)): \(connection)", .bold), Line(facts.joined(separator: ", ")),
        ]
    }

    private func accounts(_ status: ControlStatus, most: Int?) -> [Line] {
        guard let accounts = status.accounts else { return [] }
        // What needs attention comes first.
        let sorted = accounts.filter { $0.connection != "connected" } + accounts.filter { $0.connection == "connected" }
        let shown = sorted.prefix(most ?? sorted.count)
        let width = shown.map(\.account.count).reduce(7, max) + 1
        var lines = shown.map { account in
            Line(
                ControlText.printable(account.account).padded(to: width) + ControlText.account(account),
                account.connection == "connected" ? .usual : .bad)
        }
        if shown.count < sorted.count { lines.append(Line("and \(sorted.count - shown.count) more accounts", .dim)) }
        return lines + [Line("")]
    }

    private func calls(_ status: ControlStatus, most: Int?, columns: Int) -> [Line] {
        guard !status.calls.isEmpty else { return [Line("no calls", .dim)] }
        let peerWidth = max(10, min(40, columns - Self.heading(peer: 0).count - 1))
        var lines = [Line(Self.heading(peer: peerWidth), .dim)]
        let newest = status.calls.reversed().prefix(most ?? status.calls.count)
        lines += newest.map { row($0, peer: peerWidth) }
        let others = status.callCount - newest.count
        if others > 0 { lines.append(Line("and \(others) more", .dim)) }
        return lines
    }

    private static func heading(peer: Int) -> String {
        cells(
            "CALL", "PEER".padded(to: peer), "STATE", "TIME", "LOSS %", "CONC %", "DELAY", "RTT", "JITTER", "SENT",
            "RECV")
    }

    private func row(_ call: ControlCall, peer: Int) -> Line {
        let name = (call.isIncoming ? "< " : "> ") + ControlText.printable(call.peer)
        let media = call.media
        let last = earlier[call.call]
        let loss = media.flatMap { now in
            last.map { Self.share(now.lost - $0.lost, of: now.lost - $0.lost + now.received - $0.received) }
        }
        let concealed = media.flatMap { now in
            last.map { Self.share(now.concealed - $0.concealed, of: now.played - $0.played) }
        }
        let text = Self.cells(
            "\(call.call)", Self.cut(name, to: peer).padded(to: peer), call.isHeld ? "held" : call.state.rawValue,
            call.durationSeconds.map(Self.clock) ?? "", Self.tenths(loss), Self.tenths(concealed),
            Self.whole(media?.delay), Self.whole(media?.roundTrip), Self.tenths(media?.jitter),
            Self.whole(media?.sentLevel), Self.whole(media?.receivedLevel))
        return Line(text, (loss ?? 0) > 3 || (concealed ?? 0) > 3 ? .bad : .usual)
    }

    private static func cells(
        _ call: String, _ peer: String, _ state: String, _ time: String, _ figures: String...
    ) -> String {
        ([call.leftPadded(to: 6), peer, state.padded(to: 10), time.leftPadded(to: 8)]
            + figures.map { $0.leftPadded(to: 6) }).joined(separator: " ")
    }

    /// Of counters that do not decrease, except for a packet that comes late after all.
    private static func share(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? max(0, Double(part)) * 100 / Double(whole) : 0
    }

    private static func whole(_ value: Double?) -> String { value.map { "\(Int($0.rounded()))" } ?? "-" }

    private static func tenths(_ value: Double?) -> String { value.map { "\(($0 * 10).rounded() / 10)" } ?? "-" }

    private static func cut(_ text: String, to width: Int) -> String {
        text.count <= width ? text : text.prefix(max(0, width - 1)) + "…"
    }

    /// Minutes and seconds, and hours from the first one on.
    private static func clock(_ seconds: Double) -> String {
        let whole = Int(max(0, min(seconds, 1e9)))
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return hours > 0 ? "\(hours):\(two(minutes)):\(two(whole % 60))" : "\(minutes):\(two(whole % 60))"
    }
}

extension TerminalStyle {
    /// A line that fits a terminal.
    fileprivate func text(_ line: TopView.Line, columns: Int) -> String {
        plain(TopView.Line(String(line.text.prefix(columns)), line.look))
    }

    fileprivate func plain(_ line: TopView.Line) -> String {
        switch line.look {
        case .usual: line.text
        case .bold: bold(line.text)
        case .dim: dim(line.text)
        case .bad: red(line.text)
        }
    }
}
