import FuzzInput
import Core
import ICE

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzSTUN(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    let looksLikeSTUN = STUNPeek.looksLikeSTUN(bytes.span.bytes)
    if let data = STUNPeek.relayedData(bytes.span.bytes) {
        require(looksLikeSTUN && data.upperBound <= bytes.count, "DATA lies inside of a STUN message")
    }
    if let fragment = STUNPeek.receiverFragment(bytes.span.bytes) {
        require(looksLikeSTUN && fragment.upperBound <= bytes.count, "a name lies inside of a STUN message")
    }
    if let data = ChannelData(parsing: bytes) {
        require(data.data.count + 4 <= bytes.count, "channel data lies inside")
        require(ChannelData(parsing: data.encoded(padded: true)) == data, "channel data reads back as written")
    }
    frame(bytes)
    guard let message = try? STUNMessage(parsing: bytes) else { return }
    require(looksLikeSTUN, "what is STUN looks like it")
    readValues(message)
    let answer = STUNBuilder(refusing: message, .unknownAttribute).finish(key: key, fingerprint: true)
    guard let again = try? STUNMessage(parsing: answer) else { broken("an answer is well formed") }
    require(again.transactionID == message.transactionID, "an answer has its request's transaction ID")
    require(again.integrity(key) == .valid && again.fingerprint == .valid, "an answer is protected")
}

private let key = STUNKey(shortTerm: "VOkJxbRl1RmTxUk/WvJxBt")

private func readValues(_ message: STUNMessage) {
    for type in [STUNAttributeType.mappedAddress, .xorMappedAddress, .xorPeerAddress, .xorRelayedAddress] {
        for address in message.addresses(type) {
            var builder = STUNBuilder(.success, answering: message)
            builder.append(type, address)
            let again = try? STUNMessage(parsing: builder.finish())
            require(again?.address(type) == address, "an address reads back as written")
        }
    }
    _ = (message.text(.username), message.uint32(.priority), message.uint64(.iceControlled), message.failure?.code)
    _ = (message.passwordAlgorithms(), message.unknownRequiredAttributes, message.integrity(key), message.fingerprint)
}

/// In one piece or byte by byte, the same frames come out.
private func frame(_ bytes: [UInt8]) {
    var whole = STUNStreamFramer()
    var slow = STUNStreamFramer()
    let frames = whole.push(bytes)
    require(bytes.prefix(2_000).flatMap { slow.push([$0]) } == frames || bytes.count > 2_000, "pieces do not matter")
}
