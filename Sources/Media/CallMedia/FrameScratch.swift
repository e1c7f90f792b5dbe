internal import Realtime

/// Two frames' worth of working memory, one for all calls of a worker.
package struct FrameScratch: ~Copyable {
    /// The longest frame: 60 ms at 48 kHz.
    static var capacity: Int { 2_880 }

    var encoded = EncodedFrame(repeating: 0)
    var heard = SampleBuffer(capacity: FrameScratch.capacity)
    var sending = SampleBuffer(capacity: FrameScratch.capacity)

    /// Allocates it.
    package init() {}
}

/// Size of a frame before it is put into a packet: the longest possible (RFC 6716 §3.2.1).
typealias EncodedFrame = InlineArray<1_275, UInt8>
