import { Agent, type Dispatcher, request } from 'undici';
import { Remote, RemoteError, type RemoteResponse } from '../../application/ports/remote.ts';
import { AddressGuard } from './address-guard.ts';
import { guardedConnector, isPermittedLiteral, type Resolve, systemResolve } from './guarded-connector.ts';

const CONNECTIONS_PER_ORIGIN = 32;
const WAITING_PER_ORIGIN = 96;
const ORIGINS = 1024;

type Options = Parameters<Remote['request']>[1];

/** The one outgoing client: guarded addresses, no redirects, bounded in time, size, connections and queue. */
export class GuardedHttpClient extends Remote {
  readonly #guard: AddressGuard;
  readonly #agent: Agent;
  readonly #pending = new Map<string, number>();

  /**
   * @param settings `allow`: hosts and networks beyond the public internet, see `AddressGuard`.
   * @throws Error when an entry of `allow` cannot be read.
   */
  constructor(settings: { readonly allow: readonly string[]; readonly resolve?: Resolve }) {
    super();
    this.#guard = new AddressGuard(settings.allow);
    this.#agent = new Agent({
      connections: CONNECTIONS_PER_ORIGIN,
      maxOrigins: ORIGINS,
      pipelining: 1,
      connect: guardedConnector(this.#guard, settings.resolve ?? systemResolve),
    });
  }

  override refuses(url: string): boolean {
    return this.#guard.refuses(url);
  }

  override async request(url: string, options: Options): Promise<RemoteResponse> {
    const target = this.#admit(url);
    const waiting = this.#pending.get(target.origin) ?? 0;
    if (waiting >= CONNECTIONS_PER_ORIGIN + WAITING_PER_ORIGIN) {
      throw new RemoteError('unreachable', `Too many calls to ${target.origin} are waiting.`);
    }
    this.#pending.set(target.origin, waiting + 1);
    try {
      return await this.#exchange(target, options);
    } finally {
      const left = (this.#pending.get(target.origin) ?? 1) - 1;
      if (left === 0) this.#pending.delete(target.origin);
      else this.#pending.set(target.origin, left);
    }
  }

  /** Ends after the calls that are under way. */
  async close(): Promise<void> {
    await this.#agent.close();
  }

  /** What can be refused without asking a name server. */
  #admit(text: string): URL {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
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
  async #exchange(url: URL, options: Options): Promise<RemoteResponse> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), options.timeoutMs);
    try {
      const answer = await request(url, {
        dispatcher: this.#agent,
        method: options.method,
        headers: { ...options.headers, 'accept-encoding': 'identity' },
        body: options.body ?? null,
        signal: limit.signal,
      });
      return await readAnswer(answer, url.origin, options.maxBytes);
    } catch (cause) {
      if (cause instanceof RemoteError) throw cause;
      if (limit.signal.aborted) {
        throw new RemoteError('timeout', `${url.origin} did not answer within ${options.timeoutMs} ms.`, {
          cause,
        });
      }
      throw new RemoteError('unreachable', `${url.origin} could not be reached.`, { cause });
    } finally {
      clearTimeout(timer);
    }
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
