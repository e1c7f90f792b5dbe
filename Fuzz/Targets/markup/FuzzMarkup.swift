import BotWire
import FuzzInput

/// Called by libFuzzer with each input: the answer of a webhook, in both dialects.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzMarkup(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private let base = WebAddress("http://bot.example/a/b?c", WebAddress.Scheme.requests)

private func read(_ bytes: [UInt8]) {
    for dialect in [CallMarkup.Dialect.twilio, .plivo] {
        guard let markup = try? CallMarkup(bytes, dialect, from: base) else { continue }
        require(markup.verbs.count <= WireLimits.verbs, "instructions are bounded")
        for verb in markup.verbs {
            switch verb {
            case .stream(let stream):
                require(WebAddress.Scheme.sockets.contains(stream.address.scheme), "a stream goes to a WebSocket")
                require(stream.parameters.count <= WireLimits.parameters, "parameters are bounded")
                check(stream.address)
                for case let webhook? in [stream.action, stream.statusCallback] { check(webhook.address) }
            case .redirect(let webhook):
                require(WebAddress.Scheme.requests.contains(webhook.address.scheme), "a request goes by HTTP")
                check(webhook.address)
            case .pause(let seconds): require((1...86_400).contains(seconds), "a pause is bounded")
            case .transfer(let transfer):
                require((1...WireLimits.nameBytes).contains(transfer.target.utf8.count), "a target is bounded")
                if let action = transfer.action { check(action.address) }
            case .hangUp, .reject: break
            }
        }
    }
}

private func check(_ address: WebAddress) {
    require(!address.host.isEmpty && !address.host.contains("@"), "an address has a host")
    require((1...65_535).contains(address.port) && address.target.hasPrefix("/"), "an address has a port and a path")
    require(WebAddress(address.text, [address.scheme]) == address, "an address is read alike each time")
}
