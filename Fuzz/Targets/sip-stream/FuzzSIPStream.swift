import FuzzInput
import SIP

/// Called by libFuzzer with each input: what a connection carries, message after message.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzSIPStream(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, frame) }

/// Cuts of any size give the same messages.
private func frame(_ bytes: [UInt8]) {
    var whole: [SIPStreamFramer.Element] = []
    var pieces: [SIPStreamFramer.Element] = []
    var framer = SIPStreamFramer()
    let isWhole = (try? framer.take(bytes, into: &whole)) != nil
    framer = SIPStreamFramer()
    var isRead = true
    for start in stride(from: 0, to: bytes.count, by: 7) where isRead {
        isRead = (try? framer.take(Array(bytes[start..<min(start + 7, bytes.count)]), into: &pieces)) != nil
    }
    guard isWhole, isRead else { return }
    let messages = { (elements: [SIPStreamFramer.Element]) in
        elements.filter { if case .message = $0 { true } else { false } }
    }
    require(messages(whole) == messages(pieces), "messages do not depend on how the stream is cut")
}
