// Microphone, speaker, ringing and key tones.

/** The microphone cannot be had; `code` is `insecure`, `refused`, `missing`, `taken` or `failed`. */
export class SoundError extends Error {
  /** @param {string} code */
  constructor(code) {
    super(`no microphone: ${code}`);
    this.code = code;
  }
}

const codes = {
  NotAllowedError: 'refused', SecurityError: 'refused', NotFoundError: 'missing', OverconstrainedError: 'missing',
  NotReadableError: 'taken', AbortError: 'taken',
};

/** Frequencies of the keys (ITU-T Q.23): rows and columns. */
const rows = [697, 770, 852, 941];
const columns = [1209, 1336, 1477];
const keys = '123456789*0#';

/** Fires `devices` when sound devices come or go. */
export class Sound extends EventTarget {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {number} */
  #ringing = 0;
  #far;

  /** @param {HTMLAudioElement} far plays what comes from the other side */
  constructor(far) {
    super();
    this.#far = far;
    navigator.mediaDevices?.addEventListener('devicechange', () => this.dispatchEvent(new Event('devices')));
  }

  /** Whether the browser lets a page choose the speaker. */
  get choosesSpeaker() {
    return typeof this.#far.setSinkId === 'function';
  }

  get microphone() { return localStorage.getItem('microphone') ?? ''; }
  set microphone(id) { localStorage.setItem('microphone', id); }
  get speaker() { return localStorage.getItem('speaker') ?? ''; }

  /**
   * @returns {Promise<MediaStream>}
   * @throws {SoundError}
   */
  async openMicrophone() {
    if (!isSecureContext || !navigator.mediaDevices) throw new SoundError('insecure');
    const wishes = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };
    try {
      return await navigator.mediaDevices.getUserMedia({
        audio: this.microphone ? { ...wishes, deviceId: { ideal: this.microphone } } : wishes,
      });
    } catch (error) {
      throw new SoundError(codes[/** @type {keyof codes} */ (error.name)] ?? 'failed');
    }
  }

  /** @returns {Promise<{ microphones: MediaDeviceInfo[], speakers: MediaDeviceInfo[] }>} */
  async devices() {
    const all = await (navigator.mediaDevices?.enumerateDevices() ?? Promise.resolve([])).catch(() => []);
    return {
      microphones: all.filter((device) => device.kind === 'audioinput'),
      speakers: all.filter((device) => device.kind === 'audiooutput'),
    };
  }

  /** @param {string} id empty is the system's choice */
  async chooseSpeaker(id) {
    localStorage.setItem('speaker', id);
    await this.#applySpeaker();
  }

  async #applySpeaker() {
    if (this.choosesSpeaker) await this.#far.setSinkId(this.speaker).catch(() => {});
    const context = /** @type {any} */ (this.#context);
    await context?.setSinkId?.(this.speaker).catch(() => {});
  }

  /**
   * @param {MediaStream | null} stream
   * @returns {Promise<boolean>} false if the browser wants a click first
   */
  async play(stream) {
    this.#far.srcObject = stream;
    if (!stream) return true;
    await this.#applySpeaker();
    return this.#far.play().then(() => true, (error) => error.name !== 'NotAllowedError');
  }

  /** Plays on after a click. */
  resume() {
    this.#far.play().catch(() => {});
    this.#context?.resume().catch(() => {});
  }

  /**
   * @param {number[]} frequencies
   * @param {number} start seconds from now
   * @param {number} length seconds
   * @param {number} volume
   */
  #tone(frequencies, start, length, volume) {
    this.#context ??= new AudioContext();
    const context = this.#context;
    context.resume().catch(() => {});
    const begin = context.currentTime + start;
    const gain = context.createGain();
    gain.connect(context.destination);
    gain.gain.setValueAtTime(0, begin);
    gain.gain.linearRampToValueAtTime(volume, begin + 0.015);
    gain.gain.setValueAtTime(volume, begin + length - 0.03);
    gain.gain.linearRampToValueAtTime(0, begin + length);
    for (const frequency of frequencies) {
      const oscillator = context.createOscillator();
      oscillator.frequency.value = frequency;
      oscillator.connect(gain);
      oscillator.start(begin);
      oscillator.stop(begin + length);
    }
  }

  /** What a pressed key sounds like here; the other side hears the real one. @param {string} key */
  key(key) {
    const index = keys.indexOf(key);
    if (index >= 0) this.#tone([rows[Math.floor(index / 3)], columns[index % 3]], 0, 0.12, 0.06);
  }

  /** A short tone, to hear whether the speaker is the right one. */
  test() {
    this.#tone([523.25], 0, 0.25, 0.15);
    this.#tone([659.25], 0.22, 0.4, 0.15);
  }

  /** Rings until {@link quiet}: somebody calls. */
  ring() {
    this.#repeat(3_000, () => {
      [523.25, 659.25, 783.99].forEach((frequency, step) => this.#tone([frequency], step * 0.18, 0.3, 0.12));
      navigator.vibrate?.([250, 120, 250]);
    });
  }

  /** Until {@link quiet}: it rings on the other side. */
  ringBack() {
    this.#repeat(5_000, () => this.#tone([425], 0, 1, 0.05));
  }

  /** @param {number} interval @param {() => void} sound */
  #repeat(interval, sound) {
    this.quiet();
    sound();
    this.#ringing = setInterval(sound, interval);
  }

  /** Ends ringing. */
  quiet() {
    clearInterval(this.#ringing);
    navigator.vibrate?.(0);
  }
}
