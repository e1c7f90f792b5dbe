internal import CallControl
internal import ConfigReader
internal import ICE

extension CallControl.ICEServer {
    /// The keys of one of `media.ice_servers`.
    struct Keys: ConfigKeys {
        let urls = ConfigKey.list("urls", of: "URLs", "`stun:HOST:PORT`, `turn:HOST:PORT` or `turns:HOST:PORT`") {
            url throws(ConfigValueFault) in
            if ICEServerLookup.location(url) != nil { return url }
            throw ConfigValueFault("\"\(url)\" is not stun:HOST:PORT, turn:HOST:PORT or turns:HOST:PORT")
        }.required
        let username = ConfigKey.string("username", "for TURN")
        let credential = ConfigKey.secret("credential", "for TURN")
    }

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let before = problems.count
        let urls = section.value(\.urls, &problems) ?? []
        if urls.isEmpty, section.has(\.urls), problems.count == before {
            problems.append(section.problem(\.urls, "needs at least one URL"))
        }
        let username = section.value(\.username, &problems)
        let credential = section.value(\.credential, &problems)
        let isOpen = !section.has(\.username) || !(section.has(\.credential) || section.isInTheClear(\.credential))
        if isOpen, urls.contains(where: { ICEServerLookup.location($0)?.scheme.isRelay == true }) {
            // Without both it would be left out.
            problems.append(
                section.problem(\.urls, "names a TURN server, which wants username and credential_file beside it"))
        }
        guard !urls.isEmpty else { return nil }
        self.init(urls: urls, username: username, credential: credential?.revealed)
    }
}
