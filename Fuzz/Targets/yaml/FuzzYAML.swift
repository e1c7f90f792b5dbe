import ConfigReader
import FuzzInput

/// Called by libFuzzer with each input: a configuration's text, whatever somebody has put into the file.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzYAML(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private struct MediaKeys: ConfigKeys {
    let allowPlainRTP = ConfigKey.bool("allow_plain_rtp", "plain media")
}

private struct Keys: ConfigKeys {
    let server = ConfigKey.string("server", "where to")
    let port = ConfigKey.integer("port", in: 0...65_535, "the port")
    let codecs = ConfigKey.list("codecs", "codecs")
    let iceServers = ConfigKey.sections("ice_servers", MediaKeys.self, "servers")
    let media = ConfigKey.section("media", MediaKeys.self, "media")
    let token = ConfigKey.secret("token", "a secret")
}

private func read(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    let lines =
        text.utf8.count { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        + text.unicodeScalars.count { $0.value > 0x7F } + 2
    do throws(ConfigError) {
        let section = try ConfigDocument.read(text: text, environment: { _ in nil })
        var problems: [ConfigProblem] = []
        let keyed = KeyedSection(section, Keys.self, &problems)
        _ = keyed.value(\.server, &problems)
        _ = keyed.value(\.port, &problems)
        _ = keyed.value(\.codecs, &problems)
        _ = keyed.value(\.iceServers, &problems)
        _ = keyed.value(\.media, &problems)?.value(\.allowPlainRTP, &problems)
        _ = keyed.value(\.token, &problems)
        for problem in problems { require(problem.line <= lines, "a problem is on a line of the text") }
    } catch {
        require(!error.problems.isEmpty, "a configuration is refused with a reason")
        for problem in error.problems { require(problem.line <= lines, "a problem is on a line of the text") }
    }
}
