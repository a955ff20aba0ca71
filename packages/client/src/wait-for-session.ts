import type { Schemas } from './operations.ts';
import { VidimusError } from './vidimus-error.ts';

export type Session = Schemas['Session'];
export type SessionStatus = Session['status'];

export type WaitOptions = {
  readonly signal?: AbortSignal | undefined;
  /** Limit of the wait in milliseconds; ten minutes by default. The session continues. */
  readonly timeoutMs?: number | undefined;
  /** Called with every status, including the first one: `fetched` when the wallet has scanned. */
  readonly onStatus?: ((status: SessionStatus) => void) | undefined;
};

/** Access to the session for the wait. */
export type SessionSource = {
  read(signal: AbortSignal): Promise<Session>;
  /** Changes after the event with this id, until the stream ends for any reason. */
  follow(lastEventId: string | undefined, signal: AbortSignal): AsyncIterable<Change>;
};

export type Change = { readonly eventId: string | undefined; readonly status: SessionStatus };

const DEFAULT_TIMEOUT_MS = 600_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** The session is polled this often before the next attempt to stream, when streaming does not work, for example behind some proxies. */
const READS_WITHOUT_STREAM = 10;
const READ_PAUSE_MS = 2_000;

const hasEnded = (status: SessionStatus) => status !== 'active' && status !== 'fetched';

/** @returns the ended session, successful or not: see `status` and `failure`. */
export async function waitForSession(
  source: SessionSource,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS, onStatus }: WaitOptions,
): Promise<Session> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const combinedSignal = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  try {
    return await new Wait(source, combinedSignal, onStatus).end();
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (!deadline.aborted) throw error;
    throw new VidimusError('timeout', `the session has not ended within ${timeoutMs} milliseconds`);
  }
}

class Wait {
  readonly #source: SessionSource;
  readonly #signal: AbortSignal;
  readonly #onStatus: WaitOptions['onStatus'];
  #reportedStatus: SessionStatus | undefined;
  #lastEventId: string | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #readsLeft = 0;

  constructor(source: SessionSource, signal: AbortSignal, onStatus: WaitOptions['onStatus']) {
    this.#source = source;
    this.#signal = signal;
    this.#onStatus = onStatus;
  }

  async end(): Promise<Session> {
    for (;;) {
      this.#signal.throwIfAborted();
      try {
        if (this.#readsLeft > 0) this.#readsLeft -= 1;
        else await this.#follow();
        // Reads the session after the end of the stream, or without a stream.
        const session = await this.#source.read(this.#signal);
        this.#reportStatus(session.status);
        if (hasEnded(session.status)) return session;
      } catch (error) {
        this.#pauseMs = Math.max(this.#pauseMs, retryAfterMs(error));
      }
      await sleep(this.#readsLeft > 0 ? Math.max(READ_PAUSE_MS, this.#pauseMs) : this.#pauseMs, this.#signal);
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  /** Follows the stream until it ends or breaks. @throws errors that a retry would not fix. */
  async #follow(): Promise<void> {
    let hasHeard = false;
    try {
      for await (const { eventId, status } of this.#source.follow(this.#lastEventId, this.#signal)) {
        hasHeard = true;
        this.#lastEventId = eventId ?? this.#lastEventId;
        this.#pauseMs = FIRST_PAUSE_MS;
        this.#reportStatus(status);
        if (hasEnded(status)) return;
      }
    } catch (error) {
      this.#pauseMs = Math.max(this.#pauseMs, retryAfterMs(error));
    }
    if (!hasHeard) this.#readsLeft = READS_WITHOUT_STREAM;
  }

  #reportStatus(status: SessionStatus): void {
    if (status === this.#reportedStatus) return;
    this.#reportedStatus = status;
    this.#onStatus?.(status);
  }
}

const TEMPORARY_CODES = ['unreachable', 'timeout', 'unavailable', 'too_many_requests', 'internal_error'];

/** The delay that the service requests. @throws errors that are not temporary. */
function retryAfterMs(error: unknown): number {
  if (!(error instanceof VidimusError)) throw error;
  const { code, status = 0, retryAfterSeconds = 0 } = error;
  const isOfProxy = code === 'unexpected_answer' && (status === 0 || status >= 500);
  if (!TEMPORARY_CODES.includes(code) && !isOfProxy) throw error;
  return Math.min(retryAfterSeconds * 1000, 60_000);
}

/** Adds a random delay of up to a third, so that disconnected clients do not reconnect at the same time. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(
      () => {
        signal.removeEventListener('abort', leave);
        resolve();
      },
      ms * (1 + Math.random() / 3),
    );
    signal.addEventListener('abort', leave, { once: true });
  });
}
