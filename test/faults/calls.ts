import { type Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer, CallOptions } from '../support/test-service.ts';

const CALL_MS = 20_000;

/** The caller got no response, so the effect is unknown. */
export class NoAnswer extends Error {}
/** The connection was refused, so there is no effect. */
export class ConnectionRefusedError extends NoAnswer {}

export type Target = { readonly port: number; readonly agent: Agent /** By its public name. */; readonly host: string };

/** One request to one process. @throws NoAnswer */
export function send(target: Target, method: string, path: string, options: CallOptions): Promise<Answer> {
  const { token, json, form, text, headers } = options;
  const body = json !== undefined ? JSON.stringify(json) : form ? new URLSearchParams(form).toString() : text;
  const type = json !== undefined ? 'application/json' : form && 'application/x-www-form-urlencoded';
  return new Promise((resolve, reject) => {
    const clientRequest = request({
      ...{ host: '127.0.0.1', port: target.port, method, path, agent: target.agent },
      headers: {
        Host: target.host,
        ...(type && { 'Content-Type': type }),
        ...(token && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }),
        ...headers,
      },
    });
    const timer = setTimeout(() => clientRequest.destroy(new NoAnswer('no answer in time')), CALL_MS);
    clientRequest.once('close', () => clearTimeout(timer));
    clientRequest.once('error', (error: NodeJS.ErrnoException) => {
      const detail = `${error.code ?? error.message}${clientRequest.reusedSocket ? ' on a kept connection' : ''}`;
      reject(error.code === 'ECONNREFUSED' ? new ConnectionRefusedError(detail) : new NoAnswer(detail));
    });
    clientRequest.once('response', async (response) => {
      try {
        const content = Buffer.concat(await response.toArray()).toString();
        const status = response.statusCode ?? 0;
        const link = String(response.headers.link ?? '');
        resolve({ status, headers: new Headers({ link }), text: content, body: parse(content) });
      } catch {
        reject(new NoAnswer('cut in the middle of an answer'));
      }
    });
    clientRequest.end(body);
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const AT_ONCE = 8;
const PATIENCE_MS = 60_000;

/** While something comes back, a question may need another attempt; it changes nothing. */
export async function withRetries<T>(call: () => Promise<T>): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      const answer = await call();
      const status = (answer as { status?: number } | undefined)?.status ?? 0;
      if (status < 500 || performance.now() > end) return answer;
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    await pause(100);
  }
}

export async function inParallel<T>(items: readonly T[], work: (worker: T) => Promise<void>): Promise<void> {
  const remaining = [...items];
  const worker = async () => {
    for (let item = remaining.pop(); item !== undefined; item = remaining.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Some of them, by chance. */
export function takeSample<T>(items: readonly T[], count: number): readonly T[] {
  if (items.length <= count) return items;
  return Array.from({ length: count }, () => items[Math.floor(Math.random() * items.length)] as T);
}
