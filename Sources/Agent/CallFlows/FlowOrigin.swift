internal import BotWire
internal import CallFlow
internal import Core
internal import Files

/// Where the documents of a call come from.
enum FlowOrigin: Sendable {
    case folder(FlowFolder)
    case server(FlowServerLink)

    /// The course of a call.
    ///
    /// - Parameter asked: The document of a callee that is asked whether it accepts; nil for the flow's own call.
    func course(_ values: FlowValues, asked: FlowAddress?) -> FlowCourse {
        switch (self, asked) {
        case (.folder, .file(let name)?):
            FlowCourse(first: name, values: values, isAnswered: false, isAsking: true)
        case (.folder(let folder), nil), (.folder(let folder), .url?):
            FlowCourse(first: folder.first, values: values, isAnswered: false, isAsking: asked != nil)
        case (.server, .url(let address)?):
            FlowCourse(
                asking: FlowServer(first: .init(address)), values: values, isAnswered: false, isAsking: true)
        case (.server(let link), nil), (.server(let link), .file?):
            FlowCourse(asking: link.plan.server, values: values, isAnswered: false, isAsking: asked != nil)
        }
    }

    /// A call begins.
    func enter() { if case .server(let link) = self { link.enter() } }

    /// A call has ended.
    func leave() { if case .server(let link) = self { link.leave() } }

    /// A recording for a server.
    static func url(ofFile path: String) -> String {
        "file://"
            + PercentEscape.escaped(RegularFile.absolute(path)) {
                PercentEscape.isUnreserved($0) || $0 == UInt8(ascii: "/")
            }
    }
}
