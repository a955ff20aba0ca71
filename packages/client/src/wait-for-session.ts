import type { Schemas } from './operations.ts';
import { VidimusError } from './vidimus-error.ts';

export type Session = Schemas['Session'];
export type SessionStatus = Session['status'];

export type WaitOptions = {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds until the wait is given up; ten minutes unless stated. The session goes on. */
  readonly timeoutMs?: number | undefined;
  /** Hears of every status, the first one included: `fetched` when the wallet has scanned. */
  readonly onStatus?: ((status: SessionStatus) => void) | undefined;
};

/** What the wait needs of the service. */
export type SessionSource = {
  read(signal: AbortSignal): Promise<Session>;
  /** The changes after the event with this id, until the stream ends for whatever reason. */
  follow(lastEventId: string | undefined, signal: AbortSignal): AsyncIterable<Change>;
};

export type Change = { readonly eventId: string | undefined; readonly status: SessionStatus };

const DEFAULT_TIMEOUT_MS = 600_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** Where no stream comes through, as behind some proxies, the session is read this often before the next attempt. */
const READS_WITHOUT_STREAM = 10;
const READ_PAUSE_MS = 2_000;

const isOver = (status: SessionStatus) => status !== 'active' && status !== 'fetched';

/** @returns the session once it has ended, whatever the end: look at `status` and `failure`. */
export async function waitForSession(
  source: SessionSource,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS, onStatus }: WaitOptions,
): Promise<Session> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const either = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  try {
    return await new Wait(source, either, onStatus).end();
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
  #told: SessionStatus | undefined;
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
        // What the stream ended with, or whatever happened when there was none.
        const session = await this.#source.read(this.#signal);
        this.#tell(session.status);
        if (isOver(session.status)) return session;
      } catch (error) {
        this.#pauseMs = Math.max(this.#pauseMs, retryAfterMs(error));
      }
      await sleep(this.#readsLeft > 0 ? Math.max(READ_PAUSE_MS, this.#pauseMs) : this.#pauseMs, this.#signal);
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  /** Until the stream ends or breaks. @throws what no other attempt would change. */
  async #follow(): Promise<void> {
    let hasHeard = false;
    try {
      for await (const { eventId, status } of this.#source.follow(this.#lastEventId, this.#signal)) {
        hasHeard = true;
        this.#lastEventId = eventId ?? this.#lastEventId;
        this.#pauseMs = FIRST_PAUSE_MS;
        this.#tell(status);
        if (isOver(status)) return;
      }
    } catch (error) {
      this.#pauseMs = Math.max(this.#pauseMs, retryAfterMs(error));
    }
    if (!hasHeard) this.#readsLeft = READS_WITHOUT_STREAM;
  }

  #tell(status: SessionStatus): void {
    if (status === this.#told) return;
    this.#told = status;
    this.#onStatus?.(status);
  }
}

const PASSING = ['unreachable', 'timeout', 'unavailable', 'too_many_requests', 'internal_error'];

/** How long the service wants to be left alone. @throws what does not pass by waiting. */
function retryAfterMs(error: unknown): number {
  if (!(error instanceof VidimusError)) throw error;
  const { code, status = 0, retryAfterSeconds = 0 } = error;
  const isOfProxy = code === 'unexpected_answer' && (status === 0 || status >= 500);
  if (!PASSING.includes(code) && !isOfProxy) throw error;
  return Math.min(retryAfterSeconds * 1000, 60_000);
}

/** Up to a third longer, so that all who were cut off at once do not come back at once. */
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
