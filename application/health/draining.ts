/**
 * State of the last seconds of a process: it reports that it is not ready, so that load balancers send no new requests, and
 * continues to serve.
 */
export class Draining {
  #isDraining = false;

  begin(): void {
    this.#isDraining = true;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }
}
