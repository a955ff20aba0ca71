import { type buildConnector, type Dispatcher, Pool, request } from 'undici';
import { Remote, RemoteError, type RemoteResponse } from '../../application/ports/remote.ts';
import { AddressGuard } from './address-guard.ts';
import { guardedConnector, isPermittedLiteral, type Resolve, systemResolve } from './guarded-connector.ts';

const CONNECTIONS_PER_ORIGIN = 32;
const WAITING_PER_ORIGIN = 96;
/** At once, to all origins. */
const CALLS = 2048;
/** Beyond these, a connection ends with its call: the one who names origins without number keeps no memory by that. */
const KEPT_CONNECTIONS = 512;
/** However long a server would like to keep one. */
const KEPT_MS = 10_000;

/** What there is of an origin: as long as calls to it are under way, or a connection is kept. */
type Origin = { readonly pool: Pool; calls: number };

type Options = Parameters<Remote['request']>[1];

/**
 * The one outgoing client: guarded addresses, no redirects, bounded in time, size, connections and queue. Nobody keeps
 * others from calling: when too many calls are under way, the one that takes longest gives way, which is one to a slow
 * server sooner than one to a server that answers.
 */
export class GuardedHttpClient extends Remote {
  readonly #guard: AddressGuard;
  readonly #connect: buildConnector.connector;
  readonly #origins = new Map<string, Origin>();
  /** The oldest first. */
  readonly #calls = new Set<AbortController>();
  #connections = 0;
  #isClosed = false;

  /**
   * @param settings `allow`: hosts and networks beyond the public internet, see `AddressGuard`.
   * @throws Error when an entry of `allow` cannot be read.
   */
  constructor(settings: { readonly allow: readonly string[]; readonly resolve?: Resolve }) {
    super();
    this.#guard = new AddressGuard(settings.allow);
    this.#connect = guardedConnector(this.#guard, settings.resolve ?? systemResolve);
  }

  override refuses(url: string): boolean {
    return this.#guard.refuses(url);
  }

  override async request(url: string, options: Options): Promise<RemoteResponse> {
    const target = this.#admit(url);
    if (this.#isClosed) throw new RemoteError('busy', 'The service is stopping.');
    const origin = this.#origins.get(target.origin) ?? this.#open(target.origin);
    if (origin.calls >= CONNECTIONS_PER_ORIGIN + WAITING_PER_ORIGIN) {
      throw new RemoteError('busy', `Too many calls to ${target.origin} are waiting.`);
    }
    origin.calls++;
    try {
      return await this.#exchange(target, options, origin.pool);
    } finally {
      origin.calls--;
      this.#forgetIfIdle(target.origin, origin);
    }
  }

  /** Ends after the calls that are under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#origins.values(), ({ pool }) => pool.close()));
  }

  /** What can be refused without asking a name server. */
  #admit(text: string): URL {
    const url = URL.parse(text);
    if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
      throw new RemoteError('refused_address', 'Only https addresses can be called.');
    }
    if (url.username !== '' || url.password !== '') {
      throw new RemoteError('refused_address', `An address at ${url.host} carries credentials.`);
    }
    if (isPermittedLiteral(this.#guard, url) === false) {
      throw new RemoteError('refused_address', `${url.origin} may not be called.`);
    }
    return url;
  }

  /** The time limit covers everything from name resolution to the last byte. */
  async #exchange(url: URL, options: Options, pool: Pool): Promise<RemoteResponse> {
    const limit = this.#begin();
    const timer = setTimeout(() => {
      limit.abort(new RemoteError('timeout', `${url.origin} did not answer within ${options.timeoutMs} ms.`));
    }, options.timeoutMs);
    try {
      const answer = await request(url, {
        dispatcher: pool,
        method: options.method,
        headers: { ...options.headers, 'accept-encoding': 'identity' },
        body: options.body ?? null,
        signal: limit.signal,
        ...(this.#isCrowded() && { reset: true }),
      });
      return await readAnswer(answer, url.origin, options.maxBytes);
    } catch (cause) {
      if (limit.signal.aborted) throw limit.signal.reason;
      if (cause instanceof RemoteError) throw cause;
      throw new RemoteError('unreachable', `${url.origin} could not be reached.`, { cause });
    } finally {
      clearTimeout(timer);
      this.#calls.delete(limit);
    }
  }

  #open(address: string): Origin {
    const pool = new Pool(address, {
      connections: CONNECTIONS_PER_ORIGIN,
      pipelining: 1,
      keepAliveMaxTimeout: KEPT_MS,
      connect: this.#connect,
    });
    const origin = { pool, calls: 0 };
    this.#origins.set(address, origin);
    pool.on('connect', () => this.#connections++);
    pool.on('disconnect', () => {
      this.#connections--;
      this.#forgetIfIdle(address, origin);
    });
    return origin;
  }

  /** A connection that is still being made is not waited for. */
  #forgetIfIdle(address: string, origin: Origin): void {
    if (origin.calls > 0 || origin.pool.stats.connected > 0) return;
    if (this.#origins.get(address) === origin) this.#origins.delete(address);
    if (!origin.pool.destroyed && !origin.pool.closed) void origin.pool.destroy();
  }

  /** Also before those that begin at once have a connection. */
  #isCrowded(): boolean {
    return Math.max(this.#connections, this.#calls.size) >= KEPT_CONNECTIONS;
  }

  /** Makes room for a call. */
  #begin(): AbortController {
    const [oldest] = this.#calls;
    if (oldest !== undefined && this.#calls.size >= CALLS) {
      this.#calls.delete(oldest);
      oldest.abort(new RemoteError('busy', 'Too many calls are under way; this one took longest.'));
    }
    const call = new AbortController();
    this.#calls.add(call);
    return call;
  }
}

async function readAnswer(
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  origin: string,
  maxBytes: number,
): Promise<RemoteResponse> {
  // An abandoned body ends with an error that nobody waits for any more.
  body.on('error', () => {});
  // A redirect leads where no guard of the caller has looked. 304 answers a conditional request and leads nowhere.
  if (status >= 300 && status < 400 && status !== 304) {
    body.destroy();
    throw new RemoteError('redirected', `${origin} answered with a redirect (${status}).`);
  }
  const contentType = [headers['content-type'] ?? ''].flat()[0] ?? '';
  return {
    status,
    contentType: contentType.replace(/;.*$/s, '').trim().toLowerCase(),
    body: await readBody(body, Number(headers['content-length'] ?? 0), origin, maxBytes),
  };
}

/** Stops reading at the first byte too many, whatever length was announced. */
async function readBody(
  body: Dispatcher.ResponseData['body'],
  announced: number,
  origin: string,
  maxBytes: number,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = announced > maxBytes ? announced : 0;
  if (length <= maxBytes) {
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.length;
      if (length > maxBytes) break;
    }
  }
  if (length <= maxBytes) return Buffer.concat(parts, length);
  body.destroy();
  throw new RemoteError('too_large', `${origin} answered with more than ${maxBytes} bytes.`);
}
