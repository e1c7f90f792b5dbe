import FuzzInput
import DomainNames
import Core

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzMDNS(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

/// The input is an answer; what it tells must be told again by a resolver that is asked for the same names.
private func read(_ bytes: [UInt8]) {
    let answers = DNSMessage.answers(in: bytes)
    require(answers.count <= DNSMessage.maximumRecords, "few records are read")
    guard let source = SocketAddress(host: "192.0.2.7", port: 5_353) else { return }
    var resolver = NameResolver()
    var outputs: [NameResolver.Output] = []
    for answer in answers where NameResolver.isHidden(answer.name) {
        resolver.handle(.resolve(answer.name), at: .zero, into: &outputs)
    }
    outputs = []
    resolver.handle(.datagram(bytes, source: source), at: .zero, into: &outputs)
    for case .resolved(let name, let address) in outputs {
        require(answers.contains { $0.name == name && $0.address == address }, "only what was said is told")
    }
    for _ in 0..<10 {
        guard let deadline = resolver.nextDeadline else { return }
        resolver.handle(.timerFired, at: deadline, into: &outputs)
    }
    require(!resolver.isBusy, "every question has an end")
}
