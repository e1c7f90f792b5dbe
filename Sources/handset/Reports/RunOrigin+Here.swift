internal import Glibc
internal import Loopback

extension RunOrigin {
    /// This program on this machine.
    static var here: RunOrigin {
        var name = utsname()
        guard unsafe uname(&name) == 0 else {
            return RunOrigin(version: HandsetVersion.current, host: "unknown", system: "unknown")
        }
        func text<Characters>(_ characters: Characters) -> String {
            unsafe withUnsafeBytes(of: characters) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
        }
        let system = [text(name.sysname), text(name.release), text(name.machine)].joined(separator: " ")
        return RunOrigin(version: HandsetVersion.current, host: text(name.nodename), system: system)
    }
}

extension JSONObjectText {
    /// Adds where a report comes from, as reports of a loopback have it.
    mutating func add(_ origin: RunOrigin) {
        add("handset", origin.version)
        var host = JSONObjectText()
        host.add("name", origin.host)
        host.add("system", origin.system)
        add("host", object: host)
    }
}
