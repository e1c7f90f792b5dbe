import FuzzInput
import SIP

/// Called by libFuzzer with each input: a message, as a datagram, or the body of a NOTIFY of a mailbox.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzSIP(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    if let summary = MessageSummary(parsing: bytes) {
        require(MessageSummary(parsing: summary.body) == summary, "a summary is written and read again the same")
    }
    do throws(SIPParseError) {
        let message = try SIPMessage(parsing: bytes)
        check(message)
    } catch {
        require(error.status.map { (400...699).contains($0) } ?? true, "a refusal has a status of its own")
        if let answer = error.answer { check(.response(answer)) }
    }
}

/// What was read is written, and read again the same.
private func check(_ message: SIPMessage) {
    let written = message.bytes
    guard written.count <= SIPLimits.headerBytes else { return }
    // Answers to malformed requests repeat what is malformed.
    guard let again = try? SIPMessage(parsing: written) else { return }
    require(again.bytes == written, "a message that was read is written the same")
    require(again.body == message.body, "the body comes back")
    let parts = again.parts ?? []
    require(parts.count <= SIPLimits.parts, "parts are bounded")
    for contact in again.headers.contacts ?? [] {
        let text = contact.description
        require(NameAddress(text)?.description == text, "an address is written and read again the same")
        require(contact.uri.isEquivalent(to: contact.uri), "a URI is equivalent to itself")
    }
    for via in again.headers.vias ?? [] {
        require(Via(via.description)?.description == via.description, "a hop is written and read again the same")
    }
}
