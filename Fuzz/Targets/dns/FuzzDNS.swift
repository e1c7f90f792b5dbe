import DomainNames
import FuzzInput

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzDNS(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let reply = try? DNSReply(parsing: bytes) else { return }
    require(reply.services.count + reply.rules.count <= DNSReply.mostRecords, "records are bounded")
    require(reply.lifetime <= 0x7FFF_FFFF, "a lifetime is no negative number")
    for name in reply.services.map(\.target) + reply.rules.map(\.replacement) {
        require(name.utf8.count < 255, "a name is bounded")
        require(name.utf8.allSatisfy { $0 > 32 && $0 < 127 }, "a name is plain text")
    }
}
