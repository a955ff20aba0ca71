import { Remote, RemoteError } from '../../../application/ports/remote.ts';
import type { Observer } from './observer.ts';

/** Outgoing client whose calls are measured and traced. */
export class ObservedRemote extends Remote {
  readonly #remote: Remote;
  readonly #observer: Observer;

  constructor(remote: Remote, observer: Observer) {
    super();
    this.#remote = remote;
    this.#observer = observer;
  }

  override refuses(...parameters: Parameters<Remote['refuses']>): boolean {
    return this.#remote.refuses(...parameters);
  }

  override request(url: string, options: Parameters<Remote['request']>[1]): ReturnType<Remote['request']> {
    // The address is left out: its path and query may be secrets of a tenant.
    return this.#observer.run(
      `outgoing ${options.method}`,
      { 'http.request.method': options.method },
      () => this.#remote.request(url, options),
      (metrics, seconds, error) => metrics.outgoing(outcomeOf(error), seconds),
    );
  }
}

function outcomeOf(error: unknown) {
  if (error === undefined) return 'answered';
  return error instanceof RemoteError ? error.fault : 'failed';
}
