/** Requests to another process that wait for a response. A response that is late counts as undefined. */
export class PendingRequests<Answer> {
  readonly #timeoutMs: number;
  readonly #waitingRequests = new Map<number, (answer: Answer | undefined) => void>();
  #count = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  request(send: (id: number) => void): Promise<Answer | undefined> {
    const id = ++this.#count;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.onResponse(id, undefined), this.#timeoutMs);
      this.#waitingRequests.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      send(id);
    });
  }

  onResponse(id: number, answer: Answer | undefined): void {
    const resolveRequest = this.#waitingRequests.get(id);
    this.#waitingRequests.delete(id);
    resolveRequest?.(answer);
  }
}
