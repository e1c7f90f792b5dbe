// A peer made with Pion: offers sound first and video then, sends silence, and counts what comes back.
//
//	pion_peer [-curve P-256|P-384] [-one-way] [-packets N]
//
// Writes one JSON object on each line: first the offer, with all candidates, and at the end how it went. Reads lines as
// well: the answer, and the candidates that follow it. scripts/interop builds it with Debian's Pion 3.
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/pion/webrtc/v3"
	"github.com/pion/webrtc/v3/pkg/media"
)

// Told at the end.
type outcome struct {
	ConnectedMilliseconds float64 `json:"connected_ms"`
	Received              uint32  `json:"received"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "pion_peer:", err)
		os.Exit(1)
	}
}

func main() {
	curve := flag.String("curve", "P-256", "the curve of the certificate's key")
	oneWay := flag.Bool("one-way", false, "offer to send only, as a client of WHIP does")
	wanted := flag.Uint("packets", 50, "packets to wait for")
	flag.Parse()

	curves := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384()}
	key, err := ecdsa.GenerateKey(curves[*curve], rand.Reader)
	must(err)
	certificate, err := webrtc.GenerateCertificate(key)
	must(err)
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	codecs := &webrtc.MediaEngine{}
	must(codecs.RegisterDefaultCodecs())
	api := webrtc.NewAPI(webrtc.WithMediaEngine(codecs), webrtc.WithSettingEngine(settings))
	peer, err := api.NewPeerConnection(webrtc.Configuration{Certificates: []webrtc.Certificate{*certificate}})
	must(err)
	direction := webrtc.RTPTransceiverDirectionSendrecv
	if *oneWay {
		direction = webrtc.RTPTransceiverDirectionSendonly
	}
	opus := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}
	voice, err := webrtc.NewTrackLocalStaticSample(opus, "voice", "pion")
	must(err)
	_, err = peer.AddTransceiverFromTrack(voice, webrtc.RTPTransceiverInit{Direction: direction})
	must(err)
	picture, err := webrtc.NewTrackLocalStaticSample(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: 90000}, "picture", "pion")
	must(err)
	_, err = peer.AddTransceiverFromTrack(picture, webrtc.RTPTransceiverInit{Direction: direction})
	must(err)

	var answeredAt time.Time
	var received uint32
	connected := make(chan float64, 1)
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			connected <- float64(time.Since(answeredAt).Microseconds()) / 1000
		}
	})
	peer.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			if _, _, err := track.ReadRTP(); err != nil {
				return
			}
			atomic.AddUint32(&received, 1)
		}
	})

	offer, err := peer.CreateOffer(nil)
	must(err)
	gathered := webrtc.GatheringCompletePromise(peer)
	must(peer.SetLocalDescription(offer))
	<-gathered
	output := json.NewEncoder(os.Stdout)
	must(output.Encode(peer.LocalDescription()))

	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	if !lines.Scan() {
		must(fmt.Errorf("there is no answer"))
	}
	var answer webrtc.SessionDescription
	must(json.Unmarshal(lines.Bytes(), &answer))
	answeredAt = time.Now()
	must(peer.SetRemoteDescription(answer))
	go func() {
		for lines.Scan() {
			var candidate webrtc.ICECandidateInit
			if json.Unmarshal(lines.Bytes(), &candidate) == nil && candidate.Candidate != "" {
				_ = peer.AddICECandidate(candidate)
			}
		}
	}()

	var result outcome
	select {
	case result.ConnectedMilliseconds = <-connected:
	case <-time.After(15 * time.Second):
		must(fmt.Errorf("not connected within 15 s"))
	}
	// The shortest packet of Opus: 20 ms without sound.
	silence := media.Sample{Data: []byte{0xF8, 0xFF, 0xFE}, Duration: 20 * time.Millisecond}
	for sent := uint(0); sent < 500; sent++ {
		must(voice.WriteSample(silence))
		time.Sleep(20 * time.Millisecond)
		if *oneWay && sent >= *wanted || atomic.LoadUint32(&received) >= uint32(*wanted) {
			break
		}
	}
	result.Received = atomic.LoadUint32(&received)
	must(output.Encode(result))
	must(peer.Close())
}
