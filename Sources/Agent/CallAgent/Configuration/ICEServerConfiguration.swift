internal import CallControl
internal import ConfigReader

extension CallControl.ICEServer {
    /// The keys of one of `media.ice_servers`.
    struct Keys: ConfigKeys {
        let urls = ConfigKey.list("urls", of: "URLs", "`stun:HOST:PORT`, `turn:HOST:PORT` or `turns:HOST:PORT`") {
            url throws(ConfigValueFault) in
            if ICEServerLookup.Location(url) != nil { return url }
            throw ConfigValueFault("\"\(url)\" is no stun:HOST:PORT, turn:HOST:PORT or turns:HOST:PORT")
        }.required
        let username = ConfigKey.string("username", "for TURN")
        let credential = ConfigKey.secret("credential", "for TURN")
    }

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let urls = section.value(\.urls, &problems) ?? []
        let username = section.value(\.username, &problems)
        let credential = section.value(\.credential, &problems)
        guard !urls.isEmpty else { return nil }
        self.init(urls: urls, username: username, credential: credential?.revealed)
    }
}
