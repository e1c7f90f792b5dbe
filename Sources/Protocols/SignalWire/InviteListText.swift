/// One page of invites as JSON text: the answer to `invite.list`, written without reading the data of any invite.
public struct InviteListText: Hashable, Sendable {
    /// An ``InviteList/Result``.
    public let text: String

    /// Puts entries together.
    ///
    /// - Parameter entries: What ``entry(_:data:)`` has written, oldest first.
    public init(entries: [String], next: UInt64? = nil) {
        let next = next.map { #","next":\#($0)"# } ?? ""
        text = #"{"invites":[\#(entries.joined(separator: ","))]\#(next)}"#
    }

    /// Writes one invite.
    ///
    /// - Parameters:
    ///   - entry: The invite without its data.
    ///   - data: That as JSON text; `nil` for none.
    /// - Throws: ``SignalCodingError`` for a number that JSON cannot express; values read from JSON have none.
    public static func entry(_ entry: InviteList.Entry, data: String?) throws(SignalCodingError) -> String {
        SplicedText.text(try SignalCoding.encode(entry), ["data": data])
    }

    /// The page as a value; `nil` for a text that is none.
    public var list: InviteList.Result? {
        try? SignalCoding.decode(InviteList.Result.self, from: Array(text.utf8), within: .delivery)
    }

    /// The response to the request `id`, ready to send.
    public func response(id: RPCID) throws(SignalCodingError) -> [UInt8] {
        var message = Array(#"{"id":"#.utf8)
        message.reserveCapacity(text.utf8.count + 64)
        message += try SignalCoding.encode(id)
        message += #","jsonrpc":"2.0","result":"#.utf8
        message += text.utf8
        message.append(UInt8(ascii: "}"))
        return message
    }
}
