import { readFile } from 'node:fs/promises';
import { buildConnector, Pool, request } from 'undici';
import { type JsonObject, parseJson } from '../../../domain/shared/json.ts';
import { VaultError } from './vault-error.ts';
import type { VaultSettings } from './vault-settings.ts';

/** A hundred signatures, or a key with a thousand versions, are well below. */
export const MAX_ANSWER_BYTES = 1024 ** 2;
/** Idle time of a connection, below the usual timeouts of proxies. */
const KEEP_ALIVE_MS = 30_000;
/** Connections besides those of calls: a login, a check. */
const SPARE_CONNECTIONS = 2;

/** Request of `node-vault`. */
export type Exchange = {
  readonly uri: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly json?: JsonObject;
  readonly signal: AbortSignal;
};

/**
 * Connections to one Vault. The environment changes neither their target nor their trust, redirects are not followed, responses are
 * bounded, and a call ends when its signal is aborted.
 */
export class VaultConnection {
  readonly #address: string;
  readonly #open: () => Pool;
  #pool: Pool;
  #closing: Promise<void> | undefined;

  constructor({ address, ca, atOnce }: VaultSettings) {
    this.#address = new URL(address).origin;
    this.#open = () =>
      new Pool(this.#address, {
        connections: atOnce + SPARE_CONNECTIONS,
        pipelining: 1,
        keepAliveTimeout: KEEP_ALIVE_MS,
        keepAliveMaxTimeout: KEEP_ALIVE_MS,
        maxResponseSize: MAX_ANSWER_BYTES,
        connect: ca === undefined ? { allowH2: false } : trusting(ca),
      });
    this.#pool = this.#open();
  }

  /** @throws VaultError without the library's own error, which contains the request; the reason of the signal. */
  async exchange({ uri, method, headers, json, signal }: Exchange) {
    const pool = this.#pool;
    try {
      const { statusCode, body } = await request(uri, {
        dispatcher: pool,
        method,
        headers: { ...headers, ...(json !== undefined && { 'content-type': 'application/json' }) },
        body: json === undefined ? null : JSON.stringify(json),
        signal,
      });
      const text = await body.text();
      return { statusCode, body: text === '' ? {} : parseJson(text), request: { path: '' } };
    } catch (error) {
      if (!signal.aborted) throw unreachable(error, this.#address);
      this.#replace(pool);
      throw signal.reason;
    }
  }

  /** Resolves after the running calls. */
  close(): Promise<void> {
    this.#closing ??= this.#pool.close();
    return this.#closing;
  }

  /** If one connection is dead, the idle ones may be, too, and each would cost a call its timeout. */
  #replace(pool: Pool): void {
    if (this.#pool !== pool || this.#closing !== undefined) return;
    this.#pool = this.#open();
    void pool.close();
  }
}

/** The file is read for each new connection, so that authorities can be replaced while the service runs. */
function trusting(file: string): buildConnector.connector {
  return (options, callback) => {
    readFile(file)
      .catch((error: unknown) => {
        throw new VaultError(`the file ${file} of "ca" cannot be read (${codeOf(error)})`);
      })
      .then((ca) => buildConnector({ ca, allowH2: false, maxCachedSessions: 0 }))
      .then(
        (connect) => connect(options, callback),
        (error: Error) => callback(error, null),
      );
  };
}

const UNTRUSTED = new Set([
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function unreachable(error: unknown, address: string): VaultError {
  if (error instanceof VaultError) return error;
  const code = codeOf(error);
  if (UNTRUSTED.has(code)) {
    return new VaultError(`its certificate is not trusted (${code}); set "ca" of the provider to a file with its authority`);
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return new VaultError(`its certificate is not for the name in ${address} (${code})`);
  if (code.startsWith('CERT_')) return new VaultError(`its certificate is not valid (${code})`);
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return new VaultError(`TLS fails (${code}); is ${address} served by https?`);
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return new VaultError(`its answer has more than ${MAX_ANSWER_BYTES} bytes`);
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE') return new VaultError(`the connection was cut (${code})`);
  return new VaultError(`no connection (${code}); check the address and that the server is running`);
}

/** Codes name a fault without revealing the request. */
function codeOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? 'no code' : codeOf(cause);
}
