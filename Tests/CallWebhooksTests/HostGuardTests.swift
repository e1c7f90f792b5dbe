import Testing

@testable import CallWebhooks

@Suite("Hosts that a server may name")
struct HostGuardTests {
    private func judge(_ hosts: HostGuard, _ host: String, _ address: String) -> Bool {
        do throws(HostGuard.Refusal) {
            try hosts.check(host, at: address)
            return true
        } catch {
            return false
        }
    }

    @Test("Only the URL's host and those that are allowed; private addresses only if the host is named in full")
    func rules() {
        let hosts = HostGuard(
            own: ["bot.example"], allowed: ["10.0.0.7", "*.voice.example", "LOCALHOST"], section: "behaviour.bot")
        #expect(judge(hosts, "bot.example", "192.0.2.200") && judge(hosts, "BOT.example.", "10.1.1.1"))
        #expect(judge(hosts, "10.0.0.7", "10.0.0.7") && !judge(hosts, "10.0.0.8", "10.0.0.8"))
        #expect(judge(hosts, "a.voice.example", "8.8.8.8") && !judge(hosts, "a.voice.example", "127.0.0.1"))
        #expect(!judge(hosts, "a.b.voice.example", "8.8.8.8") && !judge(hosts, "voice.example", "8.8.8.8"))
        #expect(judge(hosts, "localhost", "127.0.0.1") && !judge(hosts, "127.0.0.1", "127.0.0.1"))
        #expect(!judge(hosts, "other.example", "8.8.8.8"))
    }

    @Test(
        "Addresses of this machine, of links, of private networks and unassigned ones are not public, in any notation"
    )
    func addresses() {
        let hosts = HostGuard(own: [], allowed: ["*.x.example"], section: "behaviour.bot")
        for address in [
            "127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
            "100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1",
            "::",
            "::1", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::7f00:1", "2002:7f00:1::", "2002:0a00:0001::1", "2001:db8::1", "2001:0:1::1", "::7f00:1", "",
        ] { #expect(!judge(hosts, "a.x.example", address), "\(address)") }
        for address in [
            "8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1", "64:ff9b::8.8.8.8",
            "2002:0808:0808::1",
        ] {
            #expect(judge(hosts, "a.x.example", address), "\(address)")
        }
    }
}
