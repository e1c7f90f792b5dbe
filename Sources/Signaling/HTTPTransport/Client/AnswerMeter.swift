internal import NIOCore

/// Bounds what a server sends around the body of an answer: provisional answers (1xx) and empty lines before it, its head, and what
/// chunks have beside their data. The reader of HTTP skips most of that without a report.
///
/// It counts bytes before they are read as HTTP. The body itself has the bound of its request.
final class AnswerMeter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Bytes before the end of an answer's head: of the shortest provisional answers 2,621.
    static let headBytes = 65_536
    /// Bytes on the wire for each byte that a body may have: a chunk of one byte takes six, or more with an extension.
    private static let bytesPerBodyByte = 8

    private var limit = headBytes
    private var count = 0
    /// Called once with the limit when more bytes have come.
    private var excess: ((Int) -> Void)?

    init(_ excess: @escaping (Int) -> Void) { self.excess = excess }

    /// An answer is expected.
    func awaitHead() { (limit, count) = (Self.headBytes, 0) }

    /// The head is there; bytes that came with it do not count.
    ///
    /// - Parameter bytes: The most that the body may have; nil if what follows is not HTTP.
    func awaitBody(of bytes: Int?) {
        count = 0
        limit =
            bytes.map { $0.multipliedReportingOverflow(by: Self.bytesPerBodyByte) }
            .map { $0.overflow ? .max : max($0.partialValue, Self.headBytes) } ?? .max
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        count &+= unwrapInboundIn(data).readableBytes
        // A head in these bytes sets the count back.
        context.fireChannelRead(data)
        guard count > limit, let excess else { return }
        self.excess = nil
        excess(limit)
    }

    func handlerRemoved(context: ChannelHandlerContext) { excess = nil }
}
