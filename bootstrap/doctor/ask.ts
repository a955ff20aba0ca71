import { request as plain } from 'node:http';
import { request as secure } from 'node:https';
import { connect as connectTls, type PeerCertificate } from 'node:tls';

const PATIENCE_MS = 5_000;
const MAX_BYTES = 1_048_576;

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
};

/**
 * One call as a stranger makes it. A certificate that is not trusted is told by `certificateOf`, so that what is behind it can
 * be looked at in the same run; nothing secret goes along.
 */
export function ask(
  address: string,
  options: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: Buffer } = {},
): Promise<Answer> {
  const { body, ...rest } = options;
  const send = address.startsWith('https:') ? secure : plain;
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const outgoing = send(address, { ...rest, rejectUnauthorized: false, signal, agent: false }, (incoming) => {
      let text = '';
      incoming.on('error', reject);
      incoming.on('data', (chunk: Buffer) => {
        if (text.length + chunk.length > MAX_BYTES) incoming.destroy(new Error('the answer is too long'));
        text += chunk.toString();
      });
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text }));
    });
    outgoing.on('error', (error) => reject(signal.aborted ? new Error('it does not answer in time') : error));
    outgoing.end(body);
  });
}

/** @returns undefined for what is no JSON object. */
export function jsonOf({ text }: Answer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

export type Certified = {
  readonly until: Date;
  /** Why a stranger does not trust it; undefined where one does. */
  readonly refusal: string | undefined;
};

export function certificateOf(address: URL): Promise<Certified> {
  const host = address.hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
    const options = { host, port: Number(address.port || 443), rejectUnauthorized: false, ...servername };
    const socket = connectTls(options, () => {
      const { valid_to: until } = socket.getPeerCertificate() as Partial<PeerCertificate>;
      const reason: unknown = socket.authorizationError;
      socket.destroy();
      if (until === undefined) return reject(new Error('it has no certificate'));
      return resolve({ until: new Date(until), refusal: reason ? String(reason) : undefined });
    });
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('it does not answer in time')));
    socket.on('error', reject);
  });
}
