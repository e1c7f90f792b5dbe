import BotWire
import CallFlow
import Core
import FuzzInput

/// Called by libFuzzer with each input: a document of a call flow, through which a caller then goes, who presses keys.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzCallFlow(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    readServer(bytes)
    let document: FlowDocument
    do throws(FlowFaults) {
        document = try FlowDocument(parsing: bytes)
    } catch {
        require(!error.faults.isEmpty, "a document is refused with a reason")
        return
    }
    guard let first = try? FlowFileName("fuzz.xml") else { return require(false, "a plain name is a name") }
    let values = FlowValues(from: "../ann", to: "bob", callSid: "call-1")
    var trial = FlowTrial(first: first, values: values, keys: "1*#05", longest: .seconds(36_000))
    var documents = 0
    _ = trial.run(
        document: { name in
            documents += 1
            require(!name.text.hasPrefix("/"), "no name is absolute")
            require(!name.text.split(separator: "/").contains(".."), "no name leads out of the folder")
            return .success(document)
        },
        length: { _ in .success(.seconds(1)) },
        note: { time, _ in require(time <= .seconds(36_000), "a call is limited") })
    // Each of the keys begins the count again, and each of the ten seconds in a queue does.
    let most = 6 * FlowCourse.mostFetches * 11 * FlowCourse.mostFetches
    require(documents <= most, "documents without a key in between are limited")
}

/// The same document from a server, which gives it again for each request.
private func readServer(_ bytes: [UInt8]) {
    guard let address = WebAddress("https://flows.example/menu/main?shop=1", WebAddress.Scheme.requests) else {
        return require(false, "a plain URL is a URL")
    }
    guard let document = try? FlowDocument(parsing: bytes, from: address) else { return }
    let values = FlowValues(from: "../@ann#?", to: "bob", callSid: "call-1")
    var trial = FlowTrial(
        asking: FlowServer(first: Webhook(address)), values: values, keys: "1*#05", longest: .seconds(36_000))
    var requests = 0
    _ = trial.run(
        document: { _ in
            require(false, "no file is read for a server")
            return .failure(FlowUnusable("there is none"))
        },
        page: { request in
            requests += 1
            let address = request.webhook.address
            require(WebAddress.Scheme.requests.contains(address.scheme), "only http and https are asked")
            require(!address.text.contains("@") || address.target.contains("@"), "no URL has a user")
            return .success(FlowPage(document, at: address))
        }, length: { _ in .success(.seconds(1)) },
        note: { time, _ in require(time <= .seconds(36_000), "a call is limited") })
    // Those of a call in a queue do not count; each of the ten seconds of a queue limits them.
    let most = FlowCourse.mostRequests * (1 + 11 * FlowCourse.mostIdleRequests)
    require(requests <= most, "requests of a call are limited")
}
