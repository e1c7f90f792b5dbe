/// What has happened for one reason, such as a call: spans, the first of which is the cause of the others here.
public struct Trace: Hashable, Sendable {
    /// The trace, which may have spans of other programs, too.
    public let id: TraceID
    /// Its spans in this process, in any order.
    public let spans: [TraceSpan]

    /// Makes a trace.
    public init(_ id: TraceID, _ spans: [TraceSpan]) {
        self.id = id
        self.spans = spans
    }
}

/// Something that took a time. Times are in nanoseconds since 1970.
public struct TraceSpan: Hashable, Sendable {
    /// What a span is to others (OpenTelemetry, SpanKind).
    public enum Kind: UInt64, Sendable {
        /// Work within the process.
        case inner = 1
        /// It answers another program.
        case server = 2
        /// It asks another program.
        case client = 3
    }

    /// What caused it.
    public enum Parent: Hashable, Sendable {
        /// Nothing: the span is the first of its trace.
        case root
        /// A span of this process.
        case own(SpanID)
        /// A span of another one.
        case remote(SpanID)
    }

    /// Something that is known of a span.
    public struct Attribute: Hashable, Sendable {
        /// A value.
        public enum Value: Hashable, Sendable {
            case text(String)
            case whole(Int64)
            case real(Double)
        }

        let key: String
        let value: Value

        /// Makes an attribute.
        public init(_ key: String, _ value: Value) {
            self.key = key
            self.value = value
        }
    }

    /// Something that happened at one time within it.
    public struct Event: Hashable, Sendable {
        let name: String
        let time: Int64
        let attributes: [Attribute]

        /// Makes an event.
        public init(_ name: String, at time: Int64, _ attributes: [Attribute] = []) {
            self.name = name
            self.time = time
            self.attributes = attributes
        }
    }

    /// What it is called.
    public var id: SpanID
    /// What caused it.
    public var parent = Parent.root
    /// One of few words.
    public var name: String
    /// What it is to others.
    public var kind = Kind.inner
    /// When it began.
    public var start: Int64
    /// When it ended.
    public var end: Int64
    /// What is known of it.
    public var attributes: [Attribute] = []
    /// What happened within it.
    public var events: [Event] = []
    /// Spans of other traces that it has to do with.
    public var links: [TraceContext] = []
    /// Why it failed; nil if it did not.
    public var failure: String?

    /// Makes a span. An end before the start is taken for the start.
    public init(_ id: SpanID, _ name: String, from start: Int64, to end: Int64) {
        self.id = id
        self.name = name
        self.start = start
        self.end = max(start, end)
    }
}
