import BotWire
import FuzzInput
import Core

/// Called by libFuzzer with each input: the status, the location and the body of the answer to an offer, on lines of their own.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzBotOffer(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private let server = WebAddress("https://bot.example/v1/realtime/calls?model=m", WebAddress.Scheme.requests)

private func read(_ bytes: [UInt8]) {
    guard let server else { return }
    let lines = bytes.split(separator: 0x0A, maxSplits: 2, omittingEmptySubsequences: false)
    guard lines.count == 3 else { return }
    let words = lines[..<2].map { String(decoding: $0, as: UTF8.self) }
    let response = OfferResponse(
        status: Int(words[0]) ?? 200, location: words[1].isEmpty ? nil : words[1], body: Array(lines[2]))
    for form in [OfferForm.smallWebRTC(data: [:]), .realtime(session: nil)] {
        var exchange = OfferExchange(form, to: server, token: "token")
        var outputs: [OfferExchange.Output] = []
        for input in [OfferExchange.Input.begin, .gathered, .described("v=0"), .answered(response), .secured, .end] {
            exchange.handle(input, at: .zero, into: &outputs)
        }
        do throws(OfferFault) {
            let answer = try form.answer(response, from: server)
            require(answer.description.hasPrefix("v=0"), "an answer is a description")
            require(outputs.contains(.connect(answer: answer.description)), "an answer is used")
            require(outputs.last == .release && outputs.contains(.opened), "the leg stands and ends")
            if let hangUp = answer.hangUp {
                require(hangUp.target.hasSuffix("/hangup"), "a call is hung up at a path of its own")
                require(WebAddress.Scheme.requests.contains(hangUp.scheme), "a request goes by HTTP")
                require(WebAddress(hangUp.text, [hangUp.scheme]) == hangUp, "an address is read alike each time")
            }
        } catch {
            require(!error.description.isEmpty, "a fault has words")
            require(outputs.last == .closed(failure: error.description), "the leg is over")
        }
    }
    if OfferForm.isSession(String(decoding: bytes, as: UTF8.self)) {
        let request = OfferForm.realtime(session: bytes).request("v=0", to: server, token: nil)
        require(request.body.count > bytes.count, "the session is sent")
    }
}
