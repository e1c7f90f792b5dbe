// Plays a recording, and says where it is.

/** A recording that is heard. Times are in milliseconds from its beginning. */
export class Player {
  #audio = new Audio();
  #recording;
  #heard;
  /** @type {import('./recording.js').Part | null} */
  #part = null;
  #at = 0;
  #isWanted = false;
  #isLoading = false;
  #loads = 0;
  /** Ends the newest load. */
  #loading = new AbortController();
  #isOver = false;

  /**
   * @param {import('./recording.js').Recording} recording
   * @param {{ at: (time: number) => void, state: (isPlaying: boolean) => void, failed: (error: any) => void }} heard
   */
  constructor(recording, heard) {
    this.#recording = recording;
    this.#heard = heard;
    this.#audio.preload = 'auto';
    this.#audio.addEventListener('ended', () => this.#partEnded());
    this.#audio.addEventListener('pause', () => { if (!this.#audio.ended && !this.#isLoading) this.#wants(false); });
  }

  get isPlaying() {
    return this.#isWanted;
  }

  /** Begins or stops. */
  async toggle() {
    if (this.#isWanted) return this.#stop();
    if (this.#at >= this.#recording.length - 50) this.#at = 0;
    this.#wants(true);
    await this.#go();
  }

  /** Goes to a moment; before the beginning and behind the end nothing is heard. @param {number} time */
  async seek(time) {
    this.#at = Math.min(this.#recording.length, Math.max(0, time));
    if (time < 0 || time >= this.#recording.length) this.#stop();
    if (this.#part || this.#isWanted) await this.#go();
  }

  /** Ends for good. */
  end() {
    this.#isOver = true;
    this.#loading.abort();
    this.#stop();
    this.#audio.removeAttribute('src');
    this.#audio.load();
    if (this.#part) URL.revokeObjectURL(this.#part.url);
    this.#part = null;
    this.#recording.end();
  }

  /** Has the sound at `#at`, and plays it if that is wanted. */
  async #go() {
    const load = ++this.#loads;
    this.#loading.abort();
    this.#loading = new AbortController();
    try {
      if (!this.#isHere) {
        // The browser’s event of this pause comes while the part is loaded, and is no wish of the user.
        this.#isLoading = true;
        this.#audio.pause();
        const part = await this.#recording.part(this.#at, this.#loading.signal);
        if (load !== this.#loads || this.#isOver) return URL.revokeObjectURL(part.url);
        await this.#take(part);
      }
      this.#isLoading = false;
      if (load !== this.#loads || !this.#part) return;
      this.#audio.currentTime = Math.max(0, this.#at - this.#part.from) / 1000;
      if (!this.#isWanted) return;
      await this.#audio.play();
      this.#follow();
    } catch (error) {
      // A pause while it begins to play is no failure.
      if (this.#isOver || load !== this.#loads || /** @type {any} */ (error).name === 'AbortError') return;
      this.#isLoading = false;
      this.#wants(false);
      this.#heard.failed(error);
    }
  }

  get #isHere() {
    return this.#part !== null && this.#part.from <= this.#at && (this.#at < this.#part.to || this.#part.to >= this.#recording.length);
  }

  /** @param {import('./recording.js').Part} part */
  async #take(part) {
    if (this.#part) URL.revokeObjectURL(this.#part.url);
    this.#part = part;
    await new Promise((resolve, reject) => {
      this.#audio.addEventListener('loadedmetadata', resolve, { once: true });
      this.#audio.addEventListener('error', () => reject(new Error('this browser cannot play the recording')), { once: true });
      this.#audio.src = part.url;
    });
  }

  #follow() {
    const step = () => {
      if (!this.#isWanted || !this.#part || this.#audio.paused) return;
      this.#at = this.#part.from + this.#audio.currentTime * 1000;
      this.#heard.at(this.#at);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  #partEnded() {
    if (!this.#part) return;
    this.#at = this.#part.to;
    if (this.#at < this.#recording.length - 50) {
      this.#go();
      return;
    }
    this.#heard.at(this.#recording.length);
    this.#wants(false);
  }

  #stop() {
    this.#wants(false);
    this.#audio.pause();
  }

  /** @param {boolean} isWanted */
  #wants(isWanted) {
    if (this.#isWanted === isWanted) return;
    this.#isWanted = isWanted;
    // Who has ended it looks at something else.
    if (!this.#isOver) this.#heard.state(isWanted);
  }
}
