/** Questions to another process, and its answers. One that does not answer in time has nothing to say. */
export class Questions<Answer> {
  readonly #patienceMs: number;
  readonly #waiting = new Map<number, (answer: Answer | undefined) => void>();
  #count = 0;

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  ask(send: (id: number) => void): Promise<Answer | undefined> {
    const id = ++this.#count;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.answered(id, undefined), this.#patienceMs);
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      send(id);
    });
  }

  answered(id: number, answer: Answer | undefined): void {
    const tell = this.#waiting.get(id);
    this.#waiting.delete(id);
    tell?.(answer);
  }
}
