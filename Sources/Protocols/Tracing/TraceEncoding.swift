/// Traces as OpenTelemetry's collectors take them: an `ExportTraceServiceRequest` of OTLP 1, in protobuf's binary form.
public struct TraceEncoding: Sendable {
    /// The media type of a request.
    public static let contentType = "application/x-protobuf"

    /// `Resource` as field 1 of `ResourceSpans`.
    private let resource: [UInt8]
    /// `InstrumentationScope` as field 1 of `ScopeSpans`.
    private let scope: [UInt8]

    /// - Parameters:
    ///   - service: As the process is called in traces (`service.name`).
    ///   - version: Of the program.
    ///   - instance: What no other process is called (`service.instance.id`).
    public init(service: String, version: String, instance: String) {
        var (resource, scope) = (Protobuf(), Protobuf())
        resource.add(1) { resource in
            resource.add(.init("service.name", .text(service)), as: 1)
            resource.add(.init("service.version", .text(version)), as: 1)
            resource.add(.init("service.instance.id", .text(instance)), as: 1)
        }
        scope.add(1) { scope in
            scope.add(1, "handset")
            scope.add(2, version)
        }
        self.resource = resource.bytes
        self.scope = scope.bytes
    }

    /// The spans of a trace, as they are in a request.
    public static func spans(of trace: Trace) -> [UInt8] {
        var message = Protobuf()
        for span in trace.spans { message.add(2) { $0.add(span, of: trace.id) } }
        return message.bytes
    }

    /// A request with the spans of traces.
    ///
    /// - Parameter traces: What ``spans(of:)`` has made of each.
    public func request(_ traces: [[UInt8]]) -> [UInt8] {
        var message = Protobuf()
        message.add(1) { process in
            process.add(encoded: resource)
            process.add(2) { spans in
                spans.add(encoded: scope)
                for trace in traces { spans.add(encoded: trace) }
            }
        }
        return message.bytes
    }
}

/// A message in protobuf's binary form, field by field. Values that a reader takes for a missing field (0, "") are left out.
private struct Protobuf {
    private(set) var bytes: [UInt8] = []

    private enum Form: UInt64 { case varint = 0, fixed64 = 1, counted = 2, fixed32 = 5 }

    private mutating func add(varint number: UInt64) {
        var rest = number
        while rest > 0x7f {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    private mutating func begin(_ field: UInt64, _ form: Form) { add(varint: field << 3 | form.rawValue) }

    private mutating func add(littleEndian number: some FixedWidthInteger) {
        for shift in stride(from: 0, to: number.bitWidth, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    mutating func add(encoded fields: [UInt8]) { bytes += fields }

    mutating func add(_ field: UInt64, varint number: UInt64) {
        guard number != 0 else { return }
        begin(field, .varint)
        add(varint: number)
    }

    mutating func add(_ field: UInt64, fixed number: UInt64) {
        guard number != 0 else { return }
        begin(field, .fixed64)
        add(littleEndian: number)
    }

    mutating func add(_ field: UInt64, fixed32 number: UInt32) {
        guard number != 0 else { return }
        begin(field, .fixed32)
        add(littleEndian: number)
    }

    mutating func add(_ field: UInt64, _ content: [UInt8]) {
        guard !content.isEmpty else { return }
        begin(field, .counted)
        add(varint: UInt64(content.count))
        bytes += content
    }

    mutating func add(_ field: UInt64, _ text: String) { add(field, Array(text.utf8)) }

    /// Adds a message, also an empty one.
    mutating func add(_ field: UInt64, _ write: (inout Protobuf) -> Void) {
        var inner = Protobuf()
        write(&inner)
        begin(field, .counted)
        add(varint: UInt64(inner.bytes.count))
        bytes += inner.bytes
    }
}

// opentelemetry/proto/common/v1/common.proto and trace/v1/trace.proto.
extension Protobuf {
    mutating func add(_ attribute: TraceSpan.Attribute, as field: UInt64) {
        add(field) { pair in
            pair.add(1, attribute.key)
            // A value is there although it is 0, because it is one of several.
            pair.add(2) { $0.add(attribute.value) }
        }
    }

    private mutating func add(_ value: TraceSpan.Attribute.Value) {
        switch value {
        case .text(let text):
            begin(1, .counted)
            add(varint: UInt64(text.utf8.count))
            bytes += Array(text.utf8)
        case .whole(let number):
            begin(3, .varint)
            add(varint: UInt64(bitPattern: number))
        case .real(let number):
            begin(4, .fixed64)
            add(littleEndian: number.bitPattern)
        }
    }

    /// The flag of traces that are recorded, and whether a parent is another process's (`SpanFlags`).
    private static func flags(isRemote: Bool) -> UInt32 { isRemote ? 0x301 : 0x101 }

    fileprivate mutating func add(_ span: TraceSpan, of trace: TraceID) {
        add(1, trace.bytes)
        add(2, span.id.bytes)
        var isRemote = false
        switch span.parent {
        case .root: break
        case .own(let parent): add(4, parent.bytes)
        case .remote(let parent):
            add(4, parent.bytes)
            isRemote = true
        }
        add(5, span.name)
        add(6, varint: span.kind.rawValue)
        add(7, fixed: UInt64(clamping: span.start))
        add(8, fixed: UInt64(clamping: span.end))
        for attribute in span.attributes { add(attribute, as: 9) }
        for event in span.events { add(11) { $0.add(event) } }
        for link in span.links { add(13) { $0.add(link) } }
        if let failure = span.failure {
            add(15) { status in
                status.add(2, failure)
                status.add(3, varint: 2)
            }
        }
        add(16, fixed32: Self.flags(isRemote: isRemote))
    }

    private mutating func add(_ event: TraceSpan.Event) {
        add(1, fixed: UInt64(clamping: event.time))
        add(2, event.name)
        for attribute in event.attributes { add(attribute, as: 3) }
    }

    private mutating func add(_ link: TraceContext) {
        add(1, link.trace.bytes)
        add(2, link.span.bytes)
        add(6, fixed32: 0x300 | (link.isSampled ? 1 : 0))
    }
}
