import { request as plain } from 'node:http';
import { request as secure } from 'node:https';
import { connect as connectTls, type PeerCertificate } from 'node:tls';

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 1_048_576;

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
};

/**
 * Makes one request without credentials. `certificateOf` reports a certificate that is not trusted, so that the same run can check the
 * service behind it.
 */
export function httpRequest(
  address: string,
  options: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: Buffer } = {},
): Promise<Answer> {
  const { body, ...requestOptions } = options;
  const send = address.startsWith('https:') ? secure : plain;
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const outgoing = send(address, { ...requestOptions, rejectUnauthorized: false, signal, agent: false }, (incoming) => {
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

/** @returns undefined for a text that is not a JSON object. */
export function jsonOf({ text }: Answer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

export type ServerCertificate = {
  readonly validUntil: Date;
  /** The reason why wallets do not trust the certificate; undefined when they trust it. */
  readonly rejection: string | undefined;
};

export function certificateOf(address: URL): Promise<ServerCertificate> {
  const host = address.hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
    const options = { host, port: Number(address.port || 443), rejectUnauthorized: false, ...servername };
    const socket = connectTls(options, () => {
      const { valid_to: validTo } = socket.getPeerCertificate() as Partial<PeerCertificate>;
      const reason: unknown = socket.authorizationError;
      socket.destroy();
      if (validTo === undefined) return reject(new Error('it has no certificate'));
      return resolve({ validUntil: new Date(validTo), rejection: reason ? String(reason) : undefined });
    });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('it does not answer in time')));
    socket.on('error', reject);
  });
}
