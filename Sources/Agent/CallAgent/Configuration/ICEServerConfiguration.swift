internal import CallControl
internal import ConfigReader

extension CallControl.ICEServer {
    /// Reads one section of `media.ice_servers`: `urls`, and for TURN `username` with `credential_file` or
    /// `credential_env`.
    init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        section.require(["urls"], &problems)
        let urls = section.list("urls", &problems) ?? []
        for url in urls where ICEServerLookup.Location(url) == nil {
            problems.append(
                section.problem("urls", "\"\(url)\" is no stun:HOST:PORT, turn:HOST:PORT or turns:HOST:PORT"))
        }
        let username = section.string("username", &problems)
        let credential = section.secret("credential", &problems)
        section.rejectUnknownKeys(
            known: ["urls", "username"] + ConfigSection.secretKeys("credential"), &problems)
        guard !urls.isEmpty else { return nil }
        self.init(urls: urls, username: username, credential: credential?.revealed)
    }
}
