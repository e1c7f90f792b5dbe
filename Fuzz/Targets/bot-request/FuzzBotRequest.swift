import BotWire
import FuzzInput

/// Called by libFuzzer with each input: a method, a path, credentials and a form, on lines of their own.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzBotRequest(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    let lines = bytes.split(separator: 0x0A, maxSplits: 3, omittingEmptySubsequences: false)
    let body = lines.count > 3 ? Array(lines[3]) : []
    if let form = FormFields(body: body) {
        require(form.fields.count <= WireLimits.fields, "fields are bounded")
        require(FormFields(body: form.body) == form || form.body.count > WireLimits.requestBytes, "a form comes back")
    }
    guard lines.count > 2 else { return }
    let words = lines[..<3].map { String(decoding: $0, as: UTF8.self) }
    let request = ServiceRequest(
        method: words[0], target: words[1], authorization: words[2],
        contentType: "application/x-www-form-urlencoded", body: body)
    do throws(ServiceFault) {
        let read = try BotRequest(request)
        require(!read.credentials.match(user: "the user", password: "the password"), "credentials are not guessed")
        switch try read.order() {
        case .end(let call, _), .redirect(let call, _):
            require((1...WireLimits.nameBytes).contains(call.utf8.count), "the name of a call is bounded")
        case .transfer(let call, let transfer):
            require((1...WireLimits.nameBytes).contains(call.utf8.count), "the name of a call is bounded")
            require((1...WireLimits.nameBytes).contains(transfer.target.utf8.count), "a target is bounded")
        case .place(let placed):
            require(placed.to.utf8.count <= WireLimits.nameBytes, "a callee is bounded")
            require((1...600).contains(placed.timeoutSeconds), "a call rings for a bounded time")
        }
    } catch {
        require((400...499).contains(ServiceAnswer.refused(error).status), "a refusal has a status")
        require(!ServiceAnswer.refused(error).body.isEmpty, "a refusal has words")
    }
}
