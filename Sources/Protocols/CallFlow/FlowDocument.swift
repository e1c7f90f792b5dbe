// CallFlow: call flows in TwiML: their documents, and the course of a call through them. Pure: nothing is read or played here.

public import BotWire

/// A document of a call flow: verbs, in the order in which a call goes through them.
public struct FlowDocument: Equatable, Sendable {
    /// A verb with its place in the document.
    public struct Step: Equatable, Sendable {
        /// The line on which its element begins; 1-based.
        public let line: Int
        /// What it does.
        public let verb: FlowVerb
    }

    /// A document has this many bytes at most.
    public static let longest = 65_536

    /// In the document's order.
    public let steps: [Step]
}

/// What an element of a document does.
public enum FlowVerb: Equatable, Sendable {
    /// Speaks a text, that number of times.
    case say(FlowText, times: Int)
    /// Plays a file, that number of times.
    case play(FlowText, times: Int)
    /// Does nothing for a time. Before the call is answered, the caller hears it ring meanwhile.
    case pause(Duration)
    /// Collects keys.
    case gather(FlowGather)
    /// Records the caller.
    case record(FlowRecord)
    /// Continues with another document.
    case redirect(FlowText, Webhook.Method)
    /// Connects the caller with others.
    case dial(FlowDial)
    /// Connects the caller with a bot.
    case connect(FlowConnect)
    /// Forks the call's sound to a server, while the flow continues.
    case start(FlowStream)
    /// Ends what was forked under a name.
    case stop(String)
    /// Has the caller wait in a queue.
    case enqueue(FlowEnqueue)
    /// Takes the caller out of the queue in which it waits.
    case leave
    /// Rejects the call instead of answering it.
    case reject(FlowRejection)
    /// Ends the call.
    case hangup

    /// The name of its element.
    public var name: String {
        switch self {
        case .say: "Say"
        case .play: "Play"
        case .pause: "Pause"
        case .gather: "Gather"
        case .record: "Record"
        case .redirect: "Redirect"
        case .dial: "Dial"
        case .connect: "Connect"
        case .start: "Start"
        case .stop: "Stop"
        case .enqueue: "Enqueue"
        case .leave: "Leave"
        case .reject: "Reject"
        case .hangup: "Hangup"
        }
    }

    /// Whether the call is answered for it: a call can be rejected only before that.
    var needsAnswer: Bool {
        switch self {
        case .say, .play, .gather, .record, .connect, .start, .enqueue, .hangup: true
        case .pause, .redirect, .reject, .leave, .stop: false
        case .dial(let dial): !dial.answersOnBridge
        }
    }
}

/// How keys are collected.
public struct FlowGather: Equatable, Sendable {
    /// The most keys of one answer, and how many are collected unless the document says it.
    public static let mostKeys = 64

    /// What the caller hears meanwhile, until the first key: ``FlowVerb/say(_:times:)``, ``FlowVerb/play(_:times:)`` and
    /// ``FlowVerb/pause(_:)``.
    public let prompts: [FlowDocument.Step]
    /// The number of keys that completes the answer: 1…64.
    public let keys: Int
    /// The key that completes the answer, and is no part of it.
    public let finishKey: Character?
    /// How long the caller may wait with the first key after the prompts, and with each further key.
    public let timeout: Duration
    /// The document that follows an answer; the current one if nil.
    public let action: FlowText?
    /// How a server is asked for it.
    public let method: Webhook.Method
    /// Whether the action also follows if no key was pressed.
    public let actsOnEmptyResult: Bool
}

/// How the caller is recorded.
public struct FlowRecord: Equatable, Sendable {
    /// Seconds of silence after which a recording may end at the latest; until then they are in memory.
    public static let longestPause = 60

    /// The longest recording.
    public let longest: Duration
    /// The silence that ends it.
    public let timeout: Duration
    /// Keys that end it.
    public let finishKeys: Set<Character>
    /// Whether a tone precedes it.
    public let beeps: Bool
    /// Whether silence at its ends is left out.
    public let trims: Bool
    /// The document that follows a recording; the current one if nil.
    public let action: FlowText?
    /// How a server is asked for it.
    public let method: Webhook.Method
}

/// How a call is rejected. The names are those of documents.
public enum FlowRejection: String, CaseIterable, Sendable {
    /// The callee declines.
    case rejected
    /// The callee is busy.
    case busy
}

/// What is wrong with one element of a document.
public struct FlowFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The line on which the element begins; 1-based, and 0 if the document as a whole is meant.
    public let line: Int
    /// The element's name; empty if the document as a whole is meant.
    public let element: String
    /// What is wrong, and what is allowed.
    public let message: String

    /// Locates a fault.
    public init(line: Int = 0, element: String = "", message: String) {
        self.line = line
        self.element = element
        self.message = message
    }

    /// `line 3: Gather: message`, without the parts that are unknown.
    public var description: String {
        (line > 0 ? "line \(line): " : "") + (element.isEmpty ? "" : "\(element): ") + message
    }
}

/// All that is wrong with a document.
public struct FlowFaults: Error, Equatable, Sendable, CustomStringConvertible {
    /// At least one, in the document's order.
    public let faults: [FlowFault]

    /// Gathers faults.
    public init(faults: [FlowFault]) { self.faults = faults }

    /// One line for each.
    public var description: String { faults.map(\.description).joined(separator: "\n") }
}

/// A document or a sound that cannot be used.
public struct FlowUnusable: Error, Equatable, Sendable {
    /// Why, to be read after the place that names it.
    public let message: String
    /// Whether there is no such file.
    public let isMissing: Bool

    /// Makes one.
    public init(_ message: String, isMissing: Bool = false) {
        self.message = message
        self.isMissing = isMissing
    }
}
