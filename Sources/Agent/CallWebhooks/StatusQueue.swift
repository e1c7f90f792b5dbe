package import BotWire
package import CallParticipation
package import Core

/// Status callbacks on their way: those of a call in order, each tried three times at most, and a bounded number of them.
package struct StatusQueue: ProtocolCore, Sendable {
    /// A report of a call to a server.
    package struct Report: Equatable, Sendable {
        package var call: CallID
        /// What it is, for the log.
        package var what: String
        package var request: TwilioWebhook.Request

        package init(call: CallID, what: String, request: TwilioWebhook.Request) {
            self.call = call
            self.what = what
            self.request = request
        }
    }

    package enum Input: Equatable, Sendable {
        case add(Report)
        /// The server has answered a call's report with this status of HTTP.
        case answered(call: CallID, Int)
        /// It did not answer.
        case failed(call: CallID, String)
        /// Nothing follows, and nothing waits any longer to be tried again.
        case finish
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    package enum Output: Equatable, Sendable {
        case send(Report)
        /// A report that did not reach the server, and why.
        case lost(Report, String)
    }

    /// Reports that may wait.
    package static let mostWaiting = 1_024
    /// Requests at a time.
    static let mostSending = 32
    /// How long after a failure, of which the service is to blame, the next try comes.
    static let pauses: [Duration] = [.seconds(1), .seconds(4)]

    private enum Step: Sendable {
        case ready
        case sending
        case waiting(until: Instant)
    }

    private struct Line: Sendable {
        var reports: [Report]
        var tries = 0
        var step = Step.ready
    }

    private var lines: [CallID: Line] = [:]
    /// The calls in ``Step/ready``, longest first.
    private var ready: [CallID] = []
    private var sending = 0
    private var waiting = 0
    private var isFinishing = false

    /// Whether everything is delivered, or lost.
    var isEmpty: Bool { lines.isEmpty }
    /// Reports that are neither delivered nor lost.
    var count: Int { waiting }

    package var nextDeadline: Instant? {
        lines.values.compactMap { line in
            guard case .waiting(let until) = line.step else { return nil }
            return until
        }.min()
    }

    package mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .add(let report): add(report, into: &outbox)
        case .answered(let call, let status):
            switch status {
            case 200..<300: settle(call, lost: nil, into: &outbox)
            case 429, 500...: retry(call, "its answer has the status \(status)", at: now, into: &outbox)
            default: settle(call, lost: "its answer has the status \(status)", into: &outbox)
            }
        case .failed(let call, let why): retry(call, why, at: now, into: &outbox)
        case .finish:
            isFinishing = true
            wake { _ in true }
        case .timerFired: wake { $0 <= now }
        }
        while sending < Self.mostSending, !ready.isEmpty {
            let call = ready.removeFirst()
            guard let report = lines[call]?.reports.first else { continue }
            lines[call]?.step = .sending
            sending += 1
            outbox.append(.send(report))
        }
    }

    private mutating func add(_ report: Report, into outbox: inout [Output]) {
        guard waiting < Self.mostWaiting else {
            return outbox.append(.lost(report, "\(Self.mostWaiting) others are waiting, the limit"))
        }
        waiting += 1
        if lines[report.call] == nil {
            lines[report.call] = Line(reports: [report])
            ready.append(report.call)
        } else {
            lines[report.call]?.reports.append(report)
        }
    }

    /// The first report of a call is delivered, or lost.
    private mutating func settle(_ call: CallID, lost why: String?, into outbox: inout [Output]) {
        guard var line = lines[call], case .sending = line.step else { return }
        sending -= 1
        waiting -= 1
        let report = line.reports.removeFirst()
        if let why { outbox.append(.lost(report, why)) }
        line.tries = 0
        line.step = .ready
        lines[call] = line.reports.isEmpty ? nil : line
        if !line.reports.isEmpty { ready.append(call) }
    }

    private mutating func retry(_ call: CallID, _ why: String, at now: Instant, into outbox: inout [Output]) {
        guard let line = lines[call], case .sending = line.step else { return }
        guard !isFinishing, line.tries < Self.pauses.count else { return settle(call, lost: why, into: &outbox) }
        sending -= 1
        lines[call]?.step = .waiting(until: now.advanced(by: Self.pauses[line.tries]))
        lines[call]?.tries += 1
    }

    private mutating func wake(_ isDue: (Instant) -> Bool) {
        for (call, line) in lines.sorted(by: { $0.key.number < $1.key.number }) {
            guard case .waiting(let until) = line.step, isDue(until) else { continue }
            lines[call]?.step = .ready
            ready.append(call)
        }
    }
}
